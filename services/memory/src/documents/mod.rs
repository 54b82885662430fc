//! `autoact.memory.v1.Documents`: users' documents, in collections on this machine's disk or in a
//! Qdrant server.

mod convert;
mod dense;
mod embedded;
mod error;
mod put;
mod qdrant;
mod request;
mod shelf;
mod store;

use std::pin::Pin;
use std::sync::Arc;

use autoact_access::{Role, caller};
use autoact_collections::CollectionsError;
use autoact_service::{Setup, StartError};
use autoact_wire::memory_v1;
use autoact_wire::memory_v1::documents_server::{Documents, DocumentsServer};
use autoact_wire::status::to_status;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};

use crate::config::{MemoryConfig, StoreKind};
use crate::documents::dense::Dense;
use crate::documents::embedded::EmbeddedDocuments;
use crate::documents::error::DocumentsError;
use crate::documents::put::receive;
use crate::documents::qdrant::QdrantDocuments;
use crate::documents::request::{Scope, Whose};
use crate::documents::store::{Counts, DocumentStore};
use crate::door::admit;

/// Files in one message of a listing.
const FILES_PER_MESSAGE: usize = 256;
/// Files that are received at once: each is in memory whole.
const PUTS: usize = 4;

/// Opens the documents; where there is no place for them, calls are refused.
pub(crate) async fn open(config: &MemoryConfig, setup: &mut Setup) -> Result<DocumentsServer<DocumentsRpc>, StartError> {
    let store: Arc<dyn DocumentStore> = match config.documents_store {
        StoreKind::Embedded if config.documents_dir.as_os_str().is_empty() => {
            return Ok(autoact_wire::limited!(DocumentsServer::new(DocumentsRpc { open: None })));
        }
        StoreKind::Embedded => Arc::new(EmbeddedDocuments::open(&config.documents_dir, setup).await?),
        StoreKind::Qdrant => Arc::new(QdrantDocuments::new(&config.qdrant).map_err(StartError::new)?),
    };
    let dense = Dense::open(config, setup, &store).await?;
    let puts = Arc::new(Semaphore::new(PUTS));
    Ok(autoact_wire::limited!(DocumentsServer::new(DocumentsRpc { open: Some(Open { store, dense, puts }) })))
}

/// The gRPC service.
pub(crate) struct DocumentsRpc {
    open: Option<Open>,
}

/// The documents, and what makes their vectors.
struct Open {
    store: Arc<dyn DocumentStore>,
    dense: Arc<Dense>,
    puts: Arc<Semaphore>,
}

impl Open {
    /// A place for a file that is received.
    fn place(&self) -> Result<OwnedSemaphorePermit, DocumentsError> {
        self.puts.clone().try_acquire_owned().map_err(|_| DocumentsError::Busy { running: PUTS })
    }
}

impl DocumentsRpc {
    fn open(&self) -> Result<&Open, Status> {
        self.open.as_ref().ok_or_else(|| to_status(&DocumentsError::Off))
    }

    fn store(&self) -> Result<&dyn DocumentStore, Status> {
        Ok(&*self.open()?.store)
    }
}

fn refused(error: DocumentsError) -> Status {
    to_status(&error)
}

#[tonic::async_trait]
impl Documents for DocumentsRpc {
    async fn put_file(
        &self,
        request: Request<Streaming<memory_v1::PutFileRequest>>,
    ) -> Result<Response<memory_v1::PutFileResponse>, Status> {
        let caller = caller(&request)?;
        caller.require(Role::Operate).map_err(|error| to_status(&error))?;
        let open = self.open()?;
        // held until the file is stored: what is in memory is bounded by the number of permits
        let _place = open.place().map_err(refused)?;
        let (whose, entry, segments) = receive(request.into_inner(), &caller).await?;
        // tonic ends the stream of a client that broke off like that of one that has sent all. The
        // server drops a call that was reset as soon as it waits: so it waits before it stores
        tokio::task::yield_now().await;
        let segments = open.store.put(&whose, entry, segments).await.map_err(refused)?;
        open.dense.wake();
        Ok(Response::new(memory_v1::PutFileResponse { segments }))
    }

    async fn delete_files(
        &self,
        request: Request<memory_v1::DeleteFilesRequest>,
    ) -> Result<Response<memory_v1::DeleteFilesResponse>, Status> {
        let memory_v1::DeleteFilesRequest { tenant, collection, paths } =
            admit(request, Role::Operate, |request| Some(&mut request.tenant))?;
        let whose = Whose::of(&tenant, &collection).map_err(refused)?;
        let deleted = self.store()?.delete_files(&whose, paths).await.map_err(refused)?;
        Ok(Response::new(memory_v1::DeleteFilesResponse { deleted }))
    }

