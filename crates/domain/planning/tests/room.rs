//! Histories that grow past the models' contexts, over models that follow a script. The scripted
//! models exist in these tests only.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use autoact_planning::*;
use autoact_prompt::transcript;
use autoact_trajectory::*;
use futures::executor::block_on;
use proptest::prelude::*;

/// Room for a reply in every context.
const REPLY: usize = 60;
/// What a chat template adds to every prompt.
const TEMPLATE: usize = 20;

/// Three models that read a token in every other byte, each with a context of its own.
struct Models {
    contexts: [usize; 3],
    /// Whether they say how long a prompt is, or only refuse what is too long.
    count: bool,
    /// Steps before the answer.
    steps: u32,
    observation: String,
    /// How often a prompt was measured.
    measured: Mutex<usize>,
    /// Tokens of every prompt that was answered, and the room that was left.
    asked: Mutex<Vec<(Role, usize, usize)>>,
    /// Steps that the tools were given.
    given: Mutex<Vec<usize>>,
}

impl Models {
    fn new(contexts: [usize; 3], steps: u32, observation: &str) -> Models {
        let (measured, asked, given) = (Mutex::default(), Mutex::default(), Mutex::default());
        Models { contexts, count: true, steps, observation: observation.into(), measured, asked, given }
    }

    fn agents(self: &Arc<Self>) -> Agents {
        Agents {
            plan: self.clone(),
            tool: self.clone(),
            reflect: self.clone(),
            tools: self.clone(),
            contexts: self.clone(),
            memories: Arc::new(NoMemories),
        }
    }

    fn context(&self, role: Role) -> usize {
        self.contexts[role as usize]
    }

    fn tokens(trajectory: &Trajectory) -> usize {
        TEMPLATE + transcript(trajectory).len().div_ceil(2)
    }

    fn answer<T>(&self, role: Role, call: Call<'_>, value: T) -> Result<Reply<T>, Failure> {
        let (tokens, context) = (Models::tokens(call.trajectory), self.context(role));
        if tokens >= context {
            let too_long = Some(PromptSize { tokens, limit: context - 1 });
            return Err(Failure { too_long, ..Failure::new(FailureClass::Refused, role.as_str(), "too long") });
        }
        self.asked.lock().unwrap().push((role, tokens, context - tokens));
        let prompt_tokens = u32::try_from(tokens).unwrap();
        Ok(Reply::new(value, Usage { prompt_tokens, completion_tokens: 20, ..Usage::default() }))
    }
}

#[async_trait]
impl PlanAgent for Models {
    async fn plan(&self, call: Call<'_>) -> Result<Reply<Thought>, Failure> {
        let steps = call.trajectory.left_out as usize + call.trajectory.steps().count();
        let tool = if steps < self.steps as usize { "Retrieve" } else { FINISH };
        self.answer(Role::Plan, call, Thought { thought: format!("I need page {steps}."), tool: tool.into() })
    }
}

#[async_trait]
impl ToolAgent for Models {
    async fn parameterize(&self, call: Call<'_>) -> Result<Reply<String>, Failure> {
        self.answer(Role::Tool, call, format!("page {}", call.id.step))
    }
}

#[async_trait]
impl ReflectAgent for Models {
    async fn reflect(&self, call: Call<'_>) -> Result<Reply<Judgement>, Failure> {
        self.answer(Role::Reflect, call, Reflection::new("So it is.", Verdict::Right).into())
    }
}

#[async_trait]
impl Tools for Models {
    async fn execute(&self, execution: Execution<'_>) -> Result<Reply<Seen>, Failure> {
        let history = execution.call.trajectory;
        self.given.lock().unwrap().push(history.steps().filter(|step| step.observation.as_ref() == Some(&self.observation)).count());
        Ok(Reply::new(Observation { text: self.observation.clone(), ..Observation::default() }.into(), Usage::default()))
    }
}

#[async_trait]
impl Contexts for Models {
    fn room(&self, role: Role) -> Option<usize> {
        // the longest reply is longer than the room for one here
        Some(if self.count { self.context(role).saturating_sub(REPLY) + 256 } else { usize::MAX })
    }

    async fn measure(&self, role: Role, _: &TaskKey, trajectory: &Trajectory, _: Duration) -> Result<PromptSize, Failure> {
        *self.measured.lock().unwrap() += 1;
        if !self.count {
            return Err(Failure::new(FailureClass::Refused, role.as_str(), "nobody counts"));
        }
        Ok(PromptSize { tokens: Models::tokens(trajectory), limit: self.context(role).saturating_sub(REPLY) })
    }
}

fn key() -> TaskKey {
    TaskKey::new(Tenant::default(), "t".parse().unwrap())
}

fn tool(name: &str) -> ToolSpec {
    ToolSpec { usage: format!("{name}[x]"), max_observation_bytes: 100_000, ..ToolSpec::new(name) }
}

fn submitted() -> Submitted {
    Submitted {
        question: "Where is it?".into(),
        tools: vec![tool("Retrieve"), tool(FINISH)],
        limits: Limits { max_steps: 200, max_tokens: 1_000_000, ..Limits::default() },
        ..Submitted::default()
    }
}

