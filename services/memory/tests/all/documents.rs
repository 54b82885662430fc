//! Documents over real gRPC, in each store: on disk, and in a Qdrant where `QDRANT_TEST_URL` names one's
//! gRPC address.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use autoact_config::{Common, Loaded, Section};
use autoact_service::{App, Running};
use autoact_wire::memory_v1::documents_client::DocumentsClient;
use autoact_wire::memory_v1::put_file_request::Part;
use autoact_wire::memory_v1::{self as v1, PutFileRequest};
use autoact_wire::status::reason;
use memory::{EmbedderKind, MemoryApp, MemoryConfig, QdrantConfig, StoreKind};
use tonic::transport::Channel;
use tonic::{Code, Status};

type Client = DocumentsClient<Channel>;

/// A store of documents, for one test alone.
struct Bed {
    config: MemoryConfig,
    _directory: tempfile::TempDir,
}

impl Bed {
    fn new(store: StoreKind, url: &str) -> Bed {
        static BEDS: AtomicU32 = AtomicU32::new(0);
        let directory = tempfile::tempdir().unwrap();
        let documents = format!("autoact-test-{}-{}", std::process::id(), BEDS.fetch_add(1, Ordering::Relaxed));
        let config = MemoryConfig {
            data_dir: directory.path().join("memory"),
            documents_store: store,
            documents_dir: directory.path().join("documents"),
            embedder: EmbedderKind::None,
            qdrant: QdrantConfig { url: url.into(), documents, ..QdrantConfig::default() },
            ..MemoryConfig::default()
        };
        Bed { config, _directory: directory }
    }

    async fn start(&self) -> (Running, Client) {
        start_with(self.config.clone()).await.unwrap()
    }

    /// Removes what is in the server.
    async fn clear(self) {
        if self.config.documents_store == StoreKind::Qdrant {
            let client = qdrant_client::Qdrant::from_url(&self.config.qdrant.url).skip_compatibility_check().build().unwrap();
            let own = format!("{}@", self.config.qdrant.documents);
            for collection in client.list_collections().await.unwrap().collections {
                if collection.name.starts_with(&own) {
                    client.delete_collection(collection.name).await.unwrap();
                }
            }
        }
    }
}

