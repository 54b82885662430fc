//! What is recalled before the first plan, over a group and a memory that follow a script. Both exist
//! in these tests only.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use autoact_planning::*;
use autoact_prompt::{chat, transcript};
use autoact_trajectory::*;
use futures::executor::block_on;
use proptest::prelude::*;

/// Plans until there are two steps, then answers; counts one token a byte of its prompts.
struct Group {
    /// What Plan-Agent was shown of earlier tasks, call by call.
    shown: Mutex<Vec<Vec<String>>>,
    /// How often memory was asked.
    recalls: Mutex<u32>,
    /// What memory has.
    items: Vec<RecalledItem>,
    /// Tokens that a prompt may have.
    limit: usize,
}

impl Group {
    fn new(tasks: usize, limit: usize) -> Arc<Group> {
        let items = (0..tasks).map(item).collect();
        Arc::new(Group { shown: Mutex::default(), recalls: Mutex::default(), items, limit })
    }

    fn agents(self: &Arc<Self>) -> Agents {
        let group = self;
        Agents {
            plan: group.clone(),
            tool: group.clone(),
            reflect: group.clone(),
            tools: group.clone(),
            contexts: group.clone(),
            memories: group.clone(),
        }
    }
}

fn item(number: usize) -> RecalledItem {
    RecalledItem {
        kind: RecalledKind::Turn,
        task_id: format!("t-{number}"),
        question: "Which river flows through Nantes?".into(),
        answer: "the Loire".into(),
        approved: true,
        finished_at: None,
        score: 1.0,
    }
}

#[async_trait]
impl Memories for Group {
    async fn recall(&self, _: &Task, _: Duration) -> Recalled {
        *self.recalls.lock().unwrap() += 1;
        Recalled::boxed(self.items.clone(), 2048)
    }
}

#[async_trait]
impl PlanAgent for Group {
    async fn plan(&self, call: Call<'_>) -> Result<Reply<Thought>, Failure> {
        self.shown.lock().unwrap().push(call.trajectory.recalled.iter().map(|item| item.task_id.clone()).collect());
        let tool = if call.trajectory.steps().count() < 2 { "Retrieve" } else { FINISH };
        Ok(Reply::new(Thought { thought: "So.".into(), tool: tool.into() }, Usage::default()))
    }
}

#[async_trait]
impl ToolAgent for Group {
    async fn parameterize(&self, _: Call<'_>) -> Result<Reply<String>, Failure> {
        Ok(Reply::new("Loire".into(), Usage::default()))
    }
}

#[async_trait]
impl ReflectAgent for Group {
    async fn reflect(&self, _: Call<'_>) -> Result<Reply<Judgement>, Failure> {
        Ok(Reply::new(Reflection::new("Yes.", Verdict::Right).into(), Usage::default()))
    }
}

#[async_trait]
impl Tools for Group {
    async fn execute(&self, _: Execution<'_>) -> Result<Reply<Seen>, Failure> {
        Ok(Reply::new(Observation { text: "A page.".into(), ..Observation::default() }.into(), Usage::default()))
    }
}

#[async_trait]
impl Contexts for Group {
    fn room(&self, _: Role) -> Option<usize> {
        None
    }

    async fn measure(&self, role: Role, _: &TaskKey, trajectory: &Trajectory, _: Duration) -> Result<PromptSize, Failure> {
        let tokens = chat(role, trajectory).iter().map(|message| message.content.len()).sum();
        Ok(PromptSize { tokens, limit: self.limit })
    }
}

fn submitted(conversation: &str) -> Submitted {
    let tool = |name: &str| ToolSpec { max_observation_bytes: 100, ..ToolSpec::new(name) };
    Submitted {
        question: "How long is it?".into(),
        conversation: conversation.into(),
        tools: vec![tool("Retrieve"), tool(FINISH)],
        ..Submitted::default()
    }
}

