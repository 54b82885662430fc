//! Turns of conversations and forgetting: over the real embedded store, and through gRPC.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::common::*;
use autoact_config::{Common, Loaded};
use autoact_service::{App, Running};
use autoact_wire::memory_v1::memory_client::MemoryClient;
use autoact_wire::memory_v1::{self, MemoryKind};
use autoact_wire::status::reason;
use memory::{EmbeddedStore, Kind, Memories, MemoryApp, MemoryConfig, Scope, TimeToLive};
use proptest::prelude::*;
use tonic::Code;
use tonic::transport::Channel;

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_store_keeps_conversations() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(EmbeddedStore::open(directory.path()).await.unwrap());
    exercise(store, "acme", "default").await;
}

async fn start(data_dir: &Path, change: impl FnOnce(&mut MemoryConfig)) -> (Running, MemoryClient<Channel>) {
    let mut common = Common::on_ports(0, 0);
    common.grace_period = Duration::from_secs(5);
    let mut config = MemoryConfig { data_dir: data_dir.to_owned(), documents_dir: PathBuf::new(), ..MemoryConfig::default() };
    change(&mut config);
    let running = App::build::<MemoryApp>(Loaded::new(common, config)).await.unwrap().start();
    let channel = autoact_wire::client::connect_lazy(&running.addr().to_string()).unwrap();
    (running, MemoryClient::new(channel))
}

fn told(conversation: &str, id: &str, question: &str, minutes: u64) -> memory_v1::RememberRequest {
    let turn = memory_v1::ConversationTurn {
        tenant: String::new(),
        conversation_id: conversation.into(),
        task_id: id.into(),
        question: question.into(),
        answer: "Nantes".into(),
        approved: true,
        finished_at: ago(minutes),
    };
    memory_v1::RememberRequest { memory: Some(memory_v1::remember_request::Memory::Turn(turn)) }
}

fn asked(conversation: &str, query: &str) -> memory_v1::RecallRequest {
    let (kind, conversation_id) = (MemoryKind::Conversation as i32, conversation.into());
    memory_v1::RecallRequest { kind, conversation_id, query: query.into(), neighbours: 1, latest: true, ..Default::default() }
}

async fn ids(client: &mut MemoryClient<Channel>, request: memory_v1::RecallRequest) -> Vec<String> {
    let memories = client.recall(request).await.unwrap().into_inner().memories;
    let id = |recalled: memory_v1::RecalledMemory| match recalled.memory.unwrap() {
        memory_v1::recalled_memory::Memory::Turn(turn) => turn.task_id,
        other => panic!("{other:?}"),
    };
    memories.into_iter().map(id).collect()
}

async fn list(client: &mut MemoryClient<Channel>, request: memory_v1::ListMemoriesRequest) -> Vec<String> {
    let (mut request, mut listed) = (request, Vec::new());
    loop {
        let memory_v1::ListMemoriesResponse { memories, next_page_token } =
            client.list_memories(request.clone()).await.unwrap().into_inner();
        listed.extend(memories.into_iter().map(|stored| match stored.memory.unwrap() {
            memory_v1::stored_memory::Memory::Task(task) => task.task_id,
            memory_v1::stored_memory::Memory::Turn(turn) => turn.task_id,
        }));
        if next_page_token.is_empty() {
            return listed;
        }
        request.page_token = next_page_token;
    }
}

