//! The memory service over the real embedded engine, through gRPC.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use autoact_config::{Common, Loaded, Section};
use autoact_service::{App, Running};
use autoact_trajectory::Tenant;
use autoact_wire::memory_v1;
use autoact_wire::memory_v1::memory_client::MemoryClient;
use autoact_wire::status::{metadata, reason};
use memory::{EmbeddedStore, Kind, Memory, MemoryApp, MemoryConfig, MemoryStore, OpenError, Query, StoreError, TaskMemory};
use tonic::Code;
use tonic::transport::Channel;

async fn start(data_dir: &Path) -> Result<(Running, MemoryClient<Channel>), String> {
    let mut common = Common::on_ports(0, 0);
    common.grace_period = std::time::Duration::from_secs(5);
    let config = MemoryConfig { data_dir: data_dir.to_owned(), documents_dir: PathBuf::new(), ..MemoryConfig::default() };
    let app = App::build::<MemoryApp>(Loaded::new(common, config)).await.map_err(|error| error.to_string())?;
    let running = app.start();
    let channel = autoact_wire::client::connect_lazy(&running.addr().to_string()).unwrap();
    Ok((running, MemoryClient::new(channel)))
}

fn task(id: &str, question: &str, answer: &str, approved: bool) -> memory_v1::TaskMemory {
    let finished_at = Some(prost_types::Timestamp { seconds: 1_700_000_000, nanos: 0 });
    memory_v1::TaskMemory {
        task_id: id.into(),
        question: question.into(),
        answer: answer.into(),
        approved,
        steps: 3,
        finished_at,
        tenant: "default".into(),
        conversation_id: String::new(),
    }
}

async fn remember(client: &mut MemoryClient<Channel>, task: memory_v1::TaskMemory) {
    let memory = Some(memory_v1::remember_request::Memory::Task(task));
    client.remember(memory_v1::RememberRequest { memory }).await.unwrap();
}

async fn recall(client: &mut MemoryClient<Channel>, query: &str, limit: u32, approved_only: bool) -> Vec<memory_v1::TaskMemory> {
    let request = memory_v1::RecallRequest {
        kind: memory_v1::MemoryKind::Task as i32,
        query: query.into(),
        limit,
        approved_only,
        ..Default::default()
    };
    let memories = client.recall(request).await.unwrap().into_inner().memories;
    assert!(memories.is_sorted_by(|a, b| a.score >= b.score));
    memories
        .into_iter()
        .map(|recalled| {
            assert!(recalled.score > 0.0);
            let Some(memory_v1::recalled_memory::Memory::Task(task)) = recalled.memory else { panic!("not a task") };
            task
        })
        .collect()
}

fn ids(tasks: &[memory_v1::TaskMemory]) -> Vec<&str> {
    tasks.iter().map(|task| task.task_id.as_str()).collect()
}

