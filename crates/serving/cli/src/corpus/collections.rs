//! `autoact corpus list|files|search|delete`: the collections of the memory service.

use autoact_collections::CollectionName;
use autoact_wire::memory_v1::{
    Collection, DeleteCollectionRequest, DeleteFilesRequest, File, ListCollectionsRequest, ListFilesRequest, SearchSegmentsRequest,
    SearchStrategy, Segment,
};
use serde_json::{Value, json};
use tonic::{Code, Status};

use crate::args::StoreOptions;
use crate::client::{self, Documents, Service};
use crate::text::plain_line;
use crate::{exit, out};

/// A collection of a tenant.
#[derive(Debug, Clone)]
pub(super) struct Whose {
    /// As requests have it; empty: the caller's own.
    pub(super) tenant: String,
    pub(super) collection: CollectionName,
}

impl Whose {
    fn new(store: &StoreOptions, collection: &CollectionName) -> Whose {
        Whose { tenant: store.tenant(), collection: collection.clone() }
    }
}

/// The files of a collection; `None` if there is no such collection.
pub(super) async fn files(client: &mut Documents, whose: &Whose, address: &str) -> anyhow::Result<Option<Vec<File>>> {
    match listed(client, whose).await {
        Ok(files) => Ok(Some(files)),
        Err(status) if status.code() == Code::NotFound => Ok(None),
        Err(status) => Err(client::explain(status, Service::Memory, address).await),
    }
}

async fn listed(client: &mut Documents, whose: &Whose) -> Result<Vec<File>, Status> {
    let request = ListFilesRequest { tenant: whose.tenant.clone(), collection: whose.collection.to_string() };
    let mut messages = client.list_files(request).await?.into_inner();
    let mut files = Vec::new();
    while let Some(message) = messages.message().await? {
        files.extend(message.files);
    }
    Ok(files)
}

/// Deletes files; how many there were.
pub(super) async fn delete_files(client: &mut Documents, whose: &Whose, paths: Vec<String>, address: &str) -> anyhow::Result<u64> {
    let request = DeleteFilesRequest { tenant: whose.tenant.clone(), collection: whose.collection.to_string(), paths };
    match client.delete_files(request).await {
        Ok(response) => Ok(response.into_inner().deleted),
        Err(status) => Err(client::explain(status, Service::Memory, address).await),
    }
}

pub(super) async fn list(store: &StoreOptions, json: bool) -> anyhow::Result<u8> {
    let request = ListCollectionsRequest { tenant: store.tenant() };
    let listed = match client::documents(&store.memory)?.list_collections(request).await {
        Ok(response) => response.into_inner(),
        Err(status) => return Err(client::explain(status, Service::Memory, &store.memory).await),
    };
    if json {
        let row = |one: &Collection| json!({"name": one.name, "files": one.files, "segments": one.segments, "vectors": one.vectors});
        out::line(Value::Array(listed.collections.iter().map(row).collect()))?;
    } else if listed.collections.is_empty() {
        out::line("no collections; import one with: autoact corpus import DIRECTORY")?;
    } else {
        for one in &listed.collections {
            let vectors = if listed.embedder.is_empty() { String::new() } else { format!(" {:>10} with vectors", one.vectors) };
            out::line(format_args!("{:<24} {:>8} files {:>10} segments{vectors}", plain_line(&one.name), one.files, one.segments))?;
        }
        if listed.embedder.is_empty() {
            out::line("found by words; with an embedder also by meaning (docs/embedding.md)")?;
        }
    }
    Ok(exit::OK)
}

pub(super) async fn list_files(store: &StoreOptions, collection: &CollectionName, json: bool) -> anyhow::Result<u8> {
    let mut client = client::documents(&store.memory)?;
    let files = match listed(&mut client, &Whose::new(store, collection)).await {
        Ok(files) => files,
        Err(status) => return Err(client::explain(status, Service::Memory, &store.memory).await),
    };
    if json {
        let row = |file: &File| {
            json!({
                "path": file.path, "title": file.title, "kind": file.kind, "pages": file.pages, "bytes": file.bytes,
                "sha256": file.sha256, "segments": file.segments,
            })
        };
        out::line(Value::Array(files.iter().map(row).collect()))?;
    } else {
        for file in files {
            let (path, title) = (plain_line(&file.path), plain_line(&file.title));
            out::line(format_args!("{path}  ({}, {} segments)  {title}", file.kind, file.segments))?;
        }
    }
    Ok(exit::OK)
}

pub(super) async fn search(
    store: &StoreOptions,
    collections: &[CollectionName],
    query: &str,
    limit: u32,
    strategy: Option<SearchStrategy>,
    json: bool,
) -> anyhow::Result<u8> {
    let collections = collections.iter().map(CollectionName::to_string).collect();
    let strategy = strategy.unwrap_or_default().into();
    let request = SearchSegmentsRequest { tenant: store.tenant(), collections, query: query.to_owned(), limit, strategy };
    let found = match client::documents(&store.memory)?.search_segments(request).await {
        Ok(response) => response.into_inner().segments,
        Err(status) => return Err(client::explain(status, Service::Memory, &store.memory).await),
    };
    let found: Vec<(f32, Segment)> = found.into_iter().filter_map(|found| Some((found.score, found.segment?))).collect();
    if json {
        let row = |(score, segment): &(f32, Segment)| {
            json!({
                "score": score, "collection": segment.collection, "path": segment.path, "page": segment.page,
                "heading": segment.heading, "title": segment.title, "start": segment.start, "text": segment.text,
            })
        };
        out::line(Value::Array(found.iter().map(row).collect()))?;
    } else if found.is_empty() {
        out::line("nothing was found")?;
    } else {
        for (score, segment) in found {
            let page = segment.page.map_or_else(String::new, |page| format!(", page {page}"));
            let place = plain_line(&format!("{}/{}{page}", segment.collection, segment.path));
            out::line(format_args!("{score:>7.3}  {}  ({place})\n         {}", plain_line(&segment.title), plain_line(&segment.text)))?;
        }
    }
    Ok(exit::OK)
}

pub(super) async fn delete(store: &StoreOptions, collection: &CollectionName, paths: &[String]) -> anyhow::Result<u8> {
    let mut client = client::documents(&store.memory)?;
    let whose = Whose::new(store, collection);
    if !paths.is_empty() {
        let deleted = delete_files(&mut client, &whose, paths.to_vec(), &store.memory).await?;
        out::line(format_args!("deleted {deleted} files"))?;
        return Ok(if deleted > 0 { exit::OK } else { exit::FAILED });
    }
    let request = DeleteCollectionRequest { tenant: whose.tenant.clone(), collection: collection.to_string() };
    match client.delete_collection(request).await {
        Ok(response) if response.get_ref().deleted => {
            out::line(format_args!("deleted the collection {collection}"))?;
            Ok(exit::OK)
        }
        Ok(_) => {
            out::error(format_args!("there is no collection `{collection}`; see: autoact corpus list"));
            Ok(exit::FAILED)
        }
        Err(status) => Err(client::explain(status, Service::Memory, &store.memory).await),
    }
}
