//! The memory service's documents, as the gateway asks for them: which collections there are, and
//! vectors of texts.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use autoact_planning::Failure;
use autoact_telemetry::propagate::TraceInterceptor;
use autoact_trajectory::Tenant;
use autoact_wire::client::{AddressError, Connector};
use autoact_wire::limited;
use autoact_wire::memory_v1;
use autoact_wire::memory_v1::documents_client::DocumentsClient;

use crate::agents::choice::{Embedded, Embeddings};
use crate::agents::remote::{Remote, Settings, Traced};

/// Says which collections there are.
#[async_trait]
pub(crate) trait Shelves: Send + Sync {
    /// The names of a tenant's collections.
    async fn collections(&self, tenant: &Tenant, limit: Duration) -> Result<Vec<String>, Failure>;
}

/// A client of a memory service's documents.
pub(crate) type RemoteDocuments = Remote<DocumentsClient<Traced>>;

/// The documents of the memory service at `address`.
pub(crate) fn documents(connector: Connector, address: &str) -> Result<Arc<RemoteDocuments>, AddressError> {
    let settings = Settings { connector, bus: None, call_limit: Duration::ZERO, away: Duration::ZERO };
    let client = |channel| limited!(DocumentsClient::with_interceptor(channel, TraceInterceptor));
    Ok(Arc::new(Remote::new("memory", address, &settings, client)?))
}

#[async_trait]
impl Embeddings for RemoteDocuments {
    async fn embed(&self, texts: Vec<String>, limit: Duration) -> Result<Embedded, Failure> {
        let request = memory_v1::EmbedRequest { texts };
        let call = |mut client: DocumentsClient<Traced>, request| async move { Ok(client.embed(request).await?.into_inner()) };
        let memory_v1::EmbedResponse { embedder, vectors } = self.within(limit, request, call).await?;
        Ok(Embedded { embedder, vectors: vectors.into_iter().map(|vector| vector.values).collect() })
    }
}

#[async_trait]
impl Shelves for RemoteDocuments {
    async fn collections(&self, tenant: &Tenant, limit: Duration) -> Result<Vec<String>, Failure> {
        let request = memory_v1::ListCollectionsRequest { tenant: tenant.to_string() };
        let call = |mut client: DocumentsClient<Traced>, request| async move { Ok(client.list_collections(request).await?.into_inner()) };
        let listed = self.within(limit, request, call).await?;
        Ok(listed.collections.into_iter().map(|collection| collection.name).collect())
    }
}