async fn fill(client: &mut MemoryClient<Channel>) {
    remember(client, task("loire", "Which country does the Loire flow through?", "France", true)).await;
    remember(client, task("rhine", "Which country does the river Rhine end in?", "Netherlands", true)).await;
    remember(client, task("tome", "What is the capital of São Tomé and Príncipe?", "São Tomé", false)).await;
    remember(client, task("iron", "What is the symbol of iron?", "Fe", true)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn similar_tasks_are_recalled() {
    let directory = tempfile::tempdir().unwrap();
    let (running, mut client) = start(directory.path()).await.unwrap();
    assert!(recall(&mut client, "anything", 0, false).await.is_empty());
    fill(&mut client).await;

    let found = recall(&mut client, "through which countries flows the Loire", 0, false).await;
    assert_eq!(ids(&found)[0], "loire");
    assert_eq!(found[0], task("loire", "Which country does the Loire flow through?", "France", true));
    // rare words count more than frequent ones
    assert_eq!(ids(&recall(&mut client, "country Rhine", 10, false).await), ["rhine", "loire"]);
    assert_eq!(ids(&recall(&mut client, "country Rhine", 1, false).await), ["rhine"]);
    // case, diacritics and answers
    assert_eq!(ids(&recall(&mut client, "SAO TOME", 10, false).await), ["tome"]);
    assert_eq!(ids(&recall(&mut client, "fe", 10, false).await), ["iron"]);
    // only what was approved
    assert!(recall(&mut client, "SAO TOME", 10, true).await.is_empty());
    assert_eq!(ids(&recall(&mut client, "symbol", 10, true).await), ["iron"]);
    // nothing in common, and nothing but stop words
    assert!(recall(&mut client, "zebra", 10, false).await.is_empty());
    assert!(recall(&mut client, "what is the", 10, false).await.is_empty());
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn remembering_twice_is_one_memory_and_forgetting_ends_it() {
    let directory = tempfile::tempdir().unwrap();
    let (running, mut client) = start(directory.path()).await.unwrap();
    fill(&mut client).await;
    remember(&mut client, task("iron", "What is the symbol of tungsten?", "W", false)).await;
    assert!(recall(&mut client, "iron", 10, false).await.is_empty());
    let found = recall(&mut client, "symbol", 10, false).await;
    assert_eq!(found, [task("iron", "What is the symbol of tungsten?", "W", false)]);

    let forget = memory_v1::ForgetRequest { kind: memory_v1::MemoryKind::Task as i32, id: "iron".into(), ..Default::default() };
    assert!(client.forget(forget.clone()).await.unwrap().into_inner().forgotten);
    assert!(!client.forget(forget).await.unwrap().into_inner().forgotten);
    assert!(recall(&mut client, "symbol", 10, false).await.is_empty());
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn memories_survive_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let (running, mut client) = start(directory.path()).await.unwrap();
        if round == 0 {
            fill(&mut client).await;
        }
        assert_eq!(ids(&recall(&mut client, "Loire", 10, false).await), ["loire"], "round {round}");
        remember(&mut client, task(&format!("round-{round}"), "Which round is this?", &format!("round {round}"), true)).await;
        assert_eq!(recall(&mut client, "round", 10, false).await.len(), round + 1);
        running.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_say_what_is_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let (running, mut client) = start(directory.path()).await.unwrap();
    let kind = memory_v1::MemoryKind::Task as i32;
    let recall = |kind, query: &str, limit| memory_v1::RecallRequest { kind, query: query.into(), limit, ..Default::default() };
    for (request, expected) in [
        (recall(kind, " ", 5), "FIELD_MISSING"),
        (recall(kind, "x", 101), "LIMIT_OUT_OF_RANGE"),
        (recall(0, "x", 5), "UNKNOWN_KIND"),
        (recall(7, "x", 5), "UNKNOWN_KIND"),
        (recall(kind, &"x".repeat(1 << 19), 5), "FIELD_TOO_LONG"),
    ] {
        let status = client.recall(request).await.unwrap_err();
        assert_eq!((status.code(), reason(&status).as_deref()), (Code::InvalidArgument, Some(expected)), "{status}");
    }
    let wrap = |task| memory_v1::RememberRequest { memory: Some(memory_v1::remember_request::Memory::Task(task)) };
    for (request, field) in [
        (memory_v1::RememberRequest { memory: None }, "memory"),
        (wrap(task("", "What?", "That", true)), "task.task_id"),
        (wrap(task("a", "", "That", true)), "task.question"),
        (wrap(task("a", "What?", &"x".repeat(1 << 20), true)), "task.answer"),
    ] {
        let status = client.remember(request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().contains(field), "{}", status.message());
    }
    let status = client.forget(memory_v1::ForgetRequest { kind, ..Default::default() }).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    let tenant = || "a.b".to_owned();
    let statuses = [
        (client.recall(memory_v1::RecallRequest { tenant: tenant(), ..recall(kind, "x", 5) }).await.unwrap_err(), "tenant"),
        (
            client.forget(memory_v1::ForgetRequest { kind, id: "x".into(), tenant: tenant(), ..Default::default() }).await.unwrap_err(),
            "tenant",
        ),
        (
            client.remember(wrap(memory_v1::TaskMemory { tenant: tenant(), ..task("a", "What?", "That", true) })).await.unwrap_err(),
            "task.tenant",
        ),
    ];
    for (status, field) in statuses {
        assert_eq!((status.code(), reason(&status).as_deref()), (Code::InvalidArgument, Some("BAD_TENANT")), "{status}");
        assert_eq!(metadata(&status), [("field".to_owned(), field.to_owned()), ("value".to_owned(), tenant())].into());
    }
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn many_callers_at_once_are_all_served() {
    let directory = tempfile::tempdir().unwrap();
    let (running, client) = start(directory.path()).await.unwrap();
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..128 {
        let mut client = client.clone();
        calls.spawn(async move {
            remember(&mut client, task(&format!("t{n}"), &format!("What is number{n}?"), "Thimphu", n % 2 == 0)).await;
            assert_eq!(ids(&recall(&mut client, &format!("number{n}"), 10, false).await), [format!("t{n}")]);
        });
    }
    calls.join_all().await;
    let mut client = client.clone();
    assert_eq!(recall(&mut client, "thimphu", 100, true).await.len(), 64);
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_cannot_be_used_is_told_at_start() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path().join("memory");
    let (running, mut client) = start(&dir).await.unwrap();
    fill(&mut client).await;
    let error = start(&dir).await.unwrap_err();
    assert!(error.contains("is in use by another process; fix: stop the other memory service"), "{error}");
    running.stop().await.unwrap();

    std::fs::write(dir.join("manifest.json"), "{").unwrap();
    let error = start(&dir).await.unwrap_err();
    assert!(error.contains("is damaged") && error.contains("manifest.json") && error.contains("fix: restore it"), "{error}");

    std::fs::write(dir.join("manifest.json"), r#"{"layout": 9, "words": "x"}"#).unwrap();
    let error = start(&dir).await.unwrap_err();
    assert!(error.contains("was made with layout 9, words `x`; this is layout 2"), "{error}");

    let foreign = directory.path().join("foreign");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("thesis.tex"), "").unwrap();
    let error = start(&foreign).await.unwrap_err();
    assert!(error.contains("is not a memory directory: it holds `thesis.tex`"), "{error}");
    assert!(!foreign.join("manifest.json").exists());

    let file = foreign.join("thesis.tex");
    assert!(start(&file).await.unwrap_err().contains("cannot use the memory directory"));
}

/// Two tenants with the same task ids: neither reaches what is the other's.
#[tokio::test(flavor = "multi_thread")]
async fn tenants_have_their_memories_to_themselves() {
    let directory = tempfile::tempdir().unwrap();
    let of = |tenant: &str, id: &str, answer: &str| memory_v1::TaskMemory {
        tenant: tenant.into(),
        ..task(id, "What is the symbol of iron?", answer, true)
    };
    for round in 0..2 {
        let (running, mut client) = start(directory.path()).await.unwrap();
        if round == 0 {
            for tenant in ["acme", "beta-2", ""] {
                remember(&mut client, of(tenant, "iron", &format!("Fe says {tenant}"))).await;
            }
            remember(&mut client, of("acme", "steel", "none")).await;
        }
        let mut recalled = async |tenant: &str| {
            let kind = memory_v1::MemoryKind::Task as i32;
            let request = memory_v1::RecallRequest {
                kind,
                query: "symbol iron fe acme beta".into(),
                limit: 100,
                tenant: tenant.into(),
                ..Default::default()
            };
            let memories = client.recall(request).await.unwrap().into_inner().memories;
            let task = |recalled: memory_v1::RecalledMemory| match recalled.memory.unwrap() {
                memory_v1::recalled_memory::Memory::Task(task) => task,
                other => panic!("{other:?}"),
            };
            let mut tasks: Vec<memory_v1::TaskMemory> = memories.into_iter().map(task).collect();
            tasks.sort_by(|a, b| a.task_id.cmp(&b.task_id));
            tasks
        };
        assert_eq!(recalled("acme").await, [of("acme", "iron", "Fe says acme"), of("acme", "steel", "none")], "round {round}");
        assert_eq!(recalled("beta-2").await, [of("beta-2", "iron", "Fe says beta-2")], "round {round}");
        // no tenant is the tenant `default`
        assert_eq!(recalled("").await, [of("default", "iron", "Fe says ")], "round {round}");
        assert_eq!(recalled("default").await, recalled("").await);
        assert!(recalled("gamma").await.is_empty());
        running.stop().await.unwrap();
    }
    let (running, mut client) = start(directory.path()).await.unwrap();
    let forget = |tenant: &str, id: &str| memory_v1::ForgetRequest {
        kind: memory_v1::MemoryKind::Task as i32,
        id: id.into(),
        tenant: tenant.into(),
        ..Default::default()
    };
    assert!(!client.forget(forget("beta-2", "steel")).await.unwrap().into_inner().forgotten, "another tenant's");
    assert!(client.forget(forget("acme", "iron")).await.unwrap().into_inner().forgotten);
    assert!(!client.forget(forget("acme", "iron")).await.unwrap().into_inner().forgotten);
    assert!(client.forget(forget("beta-2", "iron")).await.unwrap().into_inner().forgotten, "it has its own");
    assert!(client.forget(forget("default", "iron")).await.unwrap().into_inner().forgotten);
    running.stop().await.unwrap();
}

/// A directory from before there were tenants (`fixtures/without-tenants`) is the default tenant's,
/// and goes on as such.
#[tokio::test(flavor = "multi_thread")]
async fn memories_from_before_tenants_are_the_default_tenants() {
    let directory = tempfile::tempdir().unwrap();
    copy_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/without-tenants"), directory.path());
    let store = EmbeddedStore::open(directory.path()).await.unwrap();
    let acme: Tenant = "acme".parse().unwrap();
    let loire = "Which country does the Loire flow through?";
    let recalled = async |tenant: &Tenant, text: &str| -> Vec<String> {
        let found = store.recall(Query { tenant: tenant.clone(), approved_only: false, ..query(text) }).await.unwrap();
        assert!(found.iter().all(|found| found.memory.tenant() == tenant));
        found.iter().map(|found| found.memory.id().to_owned()).collect()
    };
    assert_eq!(recalled(&Tenant::default(), "Loire").await, ["loire"]);
    assert_eq!(recalled(&Tenant::default(), "iron").await, ["iron"]);
    assert!(recalled(&Tenant::default(), "forgotten").await.is_empty());
    assert!(recalled(&acme, "Loire iron").await.is_empty());
    // another tenant's task of the same id stands beside it
    let Memory::Task(theirs) = memory("loire", loire) else { panic!() };
    store.remember(Memory::Task(TaskMemory { tenant: acme.clone(), ..theirs })).await.unwrap();
    assert_eq!(recalled(&acme, "Loire").await, ["loire"]);
    assert!(store.forget(acme.clone(), Kind::Task, "loire".into()).await.unwrap());
    assert!(!store.forget(acme.clone(), Kind::Task, "iron".into()).await.unwrap());
    // and the default tenant's is replaced, not doubled
    store.remember(memory("loire", loire)).await.unwrap();
    assert_eq!(recalled(&Tenant::default(), "Loire").await, ["loire"]);
    assert!(store.forget(Tenant::default(), Kind::Task, "loire".into()).await.unwrap());
    assert!(recalled(&Tenant::default(), "Loire").await.is_empty());
    store.close().await;
}

/// A directory of the versions that used qdrant-edge is refused as it is, and the fix is named.
#[tokio::test(flavor = "multi_thread")]
async fn a_directory_of_qdrant_edge_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let manifest = r#"{"layout": 1, "terms": "bm25-english-folded-k1.2-b0.75-avg10", "embedder": null, "dimension": null}"#;
    std::fs::write(directory.path().join("manifest.json"), manifest).unwrap();
    std::fs::create_dir(directory.path().join("shard")).unwrap();
    std::fs::write(directory.path().join("shard/edge_config.json"), "{}").unwrap();
    let before = contents(directory.path());
    let error = start(directory.path()).await.unwrap_err();
    assert!(error.contains("earlier version (qdrant-edge)") && error.contains("fix: move it away"), "{error}");
    assert_eq!(contents(directory.path()), before);
}

/// A file that is overwritten, cut short or gone is told at start, and nothing else is touched.
#[tokio::test(flavor = "multi_thread")]
async fn damaged_files_are_told_at_start() {
    let directory = tempfile::tempdir().unwrap();
    let good = directory.path().join("good");
    let (running, mut client) = start(&good).await.unwrap();
    fill(&mut client).await;
    let forget = memory_v1::ForgetRequest { kind: memory_v1::MemoryKind::Task as i32, id: "iron".into(), ..Default::default() };
    client.forget(forget).await.unwrap();
    running.stop().await.unwrap();

    type Damage = fn(&Path);
    let damages: [(&str, Damage); 3] = [
        ("overwritten", |file| {
            let length = std::fs::metadata(file).unwrap().len();
            let garbage: Vec<u8> = (0..length).map(|at| (at * 37 + 11) as u8).collect();
            std::fs::write(file, garbage).unwrap();
        }),
        ("cut short", |file| {
            let length = std::fs::metadata(file).unwrap().len();
            std::fs::File::options().write(true).open(file).unwrap().set_len(length / 2).unwrap();
        }),
        ("gone", |file| std::fs::remove_file(file).unwrap()),
    ];
    let mut damaged = 0;
    for name in contents(&good).into_keys().filter(|name| name.starts_with("index")) {
        for (what, damage) in damages {
            let copy = tempfile::tempdir().unwrap();
            copy_all(&good, copy.path());
            damage(&copy.path().join(&name));
            let before = contents(copy.path());
            match EmbeddedStore::open(copy.path()).await {
                Err(OpenError::Damaged { .. }) => damaged += 1,
                Err(error) => panic!("{} {what}: {error}", name.display()),
                Ok(_) => panic!("{} {what}: not told", name.display()),
            }
            assert_eq!(contents(copy.path()), before, "{} {what}", name.display());
        }
    }
    assert!(damaged > 20, "{damaged}");
    EmbeddedStore::open(&good).await.unwrap().close().await;
}

/// What a crash leaves is what is on disk when the call returns.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_remembered_is_on_disk() {
    let directory = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(directory.path()).await.unwrap();
    for n in 0..20 {
        let id = format!("t{n}");
        store.remember(memory(&id, &format!("What is number{n}?"))).await.unwrap();
        if n % 3 == 0 {
            assert!(store.forget(Tenant::default(), Kind::Task, id).await.unwrap());
        }
        let copy = tempfile::tempdir().unwrap();
        copy_all(directory.path(), copy.path());
        let copied = EmbeddedStore::open(copy.path()).await.unwrap();
        let found = copied.recall(query(&format!("number{n}"))).await.unwrap();
        assert_eq!(found.len(), usize::from(n % 3 != 0), "{n}");
        copied.close().await;
    }
    store.close().await;
    assert!(matches!(store.recall(query("number1")).await, Err(StoreError::Closed)));
    assert!(matches!(store.remember(memory("x", "x")).await, Err(StoreError::Closed)));
    assert!(store.check().await.is_err());
}

/// More callers than may wait are turned away; those that are not are served.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_turns_callers_away() {
    const CALLS: usize = 2000;
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(EmbeddedStore::open(directory.path()).await.unwrap());
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..CALLS {
        let store = store.clone();
        calls.spawn(async move { (n, store.remember(memory(&format!("t{n}"), &format!("number{n}"))).await) });
    }
    let mut remembered = Vec::new();
    while let Some(call) = calls.join_next().await {
        match call.unwrap() {
            (n, Ok(())) => remembered.push(n),
            (_, Err(StoreError::Busy { .. })) => {}
            (n, Err(error)) => panic!("{n}: {error}"),
        }
    }
    assert!(remembered.len() >= 256, "{}", remembered.len());
    let found = store.recall(Query { limit: CALLS, ..query("answer") }).await.unwrap();
    let mut found: Vec<usize> = found.iter().map(|found| found.memory.id()[1..].parse().unwrap()).collect();
    found.sort_unstable();
    remembered.sort_unstable();
    assert_eq!(found, remembered);
    store.close().await;
}

fn memory(id: &str, question: &str) -> Memory {
    let (task_id, question, answer) = (id.into(), question.into(), "answer".into());
    let (tenant, conversation) = (Tenant::default(), String::new());
    Memory::Task(TaskMemory { tenant, conversation, task_id, question, answer, approved: true, steps: 1, finished_at: None })
}

fn query(text: &str) -> Query {
    let (tenant, conversation) = (Tenant::default(), String::new());
    Query { tenant, kind: Kind::Task, conversation, text: text.into(), limit: 10, approved_only: true }
}

/// The files below a directory and what is in them, but for the locks, and for drafts that are
/// renamed into place while others are read.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = PathBuf::from(path.file_name().unwrap());
        if path.is_dir() {
            found.extend(contents(&path).into_iter().map(|(below, bytes)| (name.join(below), bytes)));
        } else if !name.to_string_lossy().ends_with("lock") && !name.to_string_lossy().starts_with(".tmp") {
            found.insert(name, std::fs::read(path).unwrap());
        }
    }
    found
}

fn copy_all(from: &Path, to: &Path) {
    for (name, bytes) in contents(from) {
        let file = to.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, bytes).unwrap();
    }
}

#[test]
fn settings_are_checked() {
    let load = |pairs: &[(&str, &str)]| {
        let flags = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*key).to_owned(), (*value).to_owned())).collect();
        autoact_config::load::<MemoryConfig>(&autoact_config::Sources { flags, ..Default::default() })
    };
    assert_eq!(MemoryConfig::common().listen.port(), 7404);
    assert!(load(&[]).is_ok());
    assert!(load(&[("store", "qdrant"), ("qdrant.url", "http://qdrant:6334"), ("qdrant.timeout", "2s")]).is_ok());
    assert!(load(&[("embedder", "minilm")]).is_err());
    let error = load(&[("embedder", "server")]).unwrap_err().to_string();
    assert!(error.contains("embedder_server.url") && error.contains("embedder_server.model"), "{error}");
    let error = load(&[("store", "qdrant"), ("qdrant.url", "nowhere"), ("qdrant.collection", "a/b")]).unwrap_err().to_string();
    assert!(error.contains("qdrant.url") && error.contains("qdrant.collection"), "{error}");
    assert!(load(&[("store", "redis")]).is_err());
}
