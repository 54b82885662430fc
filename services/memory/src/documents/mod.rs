//! `autoact.memory.v1.Documents`: users' documents, in collections on this machine's disk.

mod convert;
mod dense;
mod error;
mod put;
mod request;
mod shelf;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use autoact_access::{Role, caller};
use autoact_collections::Collections;
use autoact_service::{Setup, StartError};
use autoact_wire::memory_v1;
use autoact_wire::memory_v1::documents_server::{Documents, DocumentsServer};
use autoact_wire::status::to_status;
use tokio_stream::Stream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use crate::config::MemoryConfig;
use crate::documents::dense::Dense;
use crate::documents::error::DocumentsError;
use crate::documents::put::receive;
use crate::documents::request::{Scope, Whose};
use crate::documents::shelf::Shelf;
use crate::door::admit;

/// How often collections are looked at that nobody changes.
const LOOK_EVERY: Duration = Duration::from_secs(20);
/// A collection that nobody has changed for so long gives back what changing it needs.
const IDLE: Duration = Duration::from_secs(60);
/// Files in one message of a listing.
const FILES_PER_MESSAGE: usize = 256;

/// Opens the collections in a directory; without one, calls are refused.
pub(crate) async fn open(config: &MemoryConfig, setup: &mut Setup) -> Result<DocumentsServer<DocumentsRpc>, StartError> {
    let path = &config.documents_dir;
    if path.as_os_str().is_empty() {
        return Ok(autoact_wire::limited!(DocumentsServer::new(DocumentsRpc { open: None })));
    }
    let directory = path.clone();
    let opened = tokio::task::spawn_blocking(move || Collections::open(&directory)).await.map_err(StartError::new)?;
    let collections = opened.map_err(|error| {
        let fix = error.fix();
        StartError::new(error).fix(fix)
    })?;
    tracing::info!(documents_dir = %path.display(), "the documents are open");
    let shelf = Shelf::new(Arc::new(collections));
    let dense = Dense::open(config, setup, &shelf).await?;
    setup.tasks().spawn_until_stopped("documents at rest", |stopping| rest(shelf.clone(), stopping));
    Ok(autoact_wire::limited!(DocumentsServer::new(DocumentsRpc { open: Some(Open { shelf, dense }) })))
}

/// Brings collections to rest that nobody changes, and all of them at the end.
async fn rest(shelf: Shelf, stopping: CancellationToken) {
    loop {
        let stop = tokio::time::timeout(LOOK_EVERY, stopping.cancelled()).await.is_ok();
        let idle = if stop { Duration::ZERO } else { IDLE };
        if let Err(error) = shelf.write("rest", move |collections| collections.rest(idle)).await {
            tracing::warn!(%error, "a collection could not be brought to rest");
        }
        if stop {
            return;
        }
    }
}

/// The gRPC service.
pub(crate) struct DocumentsRpc {
    open: Option<Open>,
}

/// The documents, and what makes their vectors.
struct Open {
    shelf: Shelf,
    dense: Arc<Dense>,
}

impl DocumentsRpc {
    fn open(&self) -> Result<&Open, Status> {
        self.open.as_ref().ok_or_else(|| to_status(&DocumentsError::Off))
    }

    fn shelf(&self) -> Result<&Shelf, Status> {
        Ok(&self.open()?.shelf)
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
        let shelf = self.shelf()?;
        // held until the file is stored: what is in memory is bounded by the number of permits
        let _place = shelf.place().map_err(refused)?;
        let (Whose { tenant, collection }, entry, segments) = receive(request.into_inner(), &caller).await?;
        let put = shelf.write("put", move |collections| collections.get_or_make(&tenant, &collection)?.put(&entry, segments));
        let segments = put.await.map_err(refused)?;
        self.open()?.dense.wake();
        Ok(Response::new(memory_v1::PutFileResponse { segments }))
    }

    async fn delete_files(
        &self,
        request: Request<memory_v1::DeleteFilesRequest>,
    ) -> Result<Response<memory_v1::DeleteFilesResponse>, Status> {
        let memory_v1::DeleteFilesRequest { tenant, collection, paths } =
            admit(request, Role::Operate, |request| Some(&mut request.tenant))?;
        let Whose { tenant, collection } = Whose::of(&tenant, &collection).map_err(refused)?;
        let deleted = self.shelf()?.write("delete", move |collections| collections.get(&tenant, &collection)?.delete(&paths));
        Ok(Response::new(memory_v1::DeleteFilesResponse { deleted: deleted.await.map_err(refused)? }))
    }

    type ListFilesStream = Pin<Box<dyn Stream<Item = Result<memory_v1::ListFilesResponse, Status>> + Send>>;

    async fn list_files(&self, request: Request<memory_v1::ListFilesRequest>) -> Result<Response<Self::ListFilesStream>, Status> {
        let memory_v1::ListFilesRequest { tenant, collection } = admit(request, Role::Ask, |request| Some(&mut request.tenant))?;
        let Whose { tenant, collection } = Whose::of(&tenant, &collection).map_err(refused)?;
        let entries = self.shelf()?.read("list", move |collections| collections.get(&tenant, &collection)?.entries());
        let mut files = entries.await.map_err(refused)?.into_iter().map(convert::file).peekable();
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
        let Open { shelf, dense } = self.open()?;
        let space = dense.space();
        let embedder = space.as_ref().map(|space| space.name.clone()).unwrap_or_default();
        let listed = shelf.read("collections", move |collections| {
            let names = collections.names(&tenant)?.into_iter();
            let counted = names.map(|name| {
                let collection = collections.get(&tenant, &name)?;
                let (files, segments) = collection.counts()?;
                let vectors = space.as_ref().map_or(Ok(0), |space| collection.with_vector(space))?;
                Ok(memory_v1::Collection { name: name.to_string(), files, segments, vectors })
            });
            counted.collect()
        });
        Ok(Response::new(memory_v1::ListCollectionsResponse { collections: listed.await.map_err(refused)?, embedder }))
    }

    async fn delete_collection(
        &self,
        request: Request<memory_v1::DeleteCollectionRequest>,
    ) -> Result<Response<memory_v1::DeleteCollectionResponse>, Status> {
        let memory_v1::DeleteCollectionRequest { tenant, collection } = admit(request, Role::Operate, |request| Some(&mut request.tenant))?;
        let Whose { tenant, collection } = Whose::of(&tenant, &collection).map_err(refused)?;
        let deleted = self.shelf()?.write("delete_collection", move |collections| collections.delete(&tenant, &collection));
        Ok(Response::new(memory_v1::DeleteCollectionResponse { deleted: deleted.await.map_err(refused)? }))
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
        let Open { shelf, dense } = self.open()?;
        let search = dense.search(query, limit, asked).await.map_err(refused)?;
        let strategy = convert::strategy_name(search.strategy).into();
        let segments = shelf.read("search", move |collections| scope.search(collections, &search)).await.map_err(refused)?;
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
        let opened = self.shelf()?.read("open", move |collections| scope.open(collections, &name, similar)).await.map_err(refused)?;
        Ok(Response::new(opened))
    }
}
