//! Measures the embedded store in a new directory and prints the figures:
//! `cargo run --release -p memory --example measure -- [MEMORIES] [DIRECTORY]`.
#![allow(clippy::unwrap_used)] // a measurement ends where something fails

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use autoact_trajectory::Tenant;
use memory::{EmbeddedStore, Forgetting, InConversation, Kind, Memories, Memory, MemoryStore, Query, Scope, TaskMemory, TimeToLive};

/// Words that questions are made of; word n is about as frequent as 1/n.
const VOCABULARY: f64 = 20_000.0;
/// Words of a question, and of its answer.
const QUESTION_WORDS: usize = 12;
const ANSWER_WORDS: usize = 6;
/// Callers that remember at the same time.
const CALLERS: usize = 64;
/// Calls of one caller alone.
const ALONE: usize = 200;
const QUERIES: usize = 2000;
/// Tasks of a conversation.
const TURNS: usize = 50;

/// The SplitMix64 generator: the same questions in every run.
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn text(&mut self, words: usize) -> String {
        let word = |random: &mut Random| format!("w{}", VOCABULARY.powf(random.unit()) as u32);
        (0..words).map(|_| word(self)).collect::<Vec<_>>().join(" ")
    }

    fn memory(&mut self, n: usize) -> Memory {
        let (question, answer) = (self.text(QUESTION_WORDS), self.text(ANSWER_WORDS));
        Memory::Task(TaskMemory {
            conversation: conversation(n),
            tenant: Tenant::default(),
            task_id: format!("task-{n}"),
            question,
            answer,
            approved: n.is_multiple_of(2),
            steps: 3,
            finished_at: Some(prost_types::Timestamp { seconds: n as i64, nanos: 0 }),
        })
    }
}

/// Every so many tasks are one.
fn conversation(n: usize) -> String {
    format!("c{}", n / TURNS)
}

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let memories: usize = arguments.next().map_or(100_000, |text| text.parse().unwrap());
    let directory = match arguments.next() {
        Some(path) => tempfile::tempdir_in(path).unwrap(),
        None => tempfile::tempdir().unwrap(),
    };
    let path = directory.path();
    let mut random = Random(1);
    let store = Arc::new(EmbeddedStore::open(path).await.unwrap());

    let mut alone = Vec::new();
    for n in 0..ALONE {
        let memory = random.memory(n);
        let started = Instant::now();
        store.remember(memory).await.unwrap();
        alone.push(started.elapsed());
    }
    report("remember, one caller", &mut alone);

    let started = Instant::now();
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..CALLERS {
        let (store, mut random) = (store.clone(), Random(1000 + caller as u64));
        callers.spawn(async move {
            let mut taken = Vec::new();
            for n in (ALONE + caller..memories).step_by(CALLERS) {
                let memory = random.memory(n);
                let started = Instant::now();
                store.remember(memory).await.unwrap();
                taken.push(started.elapsed());
            }
            taken
        });
    }
    let mut together: Vec<Duration> = callers.join_all().await.into_iter().flatten().collect();
    println!("remember, {CALLERS} callers: {:.0} per second", together.len() as f64 / started.elapsed().as_secs_f64());
    report("remember, one of them", &mut together);
    println!("{memories} memories take {:.1} MB on disk", bytes(path) as f64 / 1e6);
    recall("recall", &store, &mut random).await;

    let started = Instant::now();
    store.close().await;
    println!("close: {:?}", started.elapsed());
    let started = Instant::now();
    let store = Arc::new(EmbeddedStore::open(path).await.unwrap());
    println!("open: {:?}", started.elapsed());
    recall("recall after opening", &store, &mut random).await;
    let mut again = Vec::new();
    for n in 0..ALONE {
        let memory = random.memory(n);
        let started = Instant::now();
        store.remember(memory).await.unwrap();
        again.push(started.elapsed());
    }
    report("replace, one caller", &mut again);
    conversations(store.clone(), &mut random, memories / TURNS).await;
    store.close().await;
}

/// What a conversation costs, and forgetting.
async fn conversations(store: Arc<EmbeddedStore>, random: &mut Random, count: usize) {
    let memories = Memories::new(store, TimeToLive::default());
    let (mut recalled, mut remembered, mut forgotten) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..ALONE {
        let (tenant, kind, text) = (Tenant::default(), Kind::Task, random.text(QUESTION_WORDS));
        let query = Query { tenant, kind, conversation: format!("c{}", n % count), text, limit: 5, approved_only: false };
        let started = Instant::now();
        memories.recall(query, InConversation { neighbours: 1, latest: true, half_life: 5.0 }).await.unwrap();
        recalled.push(started.elapsed());
        let memory = random.memory(n);
        let started = Instant::now();
        memories.remember(memory).await.unwrap();
        remembered.push(started.elapsed());
    }
    report("recall in a conversation", &mut recalled);
    report("remember, if it was not forgotten", &mut remembered);
    let started = Instant::now();
    let listed = memories.list(&Tenant::default(), &Kind::TOLD, "", 50, None).await.unwrap();
    println!("list {} of all: {:?}", listed.len(), started.elapsed());
    for n in 0..10.min(count) {
        let scope = Scope::Conversation { id: format!("c{n}"), before: None };
        let forgetting = Forgetting { tenant: Tenant::default(), kinds: Kind::TOLD.to_vec(), scope };
        let started = Instant::now();
        memories.forget(&forgetting).await.unwrap();
        forgotten.push(started.elapsed());
    }
    report("forget a conversation", &mut forgotten);
}

async fn recall(what: &str, store: &EmbeddedStore, random: &mut Random) {
    let mut taken = Vec::new();
    for n in 0..QUERIES {
        let query = Query {
            tenant: Tenant::default(),
            kind: Kind::Task,
            conversation: String::new(),
            text: random.text(QUESTION_WORDS),
            limit: 5,
            approved_only: n % 2 == 0,
        };
        let started = Instant::now();
        let found = store.recall(query).await.unwrap();
        taken.push(started.elapsed());
        assert_eq!(found.len(), 5);
    }
    report(what, &mut taken);
}

fn report(what: &str, taken: &mut [Duration]) {
    taken.sort_unstable();
    let at = |part: f64| taken[((taken.len() - 1) as f64 * part) as usize];
    println!("{what}: p50 {:?}, p99 {:?}, longest {:?}", at(0.5), at(0.99), at(1.0));
}

fn bytes(directory: &Path) -> u64 {
    let size = |entry: std::fs::DirEntry| if entry.path().is_dir() { bytes(&entry.path()) } else { entry.metadata().unwrap().len() };
    std::fs::read_dir(directory).unwrap().map(|entry| size(entry.unwrap())).sum()
}
