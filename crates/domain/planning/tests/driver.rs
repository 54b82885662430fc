//! The driver over agents that follow a script. The scripted agents exist in these tests only.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use autoact_planning::*;
use autoact_trajectory::*;
use futures::executor::block_on;
use proptest::prelude::*;

/// Answers from the history and the call's seed alone, as a model does.
#[derive(Default)]
struct Group {
    /// Failures to come, of any call.
    failures: Mutex<VecDeque<FailureClass>>,
    /// The seeds of the calls so far.
    seeds: Mutex<Vec<(CallId, u64)>>,
    /// How often tools ran.
    runs: Mutex<u32>,
    /// Whether receipts are kept of what was run.
    receipts: bool,
}

impl Group {
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

    fn answer<T>(&self, call: Call<'_>, value: T) -> Result<Reply<T>, Failure> {
        self.seeds.lock().unwrap().push((call.id, call.sampling.seed));
        match self.failures.lock().unwrap().pop_front() {
            Some(class) => Err(Failure::new(class, "plan-agent at `http://10.0.0.7:7401`", "it is gone")),
            None => Ok(Reply::new(value, Usage { completion_tokens: 3, ..Usage::default() })),
        }
    }
}

fn steps(call: &Call<'_>) -> usize {
    call.trajectory.steps().count()
}

#[async_trait]
impl PlanAgent for Group {
    async fn plan(&self, call: Call<'_>) -> Result<Reply<Thought>, Failure> {
        let tool = match (steps(&call), call.trajectory.question.as_str()) {
            (0, "fly") => "Teleport",
            (0, "send" | "send table") => "Send",
            (0 | 2, _) => "Retrieve",
            (_, "nothing") => NOT_FOUND,
            _ => FINISH,
        };
        self.answer(call, Thought { thought: format!("seed {}", call.sampling.seed), tool: tool.into() })
    }
}

#[async_trait]
impl ToolAgent for Group {
    async fn parameterize(&self, call: Call<'_>) -> Result<Reply<String>, Failure> {
        let input = match call.trajectory.question.as_str() {
            "ramble" => "x".repeat(MAX_PARAMS_BYTES + 1),
            "cite" if call.trajectory.open_step().is_some_and(|step| step.tool == FINISH) => "1006 seeds".into(),
            _ => format!("input {}", call.sampling.seed % 100),
        };
        self.answer(call, input)
    }
}

#[async_trait]
impl ReflectAgent for Group {
    async fn reflect(&self, call: Call<'_>) -> Result<Reply<Judgement>, Failure> {
        let verdict = if steps(&call) > 2 { Verdict::Right } else { Verdict::Wrong };
        self.answer(call, Reflection::new(format!("seed {}", call.sampling.seed), verdict).into())
    }
}

#[async_trait]
impl Tools for Group {
    async fn execute(&self, execution: Execution<'_>) -> Result<Reply<Seen>, Failure> {
        let text = match execution.call.trajectory.question.as_str() {
            "flood" => "x".repeat(1 << 20),
            "cite" => "It is old. It has 1006 seeds.".into(),
            _ => format!("page of {}", execution.action.params),
        };
        let table = || NewArtifact {
            kind: "table".into(),
            media_type: "text/csv".into(),
            name: "rivers.csv".into(),
            text: "12 rivers".into(),
            data: b"Loire,1006\n".to_vec(),
        };
        let artifacts = if execution.call.trajectory.question.ends_with("table") { vec![table()] } else { Vec::new() };
        let sources = if execution.call.trajectory.question == "cite" { vec![source(&text)] } else { Vec::new() };
        let seen = Seen { observation: Observation { text, sources, ..Observation::default() }, artifacts };
        let reply = self.answer(execution.call, seen)?;
        *self.runs.lock().unwrap() += 1;
        Ok(reply)
    }

