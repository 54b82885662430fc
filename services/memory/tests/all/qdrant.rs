//! The Qdrant store. What needs a server runs where `QDRANT_TEST_URL` names one's gRPC address, and
//! says that it was left out where not:
//! `QDRANT_TEST_URL=http://127.0.0.1:6334 cargo nextest run --workspace -E 'binary(qdrant)'`.

use std::sync::Arc;
use std::time::Duration;

use autoact_config::{Common, Loaded};
use autoact_embedding::{EmbedError, Embedder};
use autoact_service::App;
use autoact_trajectory::Tenant;
use autoact_wire::memory_v1;
use autoact_wire::memory_v1::memory_client::MemoryClient;
use memory::{
    Encoder, Kind, Memory, MemoryApp, MemoryConfig, MemoryStore, QdrantConfig, QdrantStore, Query, StoreError, StoreKind, TaskMemory,
};
use tonic::Code;

fn config(url: &str) -> QdrantConfig {
    let collection = format!("autoact-test-{}", std::process::id());
    QdrantConfig { url: url.into(), collection, timeout: Duration::from_secs(2), ..QdrantConfig::default() }
}

fn memory(id: &str, question: &str, approved: bool) -> Memory {
    let (task_id, question, answer) = (id.into(), question.into(), "x".into());
    let (tenant, conversation) = (Tenant::default(), String::new());
    Memory::Task(TaskMemory { tenant, conversation, task_id, question, answer, approved, steps: 1, finished_at: None })
}