fn begin(group: &Arc<Group>, conversation: &str) -> Driver<MemoryLog> {
    let key = TaskKey::new(Tenant::default(), "t".parse().unwrap());
    let options = DriverOptions { writer: "a".into(), judgements: None };
    block_on(Driver::begin(group.agents(), MemoryLog::default(), options, &key, submitted(conversation))).unwrap()
}

fn bodies(events: &[Event]) -> Vec<EventBody> {
    events.iter().map(|event| event.body.clone()).filter(|body| !matches!(body, EventBody::Started(_))).collect()
}

#[test]
fn a_conversation_is_recalled_before_the_first_plan() {
    let group = Group::new(3, 1 << 20);
    let mut driver = begin(&group, "c-1");
    block_on(driver.run()).unwrap();
    let (task, log) = driver.into_parts();
    let names: Vec<&str> = log.events.iter().take(4).map(|event| event.body.name()).collect();
    assert_eq!(names, ["submitted", "started", "recalled", "thought"]);
    assert!(task.finished().unwrap().approved);
    assert_eq!(*group.shown.lock().unwrap(), vec![vec!["t-0", "t-1", "t-2"]; 3]);
    // the transcript on its own never has it: the bundled model reads that one
    assert!(!transcript(task.trajectory()).contains("Nantes"));
    assert!(chat(Role::Plan, task.trajectory())[1].content.contains("Earlier question: Which river flows through Nantes?"));
    assert!(!chat(Role::Plan, task.trajectory())[0].content.contains("Nantes"));
}

#[test]
fn without_a_conversation_nothing_is_recalled() {
    let group = Group::new(3, 1 << 20);
    let mut driver = begin(&group, "");
    block_on(driver.run()).unwrap();
    assert_eq!(*group.recalls.lock().unwrap(), 0);
    assert!(!driver.into_parts().1.events.iter().any(|event| event.body.name() == "recalled"));
}

#[test]
fn the_box_gives_way_to_the_question() {
    let kept = |limit| {
        let mut driver = begin(&Group::new(9, limit), "c-1");
        block_on(driver.step(std::future::pending())).unwrap();
        let Some(EventBody::Recalled(recalled)) = driver.into_parts().1.events.pop().map(|event| event.body) else { panic!() };
        assert_eq!(recalled.items.len() + recalled.left_out as usize, 9);
        recalled.items.len()
    };
    let kept: Vec<usize> = (1..80).map(|limit| kept(limit * 100)).collect();
    assert!(kept.is_sorted(), "{kept:?}");
    assert_eq!((kept.first(), kept.last()), (Some(&0), Some(&9)));
    assert!(kept.iter().any(|items| (1..9).contains(items)), "{kept:?}");
}

proptest! {
    /// Wherever holders vanish, memory is asked once, and every holder shows the same.
    #[test]
    fn take_overs_recall_nothing_again(cuts in prop::collection::vec(1..4usize, 0..6)) {
        let single = Group::new(2, 1 << 20);
        let mut driver = begin(&single, "c-1");
        block_on(driver.run()).unwrap();
        let expected = bodies(&driver.into_parts().1.events);

        let group = Group::new(2, 1 << 20);
        let mut driver = begin(&group, "c-1");
        for steps in cuts {
            for _ in 0..steps {
                block_on(driver.step(std::future::pending())).unwrap();
            }
            block_on(driver.settle()).unwrap();
            let (_, log) = driver.into_parts();
            let task = Task::fold(&log.events).unwrap();
            if task.finished().is_some() {
                prop_assert_eq!(bodies(&log.events), expected);
                return Ok(());
            }
            let options = DriverOptions { writer: "b".into(), judgements: None };
            driver = block_on(Driver::take_up(group.agents(), log, options, task)).unwrap();
        }
        block_on(driver.run()).unwrap();
        prop_assert_eq!(bodies(&driver.into_parts().1.events), expected);
        prop_assert_eq!(*group.recalls.lock().unwrap(), 1);
        prop_assert_eq!(group.shown.lock().unwrap().clone(), single.shown.lock().unwrap().clone());
    }
}