    type ListFilesStream = Pin<Box<dyn Stream<Item = Result<memory_v1::ListFilesResponse, Status>> + Send>>;

    async fn list_files(&self, request: Request<memory_v1::ListFilesRequest>) -> Result<Response<Self::ListFilesStream>, Status> {
        let memory_v1::ListFilesRequest { tenant, collection } = admit(request, Role::Ask, |request| Some(&mut request.tenant))?;
        let whose = Whose::of(&tenant, &collection).map_err(refused)?;
        let entries = self.store()?.entries(&whose).await.map_err(refused)?;
        let mut files = entries.into_iter().map(convert::file).peekable();
        let messages = std::iter::from_fn(move || {
            files.peek()?;
            Some(Ok(memory_v1::ListFilesResponse { files: files.by_ref().take(FILES_PER_MESSAGE).collect() }))
        });
        Ok(Response::new(Box::pin(tokio_stream::iter(messages))))
    }

    async fn list_collections(
        &self,
        request: Request<memory_v1::ListCollectionsRequest>,
    ) -> Result<Response<memory_v1::ListCollectionsResponse>, Status> {
        let tenant = request::tenant(&admit(request, Role::Ask, |request| Some(&mut request.tenant))?.tenant).map_err(refused)?;
        let Open { store, dense, .. } = self.open()?;
        let space = dense.space();
        let embedder = space.as_ref().map(|space| space.name.clone()).unwrap_or_default();
        let mut collections = Vec::new();
        for collection in store.names(&tenant).await.map_err(refused)? {
            let whose = Whose { tenant: tenant.clone(), collection };
            match store.counts(&whose, space.as_ref()).await {
                Ok(Counts { files, segments, vectors }) => {
                    collections.push(memory_v1::Collection { name: whose.collection.to_string(), files, segments, vectors });
                }
                // deleted meanwhile
                Err(DocumentsError::Collections(CollectionsError::Unknown { .. })) => {}
                Err(error) => return Err(refused(error)),
            }
        }
        Ok(Response::new(memory_v1::ListCollectionsResponse { collections, embedder }))
    }

    async fn delete_collection(
        &self,
        request: Request<memory_v1::DeleteCollectionRequest>,
    ) -> Result<Response<memory_v1::DeleteCollectionResponse>, Status> {
        let memory_v1::DeleteCollectionRequest { tenant, collection } = admit(request, Role::Operate, |request| Some(&mut request.tenant))?;
        let whose = Whose::of(&tenant, &collection).map_err(refused)?;
        let deleted = self.store()?.delete_collection(&whose).await.map_err(refused)?;
        Ok(Response::new(memory_v1::DeleteCollectionResponse { deleted }))
    }

    async fn search_segments(
        &self,
        request: Request<memory_v1::SearchSegmentsRequest>,
    ) -> Result<Response<memory_v1::SearchSegmentsResponse>, Status> {
        let memory_v1::SearchSegmentsRequest { tenant, collections, query, limit, strategy } =
            admit(request, Role::Ask, |request| Some(&mut request.tenant))?;
        let scope = Scope::of(&tenant, &collections).map_err(refused)?;
        let query = request::text("query", query).map_err(refused)?;
        let limit = request::limit(limit).map_err(refused)?;
        let asked = convert::strategy(strategy).map_err(refused)?;
        let Open { store, dense, .. } = self.open()?;
        let search = dense.search(query, limit, asked).await.map_err(refused)?;
        let strategy = convert::strategy_name(search.strategy).into();
        let segments = scope.search(&**store, &search).await.map_err(refused)?;
        Ok(Response::new(memory_v1::SearchSegmentsResponse { segments, strategy }))
    }

    async fn embed(&self, request: Request<memory_v1::EmbedRequest>) -> Result<Response<memory_v1::EmbedResponse>, Status> {
        let texts = request::texts(admit(request, Role::Ask, |_| None)?.texts).map_err(refused)?;
        let (embedder, vectors) = self.open()?.dense.vectors(texts).await.map_err(refused)?;
        let vectors = vectors.into_iter().map(|values| memory_v1::Vector { values }).collect();
        Ok(Response::new(memory_v1::EmbedResponse { embedder, vectors }))
    }

    async fn open_segment(
        &self,
        request: Request<memory_v1::OpenSegmentRequest>,
    ) -> Result<Response<memory_v1::OpenSegmentResponse>, Status> {
        let memory_v1::OpenSegmentRequest { tenant, collections, name, similar } =
            admit(request, Role::Ask, |request| Some(&mut request.tenant))?;
        let scope = Scope::of(&tenant, &collections).map_err(refused)?;
        let similar = request::similar(similar).map_err(refused)?;
        let opened = scope.open(self.store()?, &name, similar).await.map_err(refused)?;
        Ok(Response::new(opened))
    }
}
