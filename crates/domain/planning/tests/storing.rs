//! Events are stored beside the calls of models, and before anything that changes the world. The
//! scripted agents and logs exist in these tests only.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use autoact_planning::*;
use autoact_trajectory::*;
use futures::executor::block_on;
use proptest::prelude::*;

/// What happened, in order: `store:thought`, `plan`, `execute`, …
type Order = Arc<Mutex<Vec<String>>>;

/// Agents that retrieve twice, and answer.
struct Group(Order);

impl Group {
    fn did<T>(&self, what: &str, value: T) -> Result<Reply<T>, Failure> {
        self.0.lock().unwrap().push(what.to_owned());
        Ok(Reply::new(value, Usage { completion_tokens: 3, ..Usage::default() }))
    }
}

#[async_trait]
impl PlanAgent for Group {
    async fn plan(&self, call: Call<'_>) -> Result<Reply<Thought>, Failure> {
        let tool = if call.trajectory.steps().count() < 2 { "Retrieve" } else { FINISH };
        self.did("plan", Thought { thought: "I need it.".into(), tool: tool.into() })
    }
}

#[async_trait]
impl ToolAgent for Group {
    async fn parameterize(&self, call: Call<'_>) -> Result<Reply<String>, Failure> {
        self.did("parameterize", format!("page {}", call.id.step))
    }
}

#[async_trait]
impl ReflectAgent for Group {
    async fn reflect(&self, _: Call<'_>) -> Result<Reply<Judgement>, Failure> {
        self.did("reflect", Reflection::new("So it is.", Verdict::Right).into())
    }
}

#[async_trait]
impl Tools for Group {
    async fn execute(&self, _: Execution<'_>) -> Result<Reply<Seen>, Failure> {
        self.did("execute", Observation { text: "It is long.".into(), ..Observation::default() }.into())
    }
}

#[async_trait]
impl Contexts for Group {
    fn room(&self, _: Role) -> Option<usize> {
        Some(usize::MAX)
    }

    async fn measure(&self, role: Role, _: &TaskKey, _: &Trajectory, _: Duration) -> Result<PromptSize, Failure> {
        Err(Failure::new(FailureClass::Refused, role.as_str(), "nobody counts"))
    }
}

/// The log is away.
#[derive(Debug, thiserror::Error)]
#[error("the log is away")]
struct Away;

/// A log that takes a while, and fails after so many events.
struct Slow {
    order: Order,
    log: MemoryLog,
    stores: usize,
}

#[async_trait]
impl EventLog for Slow {
    type Error = Away;

    async fn append(&mut self, event: &Event, after: u64) -> Result<Appended, Away> {
        let mut waited = false;
        poll_fn(|context| {
            if std::mem::replace(&mut waited, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        if self.log.events.len() == self.stores {
            return Err(Away);
        }
        self.order.lock().unwrap().push(format!("store:{}", event.body.name()));
        assert_eq!(after, self.log.events.len() as u64, "written after the one before");
        let Ok(_) = self.log.append(event, after).await;
        Ok(Appended { sequence: after + 1, digest: None })
    }

    async fn keep(&mut self, task: &TaskKey, artifact: &NewArtifact) -> Result<Artifact, Failure> {
        self.log.keep(task, artifact).await
    }
}

fn begin(order: &Order, stores: usize) -> Driver<Slow> {
    let group = Arc::new(Group(order.clone()));
    let agents = Agents {
        plan: group.clone(),
        tool: group.clone(),
        reflect: group.clone(),
        tools: group.clone(),
        contexts: group,
        memories: Arc::new(NoMemories),
    };
    let tool = |name: &str| ToolSpec {
        usage: format!("{name}[x]"),
        effect: Effect::SideEffect,
        max_observation_bytes: 1000,
        ..ToolSpec::new(name)
    };
    let submitted = Submitted { question: "Where is it?".into(), tools: vec![tool("Retrieve"), tool(FINISH)], ..Submitted::default() };
    let log = Slow { order: order.clone(), log: MemoryLog::default(), stores };
    let key = TaskKey::new(Tenant::default(), "t".parse().unwrap());
    let options = DriverOptions { writer: "test".into(), judgements: None };
    block_on(Driver::begin(agents, log, options, &key, submitted)).unwrap()
}

fn at(order: &[String], what: &str, times: usize) -> usize {
    order.iter().enumerate().filter(|(_, did)| *did == what).map(|(at, _)| at).nth(times).unwrap()
}

#[test]
fn models_are_asked_while_events_are_stored_and_tools_are_not_run() {
    let order = Order::default();
    let mut driver = begin(&order, usize::MAX);
    block_on(driver.run()).unwrap();
    let order = order.lock().unwrap().clone();
    for step in 0..2 {
        assert!(at(&order, "parameterize", step) < at(&order, "store:thought", step), "beside each other: {order:?}");
        assert!(at(&order, "store:action", step) < at(&order, "execute", step), "an effect has its record first: {order:?}");
        assert!(at(&order, "plan", step + 1) < at(&order, "store:observation", step), "{order:?}");
    }
    assert!(at(&order, "reflect", 0) < at(&order, "store:action", 2), "an answer is no effect: {order:?}");
    assert!(at(&order, "store:reflection", 0) < at(&order, "store:finished", 0), "{order:?}");
    assert_eq!(driver.into_parts().1.log.events.len(), 12, "two, three for each of two steps, two for the answer, two for the end");
}

proptest! {
    #[test]
    fn what_was_not_stored_has_not_happened(stores in 2..12usize) {
        let order = Order::default();
        let mut driver = begin(&order, stores);
        prop_assert!(matches!(block_on(driver.run()), Err(Stop::Log(Away))));
        let (task, log) = driver.into_parts();
        prop_assert_eq!(log.log.events.len(), stores);
        // the task is the fold of what is stored, so its holder knows where it stands
        prop_assert_eq!(task.next_index(), stores as u64 + 1);
        let fold = Task::fold(&log.log.events).unwrap();
        prop_assert_eq!(task.trajectory(), fold.trajectory());
        let ran = order.lock().unwrap().iter().filter(|did| *did == "execute").count();
        let recorded = log.log.events.iter().filter(|event| matches!(&event.body, EventBody::Action(action) if action.tool != FINISH)).count();
        prop_assert!(ran <= recorded, "a tool ran without its record");
    }
}
