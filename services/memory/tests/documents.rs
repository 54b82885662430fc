//! Documents over real gRPC.
#![allow(clippy::unwrap_used, clippy::expect_used)] // tests

use std::path::{Path, PathBuf};

use autoact_config::{Common, Loaded, Section};
use autoact_service::{App, Running};
use autoact_wire::memory_v1::documents_client::DocumentsClient;
use autoact_wire::memory_v1::put_file_request::Part;
use autoact_wire::memory_v1::{self as v1, PutFileRequest};
use autoact_wire::status::reason;
use memory::{EmbedderKind, MemoryApp, MemoryConfig};
use tonic::transport::Channel;
use tonic::{Code, Status};

type Client = DocumentsClient<Channel>;

async fn start(directory: &Path) -> Result<(Running, Client), String> {
    start_with(MemoryConfig { data_dir: directory.join("memory"), documents_dir: directory.join("documents"), ..MemoryConfig::default() })
        .await
}

async fn start_with(config: MemoryConfig) -> Result<(Running, Client), String> {
    let mut common: Common = MemoryConfig::common();
    common.listen = "127.0.0.1:0".parse().unwrap();
    common.metrics_listen = "127.0.0.1:0".parse().unwrap();
    common.grace_period = std::time::Duration::from_secs(5);
    let app = App::build::<MemoryApp>(Loaded::new(common, config)).await.map_err(|error| error.to_string())?;
    let running = app.start();
    let channel = autoact_wire::client::connect_lazy(&running.addr().to_string()).unwrap();
    Ok((running, autoact_wire::limited!(DocumentsClient::new(channel))))
}

fn file(tenant: &str, collection: &str, path: &str) -> PutFileRequest {
    let file = Some(v1::File { path: path.into(), sha256: "0".into(), title: path.into(), kind: "text".into(), ..Default::default() });
    PutFileRequest { part: Some(Part::File(v1::FileToPut { tenant: tenant.into(), collection: collection.into(), file })) }
}

fn segments(segments: &[(&str, &str)]) -> PutFileRequest {
    let new = |(title, text): &(&str, &str)| v1::NewSegment { title: (*title).into(), text: (*text).into(), ..Default::default() };
    PutFileRequest { part: Some(Part::Segments(v1::SegmentBatch { segments: segments.iter().map(new).collect() })) }
}