/// Whether the bytes of a word stand in any file below a directory.
fn on_disk(directory: &Path, word: &str) -> bool {
    std::fs::read_dir(directory).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return on_disk(&path, word);
        }
        std::fs::read(path).is_ok_and(|bytes| bytes.windows(word.len()).any(|window| window == word.as_bytes()))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_forgotten_is_gone_after_a_restart_and_from_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    let (running, mut client) = start(directory.path(), |_| {}).await;
    for (number, question) in ["Where is the zyzzyvarium?", "How old is it?", "Who owns it?"].into_iter().enumerate() {
        assert!(client.remember(told("c", &number.to_string(), question, 9 - number as u64)).await.unwrap().into_inner().stored);
    }
    client.remember(told("other", "x", "Where is the bridge?", 1)).await.unwrap();
    running.stop().await.unwrap();

    let (running, mut client) = start(directory.path(), |_| {}).await;
    assert_eq!(ids(&mut client, asked("c", "zyzzyvarium")).await, ["2", "0", "1"]);
    assert!(on_disk(directory.path(), "zyzzyvarium"));
    let forget = memory_v1::ForgetRequest { conversation_id: "c".into(), ..Default::default() };
    let forgotten = client.forget(forget.clone()).await.unwrap().into_inner();
    assert_eq!((forgotten.forgotten, forgotten.count), (true, 3));
    assert!(!on_disk(directory.path(), "zyzzyvarium"));
    assert!(ids(&mut client, asked("c", "zyzzyvarium")).await.is_empty());
    running.stop().await.unwrap();

    let (running, mut client) = start(directory.path(), |_| {}).await;
    assert!(ids(&mut client, asked("c", "zyzzyvarium")).await.is_empty());
    // an entry of the outbox that comes late
    assert!(!client.remember(told("c", "0", "Where is the zyzzyvarium?", 9)).await.unwrap().into_inner().stored);
    assert!(ids(&mut client, asked("c", "zyzzyvarium")).await.is_empty() && !on_disk(directory.path(), "zyzzyvarium"));
    assert_eq!(client.forget(forget).await.unwrap().into_inner().count, 0);
    assert_eq!(list(&mut client, memory_v1::ListMemoriesRequest::default()).await, ["x"]);
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn memories_are_listed_shown_and_forgotten_by_scope() {
    let directory = tempfile::tempdir().unwrap();
    let (running, mut client) = start(directory.path(), |_| {}).await;
    for number in 0..5 {
        client.remember(told("c", &number.to_string(), "Where is it?", 50 - number * 10)).await.unwrap();
    }
    let request = memory_v1::ListMemoriesRequest { page_size: 2, conversation_id: "c".into(), ..Default::default() };
    assert_eq!(list(&mut client, request).await, ["4", "3", "2", "1", "0"]);
    let get = |id: &str| memory_v1::GetMemoryRequest { tenant: String::new(), kind: MemoryKind::Conversation as i32, id: id.into() };
    let shown = client.get_memory(get("3")).await.unwrap().into_inner().memory.unwrap().memory.unwrap();
    assert!(matches!(shown, memory_v1::stored_memory::Memory::Turn(turn) if turn.task_id == "3" && turn.tenant == "default"));
    let status = client.get_memory(get("9")).await.unwrap_err();
    assert_eq!((status.code(), reason(&status).as_deref()), (Code::NotFound, Some("MEMORY_NOT_FOUND")));

    let before = memory_v1::ForgetRequest { before: ago(35), ..Default::default() };
    assert_eq!(client.forget(before).await.unwrap().into_inner().count, 2);
    let all = memory_v1::ForgetRequest { all: true, kind: MemoryKind::Task as i32, ..Default::default() };
    assert_eq!(client.forget(all.clone()).await.unwrap().into_inner().count, 0);
    assert_eq!(client.forget(memory_v1::ForgetRequest { kind: 0, ..all }).await.unwrap().into_inner().count, 3);

    let scopes = [
        memory_v1::ForgetRequest::default(),
        memory_v1::ForgetRequest { id: "1".into(), all: true, ..Default::default() },
        memory_v1::ForgetRequest { id: "1".into(), conversation_id: "c".into(), ..Default::default() },
        memory_v1::ForgetRequest { all: true, before: ago(1), ..Default::default() },
    ];
    for request in scopes {
        assert_eq!(reason(&client.forget(request).await.unwrap_err()).as_deref(), Some("BAD_SCOPE"));
    }
    let refused = [
        (memory_v1::RecallRequest { neighbours: 11, ..asked("c", "x") }, "LIMIT_OUT_OF_RANGE"),
        (memory_v1::RecallRequest { half_life: -1.0, ..asked("c", "x") }, "LIMIT_OUT_OF_RANGE"),
        (asked("", "x"), "FIELD_MISSING"),
        (asked("a.b", "x"), "BAD_CONVERSATION_ID"),
    ];
    for (request, expected) in refused {
        assert_eq!(reason(&client.recall(request).await.unwrap_err()).as_deref(), Some(expected));
    }
    let token = memory_v1::ListMemoriesRequest { page_token: "x".into(), ..Default::default() };
    assert_eq!(reason(&client.list_memories(token).await.unwrap_err()).as_deref(), Some("BAD_PAGE_TOKEN"));
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_expired_is_removed_by_itself() {
    let directory = tempfile::tempdir().unwrap();
    let (running, mut client) = start(directory.path(), |config| config.conversation_ttl = Duration::from_secs(4)).await;
    assert!(!client.remember(told("c", "old", "Where is the zyzzyvarium?", 1)).await.unwrap().into_inner().stored);
    assert!(client.remember(told("c", "new", "Where is the zyzzyvarium?", 0)).await.unwrap().into_inner().stored);
    assert_eq!(ids(&mut client, asked("c", "zyzzyvarium")).await, ["new"]);
    let gone = autoact_testkit::poll::until(Duration::from_secs(20), async || (!on_disk(directory.path(), "zyzzyvarium")).then_some(()));
    gone.await.expect("it expires");
    assert!(ids(&mut client, asked("c", "zyzzyvarium")).await.is_empty());
    running.stop().await.unwrap();
}

/// Something that happens to a tenant's memories.
#[derive(Debug, Clone)]
enum Change {
    Remember { tenant: usize, conversation: usize, id: usize },
    ForgetConversation { tenant: usize, conversation: usize },
    ForgetAll { tenant: usize },
}

const TENANTS: [&str; 3] = ["default", "acme", "acme-2"];

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        8 => (0..3usize, 0..2usize, 0..4usize).prop_map(|(tenant, conversation, id)| Change::Remember { tenant, conversation, id }),
        1 => (0..3usize, 0..2usize).prop_map(|(tenant, conversation)| Change::ForgetConversation { tenant, conversation }),
        1 => (0..3usize).prop_map(|tenant| Change::ForgetAll { tenant }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever is remembered and forgotten: a tenant finds what is its own, and a conversation
    /// what belongs to it.
    #[test]
    fn tenants_and_conversations_stay_apart(changes in prop::collection::vec(change(), 1..24)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let directory = tempfile::tempdir().unwrap();
            let store = Arc::new(EmbeddedStore::open(directory.path()).await.unwrap());
            let memories = Memories::new(store.clone(), TimeToLive::default());
            let mut expected = BTreeSet::new();
            let (mut forgotten, mut forgotten_all) = (BTreeSet::new(), BTreeSet::new());
            for change in changes {
                match change {
                    Change::Remember { tenant, conversation, id } => {
                        let name = format!("{conversation}-{id}");
                        let stored = memories.remember(turn(TENANTS[tenant], &format!("c{conversation}"), &name, "the bridge", 1)).await.unwrap();
                        let out = forgotten.contains(&(tenant, conversation)) || forgotten_all.contains(&tenant);
                        assert_eq!(stored, !out);
                        if stored {
                            expected.insert((tenant, conversation, name));
                        }
                    }
                    Change::ForgetConversation { tenant, conversation } => {
                        let scope = Scope::Conversation { id: format!("c{conversation}"), before: None };
                        memories.forget(&forgetting(TENANTS[tenant], scope)).await.unwrap();
                        expected.retain(|(whose, which, _)| (*whose, *which) != (tenant, conversation));
                        forgotten.insert((tenant, conversation));
                    }
                    Change::ForgetAll { tenant } => {
                        memories.forget(&forgetting(TENANTS[tenant], Scope::All { before: None })).await.unwrap();
                        expected.retain(|(whose, ..)| *whose != tenant);
                        forgotten_all.insert(tenant);
                    }
                }
            }
            for (tenant, name) in TENANTS.into_iter().enumerate() {
                let mut of_all = BTreeSet::new();
                for conversation in 0..2 {
                    let id = format!("c{conversation}");
                    let ours: BTreeSet<String> =
                        expected.iter().filter(|(whose, which, _)| (*whose, *which) == (tenant, conversation)).map(|(.., id)| id.clone()).collect();
                    let found: BTreeSet<String> = recalled(&memories, query(name, Kind::Turn, &id, "bridge")).await.into_iter().collect();
                    assert_eq!(found, ours);
                    of_all.extend(ours.into_iter().map(|id| format!("conversation/{id}")));
                }
                assert_eq!(listed(&memories, name, "").await.into_iter().collect::<BTreeSet<_>>(), of_all);
                assert!(recalled(&memories, query(name, Kind::Task, "", "bridge")).await.is_empty());
            }
            memory::MemoryStore::close(&*store).await;
        });
    }
}
