//! `autoact.memory.v1.Documents`: users' documents, in collections on this machine's disk.

mod convert;
mod error;
mod put;
mod request;
mod shelf;

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use autoact_collections::Collections;
use autoact_service::{Setup, StartError};
use autoact_wire::memory_v1;
use autoact_wire::memory_v1::documents_server::{Documents, DocumentsServer};
use autoact_wire::status::to_status;
use tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};

use crate::documents::error::DocumentsError;
use crate::documents::put::receive;
use crate::documents::request::{Scope, Whose};
use crate::documents::shelf::Shelf;

/// How often collections are looked at that nobody changes.
const LOOK_EVERY: Duration = Duration::from_secs(20);
/// A collection that nobody has changed for so long gives back what changing it needs.
const IDLE: Duration = Duration::from_secs(60);
/// Files in one message of a listing.
const FILES_PER_MESSAGE: usize = 256;

/// Opens the collections in a directory; without one, calls are refused.
pub(crate) async fn open(path: &Path, setup: &mut Setup) -> Result<DocumentsServer<DocumentsRpc>, StartError> {
    let shelf = if path.as_os_str().is_empty() {
        None
    } else {
        let directory = path.to_owned();
        let opened = tokio::task::spawn_blocking(move || Collections::open(&directory)).await.map_err(StartError::new)?;
        let collections = opened.map_err(|error| {
            let fix = error.fix();
            StartError::new(error).fix(fix)
        })?;
        tracing::info!(documents_dir = %path.display(), "the documents are open");
        Some(Shelf::new(Arc::new(collections)))
    };
    if let Some(shelf) = shelf.clone() {
        setup.tasks().spawn_until_stopped("documents at rest", |stopping| async move {
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
        });
    }
    Ok(autoact_wire::limited!(DocumentsServer::new(DocumentsRpc { shelf })))
}

/// The gRPC service.
pub(crate) struct DocumentsRpc {
    shelf: Option<Shelf>,
}

impl DocumentsRpc {
    fn shelf(&self) -> Result<&Shelf, Status> {
        self.shelf.as_ref().ok_or_else(|| to_status(&DocumentsError::Off))
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
        let shelf = self.shelf()?;
        // held until the file is stored: what is in memory is bounded by the number of permits
        let _place = shelf.place().map_err(refused)?;
        let (Whose { tenant, collection }, entry, segments) = receive(request.into_inner()).await?;
        let put = shelf.write("put", move |collections| collections.get_or_make(&tenant, &collection)?.put(&entry, segments));
        let put = put.await.map_err(refused)?;
        Ok(Response::new(memory_v1::PutFileResponse { segments: put.segments }))
    }

    async fn delete_files(
        &self,
        request: Request<memory_v1::DeleteFilesRequest>,
    ) -> Result<Response<memory_v1::DeleteFilesResponse>, Status> {
        let memory_v1::DeleteFilesRequest { tenant, collection, paths } = request.into_inner();
        let Whose { tenant, collection } = Whose::of(&tenant, &collection).map_err(refused)?;
        let deleted = self.shelf()?.write("delete", move |collections| collections.get(&tenant, &collection)?.delete(&paths));
        Ok(Response::new(memory_v1::DeleteFilesResponse { deleted: deleted.await.map_err(refused)? }))
    }

    type ListFilesStream = Pin<Box<dyn Stream<Item = Result<memory_v1::ListFilesResponse, Status>> + Send>>;

    async fn list_files(&self, request: Request<memory_v1::ListFilesRequest>) -> Result<Response<Self::ListFilesStream>, Status> {
        let memory_v1::ListFilesRequest { tenant, collection } = request.into_inner();
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
        let tenant = request::tenant(&request.into_inner().tenant).map_err(refused)?;
        let listed = self.shelf()?.read("collections", move |collections| {
            let names = collections.names(&tenant)?.into_iter();
            let counted = names.map(|name| {
                let (files, segments) = collections.get(&tenant, &name)?.counts()?;
                Ok(memory_v1::Collection { name: name.to_string(), files, segments })
            });
            counted.collect()
        });
        Ok(Response::new(memory_v1::ListCollectionsResponse { collections: listed.await.map_err(refused)? }))
    }

    async fn delete_collection(
        &self,
        request: Request<memory_v1::DeleteCollectionRequest>,
    ) -> Result<Response<memory_v1::DeleteCollectionResponse>, Status> {
        let memory_v1::DeleteCollectionRequest { tenant, collection } = request.into_inner();
        let Whose { tenant, collection } = Whose::of(&tenant, &collection).map_err(refused)?;
        let deleted = self.shelf()?.write("delete_collection", move |collections| collections.delete(&tenant, &collection));
        Ok(Response::new(memory_v1::DeleteCollectionResponse { deleted: deleted.await.map_err(refused)? }))
    }

    async fn search_segments(
        &self,
        request: Request<memory_v1::SearchSegmentsRequest>,
    ) -> Result<Response<memory_v1::SearchSegmentsResponse>, Status> {
        let memory_v1::SearchSegmentsRequest { tenant, collections, query, limit } = request.into_inner();
        let scope = Scope::of(&tenant, &collections).map_err(refused)?;
        let query = request::text("query", query).map_err(refused)?;
        let limit = request::limit(limit).map_err(refused)?;
        let found = self.shelf()?.read("search", move |collections| scope.search(collections, &query, limit)).await.map_err(refused)?;
        Ok(Response::new(memory_v1::SearchSegmentsResponse { segments: found }))
    }

    async fn open_segment(
        &self,
        request: Request<memory_v1::OpenSegmentRequest>,
    ) -> Result<Response<memory_v1::OpenSegmentResponse>, Status> {
        let memory_v1::OpenSegmentRequest { tenant, collections, name, similar } = request.into_inner();
        let scope = Scope::of(&tenant, &collections).map_err(refused)?;
        let similar = request::similar(similar).map_err(refused)?;
        let opened = self.shelf()?.read("open", move |collections| scope.open(collections, &name, similar)).await.map_err(refused)?;
        Ok(Response::new(opened))
    }
}