fn options() -> DriverOptions {
    DriverOptions { writer: "test".into(), judgements: None }
}

/// The task at its end, and its events. After every `hold` steps, another holder goes on with what
/// is stored.
fn run(models: &Arc<Models>, hold: usize) -> (Task, Vec<Event>) {
    let key = key();
    let mut driver = block_on(Driver::begin(models.agents(), MemoryLog::default(), options(), &key, submitted())).unwrap();
    for step in 1.. {
        match block_on(driver.step(std::future::pending())).unwrap() {
            Progress::Ended => break,
            Progress::Advanced => {}
            other => panic!("{other:?}"),
        }
        if step % hold == 0 {
            block_on(driver.settle()).unwrap();
            let (_, log) = driver.into_parts();
            let task = Task::fold(&log.events).unwrap();
            driver = block_on(Driver::take_up(models.agents(), log, options(), task)).unwrap();
        }
    }
    let (task, log) = driver.into_parts();
    (task, log.events)
}

fn bodies(events: &[Event]) -> Vec<&EventBody> {
    events.iter().map(|event| &event.body).filter(|body| !matches!(body, EventBody::Started(_))).collect()
}

fn shortenings(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event.body, EventBody::Shortened(_))).count()
}

fn page() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::collection::vec("[A-Z][a-z ]{10,80}\\.", 1..40).prop_map(|sentences| sentences.join(" ")),
        "[a-z ]{0,3000}",
        "[é漢]{0,800}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn no_task_fails_for_its_length(
        contexts in prop::array::uniform3(260..4000usize), steps in 1..100u32, page in page(), hold in 1..20usize, count in any::<bool>(),
    ) {
        let models = Arc::new(Models { count, ..Models::new(contexts, steps, &page) });
        let (task, events) = run(&models, usize::MAX);
        prop_assert!(task.finished().unwrap().approved, "{:?}", task.finished());
        prop_assert_eq!(task.steps(), steps + 1);
        for (role, tokens, room) in models.asked.lock().unwrap().iter() {
            prop_assert!(!count || *room >= REPLY, "{role:?} was asked with {tokens} tokens, which leaves {room}");
        }
        // tools get every page, whatever the agents are shown
        prop_assert_eq!(models.given.lock().unwrap().clone(), (0..steps as usize).collect::<Vec<_>>());
        prop_assert_eq!(task.trajectory().steps().count() as u32, steps + 1);
        // whoever goes on with the task asks the same
        let others = Arc::new(Models { count, ..Models::new(contexts, steps, &page) });
        let (_, held) = run(&others, hold);
        prop_assert_eq!(bodies(&held), bodies(&events));
        prop_assert_eq!(models.asked.lock().unwrap().clone(), others.asked.lock().unwrap().clone());
    }
}

#[test]
fn a_task_that_fits_is_neither_shortened_nor_measured() {
    let models = Arc::new(Models::new([4000; 3], 5, "It is in France. It is long."));
    let (task, events) = run(&models, usize::MAX);
    assert!(task.finished().unwrap().approved);
    assert_eq!((shortenings(&events), *models.measured.lock().unwrap()), (0, 0));
}

#[test]
fn shortening_is_rare() {
    let page = "It is a river in France. ".repeat(8);
    let models = Arc::new(Models::new([2048; 3], 60, &page));
    let (_, events) = run(&models, usize::MAX);
    let shortenings = shortenings(&events);
    assert!((1..=25).contains(&shortenings), "{shortenings} in 60 steps");
    for event in &events {
        if let EventBody::Shortened(shortened) = &event.body {
            assert!(shortened.tokens > shortened.limit && shortened.limit as usize == 2048 - REPLY, "{shortened:?}");
        }
    }
}

#[test]
fn what_cannot_be_left_out_ends_the_task_with_the_agents_word() {
    let models = Arc::new(Models::new([60 + REPLY, 40, 400], 1, "x"));
    let (task, events) = run(&models, usize::MAX);
    let finished = task.finished().unwrap();
    assert_eq!(finished.reason, FinishReason::Failed);
    assert!(finished.detail.contains("too long"), "{finished:?}");
    assert_eq!(shortenings(&events), 1, "all that can be left out is left out first");
}

#[test]
fn fixed_parts_are_checked_before_a_task_begins() {
    let key = key();
    let check = |context: usize, question: &str| {
        let models = Models::new([4000, context, 4000], 1, "");
        let trajectory = Trajectory { question: question.into(), tools: submitted().tools, ..Trajectory::default() };
        block_on(check_fixed_parts(&models, &key, &trajectory, Duration::from_secs(1)))
    };
    assert_eq!(check(2000, "Where is it?"), Ok(()));
    let refused = check(2000, &"Where is it? ".repeat(400)).unwrap_err();
    assert!(refused.limit == 2000 - REPLY && refused.tokens > 2600, "{refused:?}");
    // nobody counts: the task's calls will tell
    let silent = Models { count: false, ..Models::new([1000; 3], 1, "") };
    let long = Trajectory { question: "x".repeat(100_000), ..Trajectory::default() };
    assert_eq!(block_on(check_fixed_parts(&silent, &key, &long, Duration::from_secs(1))), Ok(()));
}