/// Every store that can be tested here.
fn beds() -> Vec<Bed> {
    let mut beds = vec![Bed::new(StoreKind::Embedded, "")];
    match std::env::var("QDRANT_TEST_URL") {
        Ok(url) => beds.push(Bed::new(StoreKind::Qdrant, &url)),
        Err(_) => eprintln!("skipped: there is no Qdrant here; set `QDRANT_TEST_URL` to a server's gRPC address"),
    }
    beds
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
    for bed in beds() {
        let (running, mut client) = bed.start().await;
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
        bed.clear().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_collection_goes_before_the_others() {
    for bed in beds() {
        let (running, mut client) = bed.start().await;
        put(&mut client, "", "wiki", "loire.md", &[("Loire", "The Loire is 1,006 km long.")]).await.unwrap();
        put(&mut client, "", "mine", "rivers.md", &[("Loire", "The Loire is 1,012 km long.")]).await.unwrap();
        for (order, text) in [(["wiki", "mine"], "1,006"), (["mine", "wiki"], "1,012")] {
            let opened = open(&mut client, &order, "the loire").await;
            assert!(opened.segment.unwrap().text.contains(text));
            let also: Vec<&str> = opened.also.iter().map(|segment| segment.collection.as_str()).collect();
            assert_eq!(also, [order[1]]);
        }
        running.stop().await.unwrap();
        bed.clear().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_means_what_it_says_or_nearly_says() {
    for bed in beds() {
        let (running, mut client) = bed.start().await;
        let rivers = [("Danube", "It flows to the Black Sea."), ("The Loire", "It is in France."), ("Blue Danube", "A waltz.")];
        put(&mut client, "", "c", "rivers.md", &rivers).await.unwrap();
        put(&mut client, "", "c", "more/rivers.md", &[("Danube", "It begins in the Black Forest.")]).await.unwrap();
        put(&mut client, "", "c", "other/rivers.md", &[("Danube", "It is long.")]).await.unwrap();
        for (asked, title, by_title) in [
            ("danube", "Danube", true),
            ("DANUBE (rivers.md)", "Danube (rivers.md)", true),
            ("Danube (other/rivers.md)", "Danube (other/rivers.md)", true),
            ("loire", "The Loire", true),
            ("Blue Danbue", "Blue Danube", false),
            ("Lioer", "", false),
            ("Loier", "The Loire", false),
            ("Danube flow into", "Danube", false),
            ("who wrote the Blue Danube", "Blue Danube", false),
        ] {
            let opened = open(&mut client, &["c"], asked).await;
            let found = opened.segment.map(|segment| segment.title).unwrap_or_default();
            assert_eq!((found.as_str(), opened.by_title), (title, by_title), "{asked} in {:?}", bed.config.documents_store);
        }
        // others that go by the name are told
        let also = open(&mut client, &["c"], "Danube").await.also;
        let also: Vec<&str> = also.iter().map(|segment| segment.path.as_str()).collect();
        assert_eq!(also, ["more/rivers.md", "other/rivers.md"]);
        for asked in ["Rhine", "?", &"x ".repeat(300)] {
            assert_eq!(open(&mut client, &["c"], asked).await.segment, None, "{asked}");
        }
        assert_eq!(open(&mut client, &["c"], "blue danubes waltz").await.similar[0], "Blue Danube");
        running.stop().await.unwrap();
        bed.clear().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_replaced_whole() {
    for bed in beds() {
        let (running, mut client) = bed.start().await;
        let many: Vec<(String, String)> = (0..600).map(|n| (format!("Part {n}"), format!("old text {n}"))).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|(title, text)| (title.as_str(), text.as_str())).collect();
        assert_eq!(put(&mut client, "", "c", "a.md", &many).await.unwrap(), 600);
        assert_eq!(search(&mut client, "", &["c"], "old 599").await.unwrap()[0], "c/Part 599");
        // from several at once: one of them wins, whole
        let puts = (0..4).map(|n| {
            let mut client = client.clone();
            async move { put(&mut client, "", "c", "a.md", &[("One", &format!("new {n}")), ("Two", &format!("new {n}"))]).await }
        });
        for put in puts.map(tokio::spawn).collect::<Vec<_>>() {
            assert_eq!(put.await.unwrap().unwrap(), 2);
        }
        assert!(search(&mut client, "", &["c"], "old").await.unwrap().is_empty());
        assert_eq!(search(&mut client, "", &["c"], "new").await.unwrap().len(), 2);
        let (one, two) = (open(&mut client, &["c"], "One").await.segment.unwrap(), open(&mut client, &["c"], "Two").await.segment.unwrap());
        assert_eq!(one.text, two.text);
        // an empty file is one too
        put(&mut client, "", "c", "a.md", &[]).await.unwrap();
        let listed = client.list_collections(v1::ListCollectionsRequest::default()).await.unwrap().into_inner().collections;
        assert_eq!((listed[0].files, listed[0].segments), (1, 0));
        running.stop().await.unwrap();
        bed.clear().await;
    }
}

/// Titles and their misspellings lead to the same segments in both stores.
#[tokio::test(flavor = "multi_thread")]
async fn both_stores_open_the_same() {
    let beds = beds();
    let [embedded, qdrant] = &beds[..] else { return };
    let words = ["north", "river", "castle", "saint", "upper", "lake", "mount", "bridge", "stone", "market", "garden", "tower"];
    let title = |n: usize| format!("{} {} {}", words[n % 12], words[n / 12 % 12], words[(n / 144 + 5) % 12]);
    let titles: Vec<String> = (0..400).map(title).collect();
    let text: Vec<(&str, &str)> = titles.iter().map(|title| (title.as_str(), "Some text.")).collect();
    let (first, mut mine) = embedded.start().await;
    let (second, mut theirs) = qdrant.start().await;
    for client in [&mut mine, &mut theirs] {
        put(client, "", "c", "a.md", &text).await.unwrap();
    }
    let mut found = 0;
    for (n, title) in titles.iter().enumerate().step_by(7) {
        let mut letters: Vec<char> = title.chars().collect();
        let at = n % (letters.len() - 1);
        match n % 4 {
            0 => letters.swap(at, at + 1),
            1 => letters.insert(at, 'x'),
            2 => drop(letters.remove(at)),
            _ => {}
        }
        let asked: String = letters.into_iter().collect();
        let (one, other) = (open(&mut mine, &["c"], &asked).await, open(&mut theirs, &["c"], &asked).await);
        let text = |opened: &v1::OpenSegmentResponse| opened.segment.as_ref().map(|segment| segment.title.clone());
        assert_eq!((text(&one), one.by_title), (text(&other), other.by_title), "{asked}");
        found += usize::from(one.segment.is_some());
    }
    assert!(found > 30, "{found}");
    first.stop().await.unwrap();
    second.stop().await.unwrap();
    for bed in beds {
        bed.clear().await;
    }
}

/// Replicas that share a server serve the same documents.
#[tokio::test(flavor = "multi_thread")]
async fn replicas_share_the_documents_of_a_server() {
    let Some(bed) = beds().into_iter().find(|bed| bed.config.documents_store == StoreKind::Qdrant) else { return };
    let (first, mut one) = bed.start().await;
    let config = MemoryConfig { data_dir: bed.config.data_dir.with_file_name("other"), ..bed.config.clone() };
    let (second, mut other) = start_with(config).await.unwrap();
    put(&mut one, "acme", "c", "a.md", &[("Leave", "Thirty days.")]).await.unwrap();
    assert_eq!(search(&mut other, "acme", &["c"], "days").await.unwrap(), ["c/Leave"]);
    // both at once, many times: never a file with parts of two
    for round in 0..20 {
        let text = |who: &str| format!("{who} {round}");
        let (a, b) = (text("alpha"), text("beta"));
        let (a, b) = ([("A", a.as_str()), ("B", a.as_str())], [("A", b.as_str()), ("B", b.as_str()), ("C", b.as_str())]);
        let (put_one, put_other) = tokio::join!(put(&mut one, "acme", "c", "a.md", &a), put(&mut other, "acme", "c", "a.md", &b));
        assert_eq!((put_one.unwrap(), put_other.unwrap()), (2, 3));
        let request = v1::SearchSegmentsRequest {
            tenant: "acme".into(),
            collections: names(&["c"]),
            query: "alpha beta".into(),
            ..Default::default()
        };
        let found = one.search_segments(request).await.unwrap().into_inner().segments;
        let mut texts: Vec<String> = found.iter().map(|found| found.segment.as_ref().unwrap().text.clone()).collect();
        let count = texts.len();
        texts.dedup();
        assert!(texts.len() == 1 && count == if texts[0].starts_with("alpha") { 2 } else { 3 }, "{round}: {count} of {texts:?}");
    }
    first.stop().await.unwrap();
    second.stop().await.unwrap();
    bed.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_do_not_see_each_other() {
    for bed in beds() {
        let (running, mut client) = bed.start().await;
        put(&mut client, "acme", "handbook", "a.md", &[("Secret", "The plan.")]).await.unwrap();
        refused(search(&mut client, "other", &["handbook"], "plan").await, Code::NotFound, "UNKNOWN_COLLECTION");
        put(&mut client, "other", "handbook", "b.md", &[("Ours", "Nothing.")]).await.unwrap();
        assert!(search(&mut client, "other", &["handbook"], "plan").await.unwrap().is_empty());
        assert_eq!(search(&mut client, "acme", &["handbook"], "plan").await.unwrap(), ["handbook/Secret"]);
        running.stop().await.unwrap();
        bed.clear().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_are_refused_and_change_nothing() {
    for bed in beds() {
        let (running, mut client) = bed.start().await;
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
        bed.clear().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_breaks_off_leaves_what_was_there() {
    for bed in beds() {
        let (running, mut client) = bed.start().await;
        put(&mut client, "", "c", "a.md", &[("A", "Before.")]).await.unwrap();
        let (sender, receiver) = tokio::sync::mpsc::channel(4);
        let mut other = client.clone();
        let call = tokio::spawn(async move { other.put_file(tokio_stream::wrappers::ReceiverStream::new(receiver)).await });
        sender.send(file("", "c", "a.md")).await.unwrap();
        sender.send(segments(&[("A", "After.")])).await.unwrap();
        call.abort();
        let _ = call.await;
        assert_eq!(search(&mut client, "", &["c"], "before").await.unwrap(), ["c/A"]);
        // not before: it would end the stream as one does that has sent all
        drop(sender);
        running.stop().await.unwrap();

        let (running, mut client) = bed.start().await;
        assert_eq!(search(&mut client, "", &["c"], "before").await.unwrap(), ["c/A"]);
        assert!(search(&mut client, "", &["c"], "after").await.unwrap().is_empty());
        running.stop().await.unwrap();
        bed.clear().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_embedder_search_is_by_words_and_says_so() {
    for bed in beds() {
        let (running, mut client) = bed.start().await;
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
        bed.clear().await;
    }
}

/// Returns once so many segments of the first collection have vectors.
async fn with_vectors(client: &mut Client, count: u64) {
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let listed = client.list_collections(v1::ListCollectionsRequest::default()).await.unwrap().into_inner();
        if listed.collections[0].vectors == count {
            return;
        }
        assert!(tokio::time::Instant::now() < deadline, "no vectors: {listed:?}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// Needs the weights: `scripts/fetch-embedder`.
#[tokio::test(flavor = "multi_thread")]
async fn vectors_follow_and_find_by_meaning() {
    let weights = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/all-minilm-l6-v2");
    if !weights.join("config.json").is_file() {
        eprintln!("skipped: no weights; run scripts/fetch-embedder");
        return;
    }
    for mut bed in beds() {
        // what is there before the embedder gets vectors too
        let (running, mut client) = bed.start().await;
        put(&mut client, "", "c", "a.md", &[("Travel", "Journeys abroad need the consent of a supervisor.")]).await.unwrap();
        running.stop().await.unwrap();
        bed.config.embedder = EmbedderKind::Model;
        bed.config.embedder_dir.clone_from(&weights);
        let (running, mut client) = bed.start().await;
        put(&mut client, "", "c", "b.md", &[("Leave", "Everybody has thirty days of holidays.")]).await.unwrap();
        with_vectors(&mut client, 2).await;
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
        // a file that is replaced loses its vectors with its segments
        put(&mut client, "", "c", "b.md", &[("Leave", "Nobody has holidays."), ("Pay", "Wages are paid in May.")]).await.unwrap();
        with_vectors(&mut client, 3).await;
        assert_eq!(client.list_collections(v1::ListCollectionsRequest::default()).await.unwrap().into_inner().collections[0].segments, 3);
        running.stop().await.unwrap();
        bed.clear().await;
    }
}

/// Needs the weights: `scripts/fetch-embedder`.
#[tokio::test(flavor = "multi_thread")]
async fn a_collection_that_another_replica_makes_anew_gets_vectors() {
    let weights = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/all-minilm-l6-v2");
    let Some(mut bed) = beds().into_iter().find(|bed| bed.config.documents_store == StoreKind::Qdrant) else { return };
    if !weights.join("config.json").is_file() {
        eprintln!("skipped: no weights; run scripts/fetch-embedder");
        return;
    }
    let other = MemoryConfig { data_dir: bed.config.data_dir.with_file_name("other"), ..bed.config.clone() };
    let (second, mut theirs) = start_with(other).await.unwrap();
    bed.config.embedder = EmbedderKind::Model;
    bed.config.embedder_dir = weights;
    let (first, mut mine) = bed.start().await;
    put(&mut mine, "", "c", "a.md", &[("A", "Before.")]).await.unwrap();
    with_vectors(&mut mine, 1).await;
    theirs.delete_collection(v1::DeleteCollectionRequest { collection: "c".into(), ..Default::default() }).await.unwrap();
    put(&mut theirs, "", "c", "a.md", &[("A", "After."), ("B", "After that.")]).await.unwrap();
    // what this one stores wakes its embedder, which has seen another collection of that name
    put(&mut mine, "", "c", "b.md", &[("C", "Later.")]).await.unwrap();
    with_vectors(&mut mine, 3).await;
    first.stop().await.unwrap();
    second.stop().await.unwrap();
    bed.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_directory_calls_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let config = MemoryConfig { data_dir: directory.path().to_owned(), documents_dir: PathBuf::new(), ..MemoryConfig::default() };
    let (running, mut client) = start_with(config).await.unwrap();
    refused(search(&mut client, "", &["c"], "x").await, Code::FailedPrecondition, "DOCUMENTS_OFF");
    running.stop().await.unwrap();
}