async fn put(client: &mut Client, tenant: &str, collection: &str, path: &str, text: &[(&str, &str)]) -> Result<u64, Status> {
    let parts = vec![file(tenant, collection, path), segments(text)];
    Ok(client.put_file(tokio_stream::iter(parts)).await?.into_inner().segments)
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

async fn search(client: &mut Client, tenant: &str, collections: &[&str], query: &str) -> Result<Vec<String>, Status> {
    let request =
        v1::SearchSegmentsRequest { tenant: tenant.into(), collections: names(collections), query: query.into(), ..Default::default() };
    let found = client.search_segments(request).await?.into_inner().segments;
    Ok(found.into_iter().map(|found| found.segment.unwrap()).map(|segment| format!("{}/{}", segment.collection, segment.title)).collect())
}

async fn open(client: &mut Client, collections: &[&str], name: &str) -> v1::OpenSegmentResponse {
    let request = v1::OpenSegmentRequest { tenant: String::new(), collections: names(collections), name: name.into(), similar: 3 };
    client.open_segment(request).await.unwrap().into_inner()
}

#[track_caller]
fn refused<T>(result: Result<T, Status>, code: Code, why: &str) {
    let Err(status) = result else { panic!("it was not refused") };
    assert_eq!((status.code(), reason(&status).as_deref()), (code, Some(why)), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_found_opened_listed_and_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let (running, mut client) = start(directory.path()).await.unwrap();
    let travel = [("Travel: Approval", "A manager approves travel over 2,000 euros."), ("Travel: Hotels", "Hotels cost 150 euros.")];
    assert_eq!(put(&mut client, "", "handbook", "travel.md", &travel).await.unwrap(), 2);
    put(&mut client, "", "wiki", "hotel.md", &[("Hotels", "A hotel is a house with beds.")]).await.unwrap();

    assert_eq!(
        search(&mut client, "", &["handbook"], "who approves travels?").await.unwrap(),
        ["handbook/Travel: Approval", "handbook/Travel: Hotels"]
    );
    // each collection in turn
    let both = search(&mut client, "default", &["wiki", "handbook"], "hotel beds 150").await.unwrap();
    assert_eq!(both, ["wiki/Hotels", "handbook/Travel: Hotels"]);
    let opened = open(&mut client, &["handbook"], "travel hotels").await;
    assert_eq!((opened.segment.unwrap().text, opened.by_title), (travel[1].1.to_owned(), true));
    assert_eq!(open(&mut client, &["handbook"], "Travel hotel costs").await.similar[0], "Travel: Hotels");

    let request = v1::ListCollectionsRequest::default();
    let listed = client.list_collections(request).await.unwrap().into_inner().collections;
    let listed: Vec<(String, u64, u64)> = listed.into_iter().map(|one| (one.name, one.files, one.segments)).collect();
    assert_eq!(listed, [("handbook".into(), 1, 2), ("wiki".into(), 1, 1)]);
    let request = v1::ListFilesRequest { collection: "handbook".into(), ..Default::default() };
    let mut files = client.list_files(request).await.unwrap().into_inner();
    let listed = files.message().await.unwrap().unwrap().files;
    assert_eq!((listed[0].path.as_str(), listed[0].segments, listed.len()), ("travel.md", 2, 1));
    assert!(files.message().await.unwrap().is_none());

    let request = v1::DeleteFilesRequest { collection: "handbook".into(), paths: names(&["travel.md", "x"]), ..Default::default() };
    assert_eq!(client.delete_files(request).await.unwrap().into_inner().deleted, 1);
    assert!(search(&mut client, "", &["handbook"], "travel").await.unwrap().is_empty());
    let request = v1::DeleteCollectionRequest { collection: "wiki".into(), ..Default::default() };
    assert!(client.delete_collection(request.clone()).await.unwrap().into_inner().deleted);
    assert!(!client.delete_collection(request).await.unwrap().into_inner().deleted);
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_collection_goes_before_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let (running, mut client) = start(directory.path()).await.unwrap();
    put(&mut client, "", "wiki", "loire.md", &[("Loire", "The Loire is 1,006 km long.")]).await.unwrap();
    put(&mut client, "", "mine", "rivers.md", &[("Loire", "The Loire is 1,012 km long.")]).await.unwrap();
    for (order, text) in [(["wiki", "mine"], "1,006"), (["mine", "wiki"], "1,012")] {
        let opened = open(&mut client, &order, "the loire").await;
        assert!(opened.segment.unwrap().text.contains(text));
        let also: Vec<&str> = opened.also.iter().map(|segment| segment.collection.as_str()).collect();
        assert_eq!(also, [order[1]]);
    }
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_do_not_see_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let (running, mut client) = start(directory.path()).await.unwrap();
    put(&mut client, "acme", "handbook", "a.md", &[("Secret", "The plan.")]).await.unwrap();
    refused(search(&mut client, "other", &["handbook"], "plan").await, Code::NotFound, "UNKNOWN_COLLECTION");
    put(&mut client, "other", "handbook", "b.md", &[("Ours", "Nothing.")]).await.unwrap();
    assert!(search(&mut client, "other", &["handbook"], "plan").await.unwrap().is_empty());
    assert_eq!(search(&mut client, "acme", &["handbook"], "plan").await.unwrap(), ["handbook/Secret"]);
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_are_refused_and_change_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (running, mut client) = start(directory.path()).await.unwrap();
    put(&mut client, "", "c", "a.md", &[("A", "Text.")]).await.unwrap();
    for bad in ["", "../c", "a/b", ".x"] {
        refused(put(&mut client, "", bad, "a.md", &[]).await, Code::InvalidArgument, "BAD_COLLECTION");
    }
    refused(put(&mut client, "No", "c", "a.md", &[]).await, Code::InvalidArgument, "BAD_TENANT");
    refused(put(&mut client, "", "c", "", &[]).await, Code::InvalidArgument, "BAD_PATH");
    refused(put(&mut client, "", "c", "a\u{1b}", &[]).await, Code::InvalidArgument, "BAD_PATH");
    refused(put(&mut client, "", "c", "a.md", &[("", "x")]).await, Code::InvalidArgument, "FIELD_MISSING");
    refused(put(&mut client, "", "c", "a.md", &[("x", &"x".repeat(20_000))]).await, Code::InvalidArgument, "FIELD_TOO_LONG");
    let only = |parts: Vec<PutFileRequest>| tokio_stream::iter(parts);
    refused(client.put_file(only(vec![])).await, Code::InvalidArgument, "FIELD_MISSING");
    refused(client.put_file(only(vec![segments(&[])])).await, Code::InvalidArgument, "FIELD_MISSING");
    refused(client.put_file(only(vec![file("", "c", "a.md"), file("", "c", "b.md")])).await, Code::InvalidArgument, "OUT_OF_ORDER");
    refused(search(&mut client, "", &[], "x").await, Code::InvalidArgument, "FIELD_MISSING");
    refused(search(&mut client, "", &["c"], " ").await, Code::InvalidArgument, "FIELD_MISSING");
    refused(search(&mut client, "", &["c"; 17], "x").await, Code::InvalidArgument, "FIELD_OUT_OF_RANGE");
    refused(search(&mut client, "", &["d"], "x").await, Code::NotFound, "UNKNOWN_COLLECTION");
    assert_eq!(search(&mut client, "", &["c", "c"], "text").await.unwrap(), ["c/A"]);
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_breaks_off_leaves_what_was_there() {
    let directory = tempfile::tempdir().unwrap();
    let (running, mut client) = start(directory.path()).await.unwrap();
    put(&mut client, "", "c", "a.md", &[("A", "Before.")]).await.unwrap();
    let (sender, receiver) = tokio::sync::mpsc::channel(4);
    let mut other = client.clone();
    let call = tokio::spawn(async move { other.put_file(tokio_stream::wrappers::ReceiverStream::new(receiver)).await });
    sender.send(file("", "c", "a.md")).await.unwrap();
    sender.send(segments(&[("A", "After.")])).await.unwrap();
    call.abort();
    let _ = call.await;
    drop(sender);
    assert_eq!(search(&mut client, "", &["c"], "before").await.unwrap(), ["c/A"]);
    running.stop().await.unwrap();

    let (running, mut client) = start(directory.path()).await.unwrap();
    assert_eq!(search(&mut client, "", &["c"], "before").await.unwrap(), ["c/A"]);
    assert!(search(&mut client, "", &["c"], "after").await.unwrap().is_empty());
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_embedder_search_is_by_words_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let (running, mut client) = start(directory.path()).await.unwrap();
    put(&mut client, "", "c", "a.md", &[("A", "A manager approves travel.")]).await.unwrap();
    let request = |strategy: v1::SearchStrategy| v1::SearchSegmentsRequest {
        collections: names(&["c"]),
        query: "manager".into(),
        strategy: strategy.into(),
        ..Default::default()
    };
    let found = client.search_segments(request(v1::SearchStrategy::Unspecified)).await.unwrap().into_inner();
    assert_eq!((found.strategy(), found.segments.len()), (v1::SearchStrategy::Words, 1));
    refused(client.search_segments(request(v1::SearchStrategy::Vectors)).await, Code::FailedPrecondition, "NO_EMBEDDER");
    assert_eq!(client.list_collections(v1::ListCollectionsRequest::default()).await.unwrap().into_inner().embedder, "");
    refused(client.embed(v1::EmbedRequest { texts: names(&["a"]) }).await, Code::FailedPrecondition, "NO_EMBEDDER");
    for texts in [Vec::new(), vec!["a".to_owned(); 65], vec!["a".repeat(8193)]] {
        let status = client.embed(v1::EmbedRequest { texts }).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    }
    running.stop().await.unwrap();
}

/// Needs the weights: `scripts/fetch-embedder`.
#[tokio::test(flavor = "multi_thread")]
async fn vectors_follow_and_find_by_meaning() {
    let weights = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/all-minilm-l6-v2");
    if !weights.join("config.json").is_file() {
        eprintln!("skipped: no weights; run scripts/fetch-embedder");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let config = MemoryConfig {
        data_dir: directory.path().join("memory"),
        documents_dir: directory.path().join("documents"),
        embedder: EmbedderKind::Model,
        embedder_dir: weights,
        ..MemoryConfig::default()
    };
    let (running, mut client) = start_with(config).await.unwrap();
    let text = [("Travel", "Journeys abroad need the consent of a supervisor."), ("Leave", "Everybody has thirty days of holidays.")];
    put(&mut client, "", "c", "a.md", &text).await.unwrap();
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let listed = client.list_collections(v1::ListCollectionsRequest::default()).await.unwrap().into_inner();
        if listed.collections[0].vectors == 2 {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "no vectors: {listed:?}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    // texts of others get vectors of the same model
    let texts = names(&["a manager", "a supervisor", "a potato"]);
    let v1::EmbedResponse { embedder, vectors } = client.embed(v1::EmbedRequest { texts }).await.unwrap().into_inner();
    let cosine = |a: usize, b: usize| vectors[a].values.iter().zip(&vectors[b].values).map(|(a, b)| a * b).sum::<f32>();
    assert!(!embedder.is_empty() && (cosine(0, 0) - 1.0).abs() < 1e-4 && cosine(0, 1) > cosine(0, 2) + 0.2);
    for query in ["who signs off a business trip?", "vacation"] {
        let request = v1::SearchSegmentsRequest { collections: names(&["c"]), query: query.into(), limit: 1, ..Default::default() };
        let found = client.search_segments(request).await.unwrap().into_inner();
        let title = found.segments[0].segment.as_ref().unwrap().title.clone();
        assert_eq!(
            (found.strategy(), title.as_str()),
            (v1::SearchStrategy::Concatenation, if query == "vacation" { "Leave" } else { "Travel" })
        );
    }
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_directory_calls_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let config = MemoryConfig { data_dir: directory.path().to_owned(), documents_dir: PathBuf::new(), ..MemoryConfig::default() };
    let (running, mut client) = start_with(config).await.unwrap();
    refused(search(&mut client, "", &["c"], "x").await, Code::FailedPrecondition, "DOCUMENTS_OFF");
    running.stop().await.unwrap();
}