/// A port that nothing listens on.
fn nowhere() -> String {
    // a reserved port: a free one may be taken by another test meanwhile
    "http://127.0.0.1:1".to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_is_waited_for() {
    let url = nowhere();
    let store = QdrantStore::new(&config(&url), Encoder::new(None)).unwrap();
    let prepared = store.prepare().await;
    assert!(matches!(prepared, Err(StoreError::Unreachable { .. })), "{prepared:?}");

    let settings =
        MemoryConfig { store: StoreKind::Qdrant, qdrant: config(&url), documents_dir: Default::default(), ..MemoryConfig::default() };
    let app = App::build::<MemoryApp>(Loaded::new(Common::on_ports(0, 0), settings)).await.unwrap();
    let running = app.start();
    assert_eq!(running.readiness().waiting(), ["qdrant"]);
    let mut client = MemoryClient::new(autoact_wire::client::connect_lazy(&running.addr().to_string()).unwrap());
    let request =
        memory_v1::RecallRequest { kind: memory_v1::MemoryKind::Task as i32, query: "iron".into(), limit: 5, ..Default::default() };
    let status = client.recall(request).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert!(status.message().contains(&url), "{}", status.message());
    assert!(autoact_wire::status::retryable(&status));
    running.stop().await.unwrap();
}

/// The address of a real server, or a line that says that the test is left out.
fn server() -> Option<String> {
    let url = std::env::var("QDRANT_TEST_URL").ok();
    if url.is_none() {
        eprintln!("skipped: there is no Qdrant here; set `QDRANT_TEST_URL` to a server's gRPC address, such as http://127.0.0.1:6334");
    }
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn memories_are_kept_in_a_real_server() {
    let Some(url) = server() else { return };
    let config = config(&url);
    let store = QdrantStore::new(&config, Encoder::new(None)).unwrap();
    store.prepare().await.unwrap();
    store.prepare().await.unwrap();
    store.remember(memory("rhine", "Which country does the Rhine end in?", true)).await.unwrap();
    store.remember(memory("iron", "What is the symbol of iron?", false)).await.unwrap();
    store.remember(memory("iron", "What is the symbol of tungsten?", false)).await.unwrap();
    let query = |text: &str, approved_only| Query {
        tenant: Tenant::default(),
        kind: Kind::Task,
        conversation: String::new(),
        text: text.into(),
        limit: 5,
        approved_only,
    };
    let found = store.recall(query("symbols", false)).await.unwrap();
    assert_eq!(found.iter().map(|found| &found.memory).collect::<Vec<_>>(), [&memory("iron", "What is the symbol of tungsten?", false)]);
    assert!(store.recall(query("symbols", true)).await.unwrap().is_empty());
    // another tenant's memory of the same id
    let acme: Tenant = "acme".parse().unwrap();
    let Memory::Task(theirs) = memory("iron", "What is the symbol of zinc?", true) else { panic!() };
    let theirs = Memory::Task(TaskMemory { tenant: acme.clone(), ..theirs });
    store.remember(theirs.clone()).await.unwrap();
    assert_eq!(store.recall(query("symbols", false)).await.unwrap().len(), 1);
    let found = store.recall(Query { tenant: acme.clone(), ..query("symbols", false) }).await.unwrap();
    assert_eq!(found.into_iter().map(|found| found.memory).collect::<Vec<_>>(), [theirs]);
    // a memory from before there were tenants names none: it is the default tenant's
    let untenanted = qdrant_client::Qdrant::from_url(&url).skip_compatibility_check().build().unwrap();
    let everything = qdrant_client::qdrant::Filter::must([qdrant_client::qdrant::Condition::matches("tenant", "default".to_owned())]);
    let delete = qdrant_client::qdrant::DeletePayloadPointsBuilder::new(&config.collection, vec!["tenant".to_owned()]);
    untenanted.delete_payload(delete.points_selector(everything).wait(true)).await.unwrap();
    assert_eq!(store.recall(query("symbols", false)).await.unwrap().len(), 1);
    assert!(store.forget(acme, Kind::Task, "iron".into()).await.unwrap());
    assert!(store.forget(Tenant::default(), Kind::Task, "iron".into()).await.unwrap());
    assert!(!store.forget(Tenant::default(), Kind::Task, "iron".into()).await.unwrap());
    let client = qdrant_client::Qdrant::from_url(&url).skip_compatibility_check().build().unwrap();
    client.delete_collection(&config.collection).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn conversations_are_kept_in_a_real_server() {
    let Some(url) = server() else { return };
    let mut config = config(&url);
    config.collection += "-conversations";
    let store = QdrantStore::new(&config, Encoder::new(None)).unwrap();
    store.prepare().await.unwrap();
    crate::common::exercise(Arc::new(store), "acme", "default").await;
    let client = qdrant_client::Qdrant::from_url(&url).skip_compatibility_check().build().unwrap();
    client.delete_collection(&config.collection).await.unwrap();
}

/// A scripted embedder, for tests only: it knows two meanings.
struct TwoMeanings;

impl Embedder for TwoMeanings {
    fn name(&self) -> &str {
        "two-meanings"
    }

    fn dimension(&self) -> usize {
        2
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let water = |text: &&str| ["river", "stream", "brook"].iter().any(|word| text.contains(word));
        Ok(texts.iter().map(|text| if water(text) { vec![1.0, 0.1] } else { vec![0.1, 1.0] }).collect())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dense_vectors_stand_beside_the_terms_in_a_real_server() {
    let Some(url) = server() else { return };
    let mut config = config(&url);
    config.collection += "-dense";
    let store = QdrantStore::new(&config, Encoder::new(Some(Arc::new(TwoMeanings)))).unwrap();
    store.prepare().await.unwrap();
    store.remember(memory("water", "a river", true)).await.unwrap();
    store.remember(memory("metal", "some iron", true)).await.unwrap();
    let query = |text: &str| Query {
        tenant: Tenant::default(),
        kind: Kind::Task,
        conversation: String::new(),
        text: text.into(),
        limit: 1,
        approved_only: true,
    };
    // no word in common, but the meaning
    assert_eq!(store.recall(query("a brook")).await.unwrap()[0].memory.id(), "water");
    assert_eq!(store.recall(query("iron")).await.unwrap()[0].memory.id(), "metal");
    let client = qdrant_client::Qdrant::from_url(&url).skip_compatibility_check().build().unwrap();
    client.delete_collection(&config.collection).await.unwrap();
}
