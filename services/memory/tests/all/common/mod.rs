//! What every store does, and the memories of its tests.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used)] // every test file uses its own part

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use autoact_trajectory::Tenant;
use memory::{Forgetting, InConversation, Key, Kind, Memories, Memory, MemoryStore, Query, Scope, TaskMemory, TimeToLive, Turn};
use prost_types::Timestamp;

pub fn tenant(name: &str) -> Tenant {
    name.parse().unwrap()
}

/// So many minutes ago.
pub fn ago(minutes: u64) -> Option<Timestamp> {
    Some((SystemTime::now() - Duration::from_secs(minutes * 60)).into())
}

/// A turn of a conversation that ended so many minutes ago.
pub fn turn(whose: &str, conversation: &str, id: &str, question: &str, minutes: u64) -> Memory {
    Memory::Turn(Turn {
        tenant: tenant(whose),
        conversation: conversation.into(),
        task_id: id.into(),
        question: question.into(),
        answer: format!("answer {id}"),
        approved: true,
        finished_at: ago(minutes),
    })
}

/// The same as a task.
pub fn task(whose: &str, conversation: &str, id: &str, question: &str, minutes: u64) -> Memory {
    Memory::Task(TaskMemory {
        tenant: tenant(whose),
        conversation: conversation.into(),
        task_id: id.into(),
        question: question.into(),
        answer: format!("answer {id}"),
        approved: true,
        steps: 2,
        finished_at: ago(minutes),
    })
}

pub fn query(whose: &str, kind: Kind, conversation: &str, text: &str) -> Query {
    Query { tenant: tenant(whose), kind, conversation: conversation.into(), text: text.into(), limit: 10, approved_only: false }
}

pub async fn recalled(memories: &Memories, query: Query) -> Vec<String> {
    recalled_around(memories, query, InConversation::default()).await
}

pub async fn recalled_around(memories: &Memories, query: Query, around: InConversation) -> Vec<String> {
    let found = memories.recall(query, around).await.unwrap();
    found.iter().map(|recalled| recalled.memory.id().to_owned()).collect()
}

pub async fn listed(memories: &Memories, whose: &str, conversation: &str) -> Vec<String> {
    let listed = memories.list(&tenant(whose), &Kind::TOLD, conversation, 1000, None).await.unwrap();
    listed.iter().map(|memory| format!("{}/{}", memory.kind().as_str(), memory.id())).collect()
}

pub fn forgetting(whose: &str, scope: Scope) -> Forgetting {
    Forgetting { tenant: tenant(whose), kinds: Kind::TOLD.to_vec(), scope }
}

