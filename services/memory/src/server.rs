//! A Qdrant server: the connection, its errors, and collections of a known layout.

use std::collections::HashMap;

use qdrant_client::qdrant::vectors_config::Config as DenseConfig;
use qdrant_client::qdrant::{
    CollectionInfo, CreateCollectionBuilder, CreateFieldIndexCollectionBuilder, Distance, FieldType, Modifier, SparseVectorParamsBuilder,
    SparseVectorsConfigBuilder, Value, VectorParamsBuilder, VectorsConfigBuilder,
};
use qdrant_client::{Qdrant, QdrantError};
use tonic::Code;

use crate::config::QdrantConfig;
use crate::store::StoreError;

/// A server, reached on first use.
pub(crate) struct QdrantServer {
    pub(crate) client: Qdrant,
    pub(crate) url: String,
}

/// What a collection has to have.
pub(crate) struct Layout<'a> {
    /// Sparse vectors, and whether the server weights them by the inverse document frequency.
    pub(crate) sparse: &'a [(&'a str, bool)],
    /// A dense vector and its dimension.
    pub(crate) dense: Option<(&'a str, u64)>,
    /// The fields that queries filter or sort by.
    pub(crate) fields: &'a [(&'a str, FieldType)],
}

impl QdrantServer {
    pub(crate) fn new(config: &QdrantConfig) -> Result<QdrantServer, StoreError> {
        let mut builder = Qdrant::from_url(&config.url)
            .timeout(config.timeout)
            .connect_timeout(config.timeout)
            .keep_alive_while_idle()
            // it would talk to the server here, on this thread, and print to stdout
            .skip_compatibility_check();
        if !config.api_key.is_empty() {
            builder = builder.api_key(config.api_key.expose());
        }
        let client = builder.build().map_err(|error| StoreError::Engine(error.to_string()))?;
        Ok(QdrantServer { client, url: config.url.clone() })
    }

    /// Makes a collection and its indexes, or checks that the one there is ours. Several replicas may
    /// do it at once. What it is now.
    pub(crate) async fn prepare(&self, collection: &str, layout: &Layout<'_>) -> Result<CollectionInfo, StoreError> {
        let exists = self.client.collection_exists(collection).await.map_err(|error| self.error(error))?;
        if !exists {
            self.make(collection, layout).await?;
        }
        let info = self.client.collection_info(collection).await.map_err(|error| self.error(error))?.result.unwrap_or_default();
        if let Some(difference) = layout.difference(&info) {
            return Err(StoreError::Layout { url: self.url.clone(), collection: collection.to_owned(), difference });
        }
        for (field, kind) in layout.fields {
            if !info.payload_schema.contains_key(*field) {
                let create = CreateFieldIndexCollectionBuilder::new(collection, *field, *kind).wait(true);
                self.client.create_field_index(create).await.map_err(|error| self.error(error))?;
            }
        }
        Ok(info)
    }

    async fn make(&self, collection: &str, layout: &Layout<'_>) -> Result<(), StoreError> {
        let mut sparse = SparseVectorsConfigBuilder::default();
        for (name, idf) in layout.sparse {
            let params = SparseVectorParamsBuilder::default();
            sparse.add_named_vector_params(*name, if *idf { params.modifier(Modifier::Idf) } else { params });
        }
        let mut create = CreateCollectionBuilder::new(collection).sparse_vectors_config(sparse);
        if let Some((name, dimension)) = layout.dense {
            let mut dense = VectorsConfigBuilder::default();
            dense.add_named_vector_params(name, VectorParamsBuilder::new(dimension, Distance::Cosine));
            create = create.vectors_config(dense);
        }
        match self.client.create_collection(create).await {
            Ok(_) => tracing::info!(collection, "made the collection"),
            // another replica was faster; its collection is checked like any other
            Err(QdrantError::ResponseError { status }) if matches!(status.code(), Code::AlreadyExists | Code::InvalidArgument) => {}
            Err(error) => return Err(self.error(error)),
        }
        Ok(())
    }

    /// Whether it is there.
    pub(crate) async fn check(&self) -> Result<(), StoreError> {
        self.client.health_check().await.map(drop).map_err(|error| self.error(error))
    }

    pub(crate) fn error(&self, error: QdrantError) -> StoreError {
        let url = self.url.clone();
        match error {
            QdrantError::ResponseError { status } => {
                let reason = status.message().to_owned();
                match status.code() {
                    Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled => StoreError::Unreachable { url, reason },
                    Code::Unauthenticated | Code::PermissionDenied => StoreError::Refused { url, reason },
                    // what its client makes of a refused connection; it says so in words alone
                    Code::Internal if reason.starts_with("Failed to connect") => StoreError::Unreachable { url, reason },
                    code => StoreError::Engine(format!("Qdrant at `{url}` says {code:?}: {reason}")),
                }
            }
            QdrantError::ResourceExhaustedError { status, .. } => StoreError::Unreachable { url, reason: status.message().to_owned() },
            other => StoreError::Engine(format!("Qdrant at `{url}`: {other}")),
        }
    }
}

impl Layout<'_> {
    /// What a collection lacks, if it lacks something that cannot be added.
    fn difference(&self, info: &CollectionInfo) -> Option<String> {
        let params = info.config.as_ref().and_then(|config| config.params.as_ref());
        let sparse = params.and_then(|params| params.sparse_vectors_config.as_ref());
        for (name, idf) in self.sparse {
            let there = sparse.and_then(|sparse| sparse.map.get(*name));
            let weighted = there.map(|there| there.modifier == Some(Modifier::Idf as i32));
            if weighted != Some(*idf) {
                let modifier = if *idf { " with the modifier `idf`" } else { "" };
                return Some(format!("has no sparse vector `{name}`{modifier}"));
            }
        }
        let (name, dimension) = self.dense?;
        (dense_size(info, name) != Some(dimension)).then(|| format!("has no dense vector `{name}` of {dimension} numbers"))
    }
}

/// A point's payload as JSON.
pub(crate) fn json(payload: HashMap<String, Value>) -> serde_json::Value {
    serde_json::Value::Object(payload.into_iter().map(|(key, value)| (key, value.into_json())).collect())
}

/// The dimension of a collection's named dense vector.
pub(crate) fn dense_size(info: &CollectionInfo, name: &str) -> Option<u64> {
    let params = info.config.as_ref()?.params.as_ref()?;
    match params.vectors_config.as_ref()?.config.as_ref()? {
        DenseConfig::ParamsMap(map) => map.map.get(name).map(|params| params.size),
        DenseConfig::Params(_) => None,
    }
}