    fn keeps_receipts(&self) -> bool {
        self.receipts
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

/// A page whose text is the observation.
fn source(text: &str) -> Source {
    Source { title: "Seeds".into(), start: 3, end: 3 + text.len() as u64, text: text.into(), ..Source::default() }
}

fn key() -> TaskKey {
    TaskKey::new(Tenant::default(), "t".parse().unwrap())
}

fn tool(name: &str, effect: Effect) -> ToolSpec {
    ToolSpec { effect, max_observation_bytes: 100, ..ToolSpec::new(name) }
}

fn submitted(question: &str) -> Submitted {
    Submitted {
        question: question.into(),
        tools: vec![
            tool("Retrieve", Effect::ReadOnly),
            tool("Send", Effect::SideEffect),
            tool(FINISH, Effect::ReadOnly),
            tool(NOT_FOUND, Effect::ReadOnly),
        ],
        sampling: Sampling { temperature: 0.7, seed: 42, ..Sampling::default() },
        ..Submitted::default()
    }
}

fn options() -> DriverOptions {
    DriverOptions { writer: "test".into(), judgements: None }
}

fn begin(group: &Arc<Group>, question: &str) -> Driver<MemoryLog> {
    block_on(Driver::begin(group.agents(), MemoryLog::default(), options(), &key(), submitted(question))).unwrap()
}

fn step(driver: &mut Driver<MemoryLog>) -> Progress {
    block_on(driver.step(std::future::pending())).unwrap()
}

/// The bodies of a task, without those that say who runs it.
fn bodies(events: &[Event]) -> Vec<EventBody> {
    let said = |body: &&EventBody| !matches!(body, EventBody::Started(_) | EventBody::Released(_));
    events.iter().map(|event| &event.body).filter(said).cloned().collect()
}

fn whole(question: &str) -> Vec<Event> {
    let mut driver = begin(&Arc::default(), question);
    block_on(driver.run()).unwrap();
    driver.into_parts().1.events
}

#[test]
fn a_task_runs_to_its_end() {
    let events = whole("q");
    let names: Vec<_> = events.iter().map(|event| event.body.name()).collect();
    let one_try = ["thought", "action", "observation", "thought", "action", "reflection"];
    assert_eq!(names, [&["submitted", "started"][..], &one_try, &one_try, &["finished"]].concat());
    let task = Task::fold(&events).unwrap();
    assert!(task.finished().unwrap().approved);
    assert!(events.iter().all(|event| (event.epoch == 1) == (event.index > 1)), "{events:?}");
    let calls: Vec<_> = events.iter().filter_map(|event| event.call).map(|call| call.to_string()).collect();
    let first = ["plan-1-0", "tool-1-0", "execute-1-0", "plan-2-0", "tool-2-0", "reflect-2-0"];
    let second = ["plan-3-1", "tool-3-1", "execute-3-1", "plan-4-1", "tool-4-1", "reflect-4-1"];
    assert_eq!(calls, [first, second].concat());
}

#[test]
fn that_there_is_no_answer_is_judged_and_ends_the_task() {
    let events = whole("nothing");
    let names: Vec<_> = events.iter().map(|event| event.body.name()).collect();
    let one_try = ["thought", "action", "observation", "thought", "action", "reflection"];
    assert_eq!(names, [&["submitted", "started"][..], &one_try, &one_try, &["finished"]].concat());
    let task = Task::fold(&events).unwrap();
    let missing = task.trajectory().steps().next_back().unwrap().params.clone().unwrap();
    let end = Finished {
        answer: String::new(),
        approved: false,
        reason: FinishReason::NoAnswer,
        detail: missing,
        citations: Vec::new(),
        open_effect: None,
        by: String::new(),
    };
    assert_eq!(task.finished(), Some(&end));
}

#[test]
fn the_end_has_the_citations_of_its_answer() {
    let events = whole("cite");
    let task = Task::fold(&events).unwrap();
    let steps: Vec<&Step> = task.trajectory().steps().collect();
    assert_eq!(steps[0].sources, [source(steps[0].observation.as_ref().unwrap())]);
    let before = Task::fold(&events[..events.len() - 1]).unwrap();
    let finished = task.finished().unwrap();
    assert_eq!(finished.citations, before.finish(FinishReason::Cancelled, "").citations, "a replay computes the same");
    // of two steps that showed it, the first one: then it was known
    let cited: Vec<_> = finished.citations.iter().map(|citation| (citation.step, citation.start, citation.quote.as_str())).collect();
    assert_eq!((finished.answer.as_str(), cited), ("1006 seeds", vec![(1, 3 + 11, "It has 1006 seeds.")]));
    assert!(whole("q").iter().all(|event| !matches!(&event.body, EventBody::Finished(end) if !end.citations.is_empty())));
}

#[test]
fn a_call_draws_from_its_own_seed_however_often_it_is_made() {
    let group = Arc::new(Group::default());
    group.failures.lock().unwrap().push_back(FailureClass::MayHaveRun);
    let mut driver = begin(&group, "q");
    assert!(matches!(step(&mut driver), Progress::Waiting(_)));
    while matches!(step(&mut driver), Progress::Advanced) {}
    let seeds = group.seeds.lock().unwrap().clone();
    assert_eq!(seeds[0], seeds[1], "the repetition");
    assert!(seeds.iter().all(|(call, seed)| *seed == call.seed(42)));
    let distinct: std::collections::BTreeSet<_> = seeds.iter().map(|(_, seed)| seed).collect();
    assert_eq!(distinct.len(), seeds.len() - 1);
}

#[test]
fn what_follows_a_failed_call_of_an_agent_is_its_class_alone() {
    for class in FailureClass::ALL {
        let group = Arc::new(Group::default());
        group.failures.lock().unwrap().push_back(class);
        let mut driver = begin(&group, "q");
        let stored = driver.task().next_index();
        match step(&mut driver) {
            Progress::Waiting(failure) => {
                assert!(class.passes() && failure.class == class);
                assert_eq!(driver.task().next_index(), stored, "nothing was stored");
                assert!(matches!(step(&mut driver), Progress::Advanced), "it may be tried again");
            }
            Progress::Ended => {
                assert!(!class.passes());
                let finished = driver.task().finished().unwrap();
                assert_eq!(finished.reason, FinishReason::Failed);
                assert!(finished.detail.contains("http://10.0.0.7:7401") && finished.detail.contains("it is gone"), "{finished:?}");
            }
            other => panic!("{class:?}: {other:?}"),
        }
    }
}

#[test]
fn what_follows_a_failed_action_is_its_class_and_its_tools_effect() {
    let tools = [("send", Effect::SideEffect), ("q", Effect::ReadOnly)];
    for ((question, effect), receipts) in tools.into_iter().flat_map(|tool| [(tool, false), (tool, true)]) {
        for class in FailureClass::ALL {
            let group = Arc::new(Group { receipts, ..Group::default() });
            let mut driver = begin(&group, question);
            step(&mut driver);
            step(&mut driver);
            group.failures.lock().unwrap().push_back(class);
            let progress = step(&mut driver);
            let observation = driver.task().trajectory().open_step().and_then(|step| step.observation.clone());
            // a receipt tells what came of a call that was begun, and whether it was
            let told = receipts && matches!(class, FailureClass::MayHaveRun | FailureClass::TimedOut);
            let unknown = effect == Effect::SideEffect && class.may_have_run() && !told;
            let later = class == FailureClass::TimedOut && effect == Effect::SideEffect
                || matches!(class, FailureClass::NotSent | FailureClass::Busy | FailureClass::MayHaveRun | FailureClass::Fenced);
            let waits = later && !unknown;
            match progress {
                Progress::Waiting(_) => assert!(waits && observation.is_none(), "{class:?} {effect:?}"),
                Progress::Advanced if unknown => assert_eq!(observation.as_deref(), Some(UNKNOWN_OUTCOME), "{class:?}"),
                Progress::Advanced => {
                    let text = observation.unwrap();
                    assert!(!waits && text.contains("failed: it is gone"), "{class:?} {effect:?}: {text}");
                    assert!(!text.contains("10.0.0.7"), "addresses are no business of a model's: {text}");
                }
                other => panic!("{class:?} {effect:?}: {other:?}"),
            }
            assert_eq!(*group.runs.lock().unwrap(), 0);
        }
    }
}

#[test]
fn an_interrupt_stores_nothing_and_the_step_is_made_again() {
    let mut driver = begin(&Arc::default(), "q");
    let stored = driver.task().next_index();
    assert!(matches!(block_on(driver.step(std::future::ready(()))).unwrap(), Progress::Interrupted));
    assert_eq!(driver.task().next_index(), stored);
    assert!(matches!(step(&mut driver), Progress::Advanced));
}

#[test]
fn a_reply_that_cannot_follow_ends_the_task_with_a_reason() {
    let events = whole("fly");
    let task = Task::fold(&events).unwrap();
    let finished = task.finished().unwrap();
    assert!(finished.reason == FinishReason::Failed && finished.detail.contains("`Teleport`"), "{finished:?}");
}

#[test]
fn what_is_too_long_for_an_event_is_cut_or_ends_the_task_at_once() {
    let events = whole("flood");
    let seen = events.iter().find_map(|event| match &event.body {
        EventBody::Observation(seen) => Some(seen),
        _ => None,
    });
    assert!(seen.is_some_and(|seen| seen.truncated && seen.text.len() <= MAX_OBSERVATION_BYTES && seen.text.ends_with(CUT_MARK)));
    let events = whole("ramble");
    let Some(EventBody::Finished(finished)) = events.last().map(|event| &event.body) else { panic!("{events:?}") };
    assert!(finished.reason == FinishReason::Failed && finished.detail.contains(&(MAX_PARAMS_BYTES + 1).to_string()), "{finished:?}");
    assert_eq!(events.iter().filter(|event| event.body.name() == "started").count(), 1);
}

/// A log whose store of artifacts is full for the first calls.
#[derive(Default)]
struct Full {
    log: MemoryLog,
    refusals: u32,
}

#[async_trait]
impl EventLog for Full {
    type Error = NeverFails;

    async fn append(&mut self, event: &Event, after: u64) -> Result<Appended, NeverFails> {
        self.log.append(event, after).await
    }

    async fn keep(&mut self, task: &TaskKey, artifact: &NewArtifact) -> Result<Artifact, Failure> {
        if self.refusals > 0 {
            self.refusals -= 1;
            return Err(Failure::new(FailureClass::Busy, "the store of artifacts", "it is full"));
        }
        self.log.keep(task, artifact).await
    }
}

fn with_full_store(group: &Arc<Group>, question: &str) -> Driver<Full> {
    let log = Full { refusals: 1, ..Full::default() };
    let mut driver = block_on(Driver::begin(group.agents(), log, options(), &key(), submitted(question))).unwrap();
    for _ in 0..2 {
        block_on(driver.step(std::future::pending())).unwrap();
    }
    driver
}

#[test]
fn artifacts_are_stored_before_the_event_that_refers_to_them() {
    let mut driver = begin(&Arc::default(), "table");
    block_on(driver.run()).unwrap();
    let (task, log) = driver.into_parts();
    assert_eq!(log.artifacts.len(), 1, "the same artifact of two steps is one");
    let seen = log.events.iter().find(|event| event.body.name() == "observation").unwrap();
    assert_eq!((seen.artifacts[0].name.as_str(), seen.artifacts[0].object.as_str(), seen.artifacts[0].bytes), ("rivers.csv", "0", 11));
    assert_eq!(task.trajectory().steps().next().unwrap().artifacts, seen.artifacts);
}

#[test]
fn a_task_waits_for_room_for_its_artifacts_and_runs_its_tool_again() {
    let group = Arc::new(Group::default());
    let mut driver = with_full_store(&group, "table");
    assert!(
        matches!(block_on(driver.step(std::future::pending())).unwrap(), Progress::Waiting(failure) if failure.class == FailureClass::Busy)
    );
    assert!(matches!(block_on(driver.step(std::future::pending())).unwrap(), Progress::Advanced));
    assert_eq!((*group.runs.lock().unwrap(), driver.task().trajectory().open_step().unwrap().artifacts.len()), (2, 1));
}

#[test]
fn what_must_not_run_twice_goes_on_without_its_artifacts() {
    let group = Arc::new(Group::default());
    let mut driver = with_full_store(&group, "send table");
    assert!(matches!(block_on(driver.step(std::future::pending())).unwrap(), Progress::Advanced));
    let step = driver.task().trajectory().open_step().unwrap();
    assert!(step.artifacts.is_empty() && step.observation.as_deref().unwrap().contains("rivers.csv"), "{step:?}");
    assert_eq!(*group.runs.lock().unwrap(), 1);
}

#[test]
fn without_reflection_the_first_answer_stays() {
    let options = DriverOptions { judgements: Some(0), ..options() };
    let group = Arc::new(Group::default());
    let key = key();
    let driver = Driver::begin(group.agents(), MemoryLog::default(), options, &key, submitted("q"));
    let mut driver = block_on(driver).unwrap();
    block_on(driver.run()).unwrap();
    assert!(driver.task().finished().is_none() && driver.task().best_answer().starts_with("input"));
}

#[test]
fn a_side_effect_that_was_not_begun_is_run_by_the_next_holder() {
    for (may_have_run, runs) in [(false, 1), (true, 0)] {
        let group = Arc::new(Group::default());
        let mut driver = begin(&group, "send");
        step(&mut driver);
        step(&mut driver);
        block_on(driver.release(ReleaseReason::Waiting, "tool-agent is away", may_have_run)).unwrap();
        let (task, log) = driver.into_parts();
        let mut next = block_on(Driver::take_up(group.agents(), log, options(), task)).unwrap();
        step(&mut next);
        assert_eq!(*group.runs.lock().unwrap(), runs);
        assert_eq!(next.task().fruitless_attempts(), 0, "an observation is progress");
    }
}

proptest! {
    /// Wherever holders vanish or give the task back, the task is the one that a single holder
    /// runs.
    #[test]
    fn take_overs_change_nothing(cuts in prop::collection::vec((1..5usize, any::<bool>()), 0..8)) {
        let expected = bodies(&whole("q"));
        let group = Arc::new(Group::default());
        let mut driver = begin(&group, "q");
        for (steps, releases) in cuts {
            for _ in 0..steps {
                step(&mut driver);
            }
            if driver.task().finished().is_some() {
                break;
            }
            if releases {
                block_on(driver.release(ReleaseReason::Draining, "", true)).unwrap();
            }
            let (_, log) = driver.into_parts();
            // the next holder knows what is stored and nothing else
            let task = Task::fold(&log.events).unwrap();
            driver = block_on(Driver::take_up(group.agents(), log, options(), task)).unwrap();
        }
        block_on(driver.run()).unwrap();
        let (_, log) = driver.into_parts();
        prop_assert_eq!(bodies(&log.events), expected);
        prop_assert!(Task::fold(&log.events).is_ok());
    }
}