/// Conversations, lists, forgetting and times to live, over any store that has nothing of these
/// tenants.
pub async fn exercise(store: Arc<dyn MemoryStore>, mine: &str, theirs: &str) {
    let memories = Memories::new(store.clone(), TimeToLive::default());
    for (number, question) in
        ["Which river is it?", "How long is the Loire?", "Who built the bridge?", "What is it made of?"].iter().enumerate()
    {
        let (id, minutes) = (number.to_string(), 40 - 10 * number as u64);
        for memory in [turn(mine, "c", &id, question, minutes), task(mine, "c", &id, question, minutes)] {
            assert!(memories.remember(memory).await.unwrap());
        }
    }
    memories.remember(turn(mine, "other", "9", "How long is the Loire?", 5)).await.unwrap();
    memories.remember(turn(theirs, "c", "1", "How long is the Loire?", 5)).await.unwrap();

    // one conversation alone, of one kind
    assert_eq!(recalled(&memories, query(mine, Kind::Turn, "c", "Loire")).await, ["1"]);
    assert_eq!(recalled(&memories, query(mine, Kind::Task, "c", "Loire")).await, ["1"]);
    assert_eq!(recalled(&memories, query(mine, Kind::Turn, "", "Loire")).await.len(), 2);
    assert!(recalled(&memories, query(theirs, Kind::Task, "c", "Loire")).await.is_empty());
    // the last turn first, the neighbours last
    let around = InConversation { neighbours: 1, latest: true, half_life: 0.0 };
    assert_eq!(recalled_around(&memories, query(mine, Kind::Turn, "c", "Loire"), around).await, ["3", "1", "0", "2"]);
    assert_eq!(recalled_around(&memories, query(mine, Kind::Turn, "c", "nothing"), around).await, ["3"]);
    assert!(recalled_around(&memories, query(mine, Kind::Turn, "new", "Loire"), around).await.is_empty());
    // of two that fit alike the newer one comes first
    memories.remember(task(mine, "c", "7", "Which river is it?", 1)).await.unwrap();
    let around = InConversation { half_life: 2.0, ..InConversation::default() };
    assert_eq!(recalled_around(&memories, query(mine, Kind::Task, "c", "river"), around).await, ["7", "0"]);

    // lists in pages
    let all = listed(&memories, mine, "").await;
    assert_eq!(all[..4], ["task/7", "conversation/9", "task/3", "conversation/3"], "{all:?}");
    assert_eq!(listed(&memories, mine, "c").await.len(), 9);
    let (mut pages, mut after) = (Vec::new(), None);
    loop {
        let page = memories.list(&tenant(mine), &Kind::TOLD, "", 3, after).await.unwrap();
        pages.extend(page.iter().map(|memory| format!("{}/{}", memory.kind().as_str(), memory.id())));
        after = page.last().map(Memory::place);
        if page.len() < 3 {
            break;
        }
    }
    assert_eq!(pages, all);

    // one, a conversation, before a time, all: and a memory that comes late stays out
    let key = |kind, id: &str| Key { tenant: tenant(mine), kind, id: id.into() };
    assert_eq!(memories.forget(&forgetting(mine, Scope::Id("2".into()))).await.unwrap(), 2);
    assert_eq!(memories.get(key(Kind::Turn, "2")).await.unwrap(), None);
    assert!(!memories.remember(turn(mine, "c", "2", "Who built the bridge?", 20)).await.unwrap());
    assert_eq!(memories.get(key(Kind::Turn, "2")).await.unwrap(), None);
    let before = Scope::Conversation { id: "c".into(), before: ago(25) };
    assert_eq!(memories.forget(&forgetting(mine, before)).await.unwrap(), 4);
    assert!(!memories.remember(task(mine, "c", "1", "How long is the Loire?", 30)).await.unwrap());
    assert_eq!(listed(&memories, mine, "c").await, ["task/7", "task/3", "conversation/3"]);
    let whole = Scope::Conversation { id: "c".into(), before: None };
    assert_eq!(memories.forget(&forgetting(mine, whole)).await.unwrap(), 3);
    assert!(!memories.remember(turn(mine, "c", "3", "What is it made of?", 10)).await.unwrap());
    assert_eq!(listed(&memories, mine, "").await, ["conversation/9"]);
    assert_eq!(memories.forget(&forgetting(mine, Scope::All { before: None })).await.unwrap(), 1);
    assert!(listed(&memories, mine, "").await.is_empty());
    // what ends later is remembered
    let later = Some((SystemTime::now() + Duration::from_secs(1)).into());
    let Memory::Turn(next) = turn(mine, "c", "10", "And now?", 0) else { unreachable!() };
    assert!(memories.remember(Memory::Turn(Turn { finished_at: later, ..next })).await.unwrap());
    assert_eq!(listed(&memories, theirs, "").await, ["conversation/1"], "another tenant's");

    // what has expired is not told, and goes
    let ttl = TimeToLive { turn: Some(Duration::from_secs(600)), task: None };
    memories.remember(turn(theirs, "c", "old", "How long is the Loire?", 15)).await.unwrap();
    memories.remember(task(theirs, "c", "old", "How long is the Loire?", 15)).await.unwrap();
    let mortal = Memories::new(store.clone(), ttl);
    assert_eq!(recalled(&mortal, query(theirs, Kind::Turn, "c", "Loire")).await, ["1"]);
    assert_eq!(recalled(&mortal, Query { limit: 1, ..query(theirs, Kind::Turn, "c", "Loire long") }).await, ["1"]);
    assert_eq!(listed(&mortal, theirs, "").await, ["conversation/1", "task/old"]);
    assert!(!mortal.remember(turn(theirs, "c", "older", "?", 30)).await.unwrap());
    assert_eq!(listed(&memories, theirs, "").await.len(), 3);
    assert!(mortal.purge().await.unwrap() >= 1);
    assert_eq!(listed(&memories, theirs, "").await, ["conversation/1", "task/old"]);
    assert_eq!(memories.forget(&forgetting(theirs, Scope::All { before: None })).await.unwrap(), 2);
}
