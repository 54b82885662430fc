//! The planning loop in one process, with a scripted model.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use autoact_in_process::{Guide, LocalGroup, RunOptions, Voices};
use autoact_model::{Backend, ChatTemplate, GenerateError, GenerateRequest, Grammar, WordBias, WordLimit};
use autoact_speaker::testing::ScriptedBackend;
use autoact_tools::{Corpus, Page, Tool, ToolCall, ToolError, ToolLibrary, ToolOutput};
use autoact_trajectory::{
    CallId, CallKind, Effect, EventBody, FinishReason, Limits, Phase, Role, Sampling, Task, Thought, ToolSpec, Trajectory, UNKNOWN_OUTCOME,
};

const QUESTION: &str = "Where is the Loire?";
/// Longer than a thought may be.
const RAMBLING: usize = 400;

fn library() -> ToolLibrary {
    let page = Page { title: "Loire".into(), text: "The Loire is a river in France.".into() };
    ToolLibrary::bundled(Arc::new(Corpus::from_pages(vec![page]).unwrap())).unwrap()
}

/// Retrieves the page of the Loire and answers France. Every answer gets this verdict.
fn script(prompt: &str, verdict: &str) -> Result<String, GenerateError> {
    Ok(match prompt.rsplit(['\n', '>']).next().unwrap_or_default() {
        "Thought:" if prompt.contains("Observation:") => " It is France.\nAction: Finish\n".to_owned(),
        "Thought:" => " I need the country.\nAction: Retrieve\n".to_owned(),
        "Input:" if prompt.contains("Action: Finish") => " France\n".to_owned(),
        "Input:" => " Loire\n".to_owned(),
        "Reflection:" => format!(" So it is.\nVerdict: {verdict}\n"),
        other => return Err(GenerateError::engine(format!("asked `{other}`"))),
    })
}

fn scripted(verdict: &'static str) -> ScriptedBackend {
    ScriptedBackend::new(move |request| script(&request.prompt, verdict))
}

fn group(backend: &Arc<ScriptedBackend>) -> LocalGroup {
    LocalGroup::new(Arc::clone(backend) as Arc<dyn Backend>, Arc::new(library()), Voices::base())
}

/// The finished task, and the requests that the model got.
fn run(backend: ScriptedBackend, options: &RunOptions) -> (Task, Vec<GenerateRequest>) {
    let backend = Arc::new(backend);
    let group = group(&backend);
    let task = group.run(QUESTION, group.library().specs(), options).unwrap();
    (task, backend.requests())
}

#[test]
fn a_question_runs_to_its_approval() {
    let (task, _) = run(scripted("right"), &RunOptions::default());
    assert!(task.finished().unwrap().approved);
    assert_eq!(task.best_answer(), "France");
    assert_eq!(task.steps(), 2);
    assert!(task.trajectory().steps().next().unwrap().observation.as_ref().unwrap().contains("river in France"));
}

#[test]
fn the_log_holds_every_event() {
    let group = group(&Arc::new(scripted("right")));
    let (task, log) = group.run_logged(QUESTION, group.library().specs(), &RunOptions::default()).unwrap();
    let names: Vec<&str> = log.events.iter().map(|event| event.body.name()).collect();
    let (begin, step) = (["submitted", "started"], ["thought", "action", "observation"]);
    let end = ["thought", "action", "reflection", "finished"];
    assert_eq!(names, [&begin[..], &step, &end].concat());
    assert_eq!(Task::fold(&log.events).unwrap(), task);
    let calls: Vec<String> = log.events.iter().filter_map(|event| event.call.map(|call| call.to_string())).collect();
    assert_eq!(calls, ["plan-1-0", "tool-1-0", "execute-1-0", "plan-2-0", "tool-2-0", "reflect-2-0"]);
}

#[test]
fn rejections_are_bounded() {
    let (task, _) = run(scripted("wrong"), &RunOptions::default());
    assert_eq!(task.finished().unwrap().reason, FinishReason::MaxReflections);
    assert_eq!(task.wrong_verdicts(), RunOptions::default().limits.max_reflections);
}

#[test]
fn without_reflection_the_first_answer_stands() {
    let (task, _) = run(scripted("wrong"), &RunOptions { judgements: Some(0), ..RunOptions::default() });
    assert_eq!((task.phase(), task.best_answer()), (Phase::Reflecting, "France"));
}

#[test]
fn after_the_last_judgement_an_answer_stands() {
    let (task, requests) = run(scripted("wrong"), &RunOptions { judgements: Some(1), ..RunOptions::default() });
    assert_eq!((task.phase(), task.best_answer(), task.wrong_verdicts()), (Phase::Reflecting, "France", 1));
    assert_eq!(requests.iter().filter(|request| request.prompt.ends_with("Reflection:")).count(), 1);
    let (task, _) = run(scripted("right"), &RunOptions { judgements: Some(1), ..RunOptions::default() });
    assert!(task.finished().unwrap().approved);
}

#[test]
fn a_model_that_cannot_speak_ends_the_task_with_the_cause() {
    for error in [
        GenerateError::PromptTooLong { tokens: 9, limit: 5 },
        GenerateError::UnknownAdapter { name: "plan".into(), loaded: vec![] },
        GenerateError::engine("NaN"),
        GenerateError::Cancelled,
    ] {
        let said = error.clone();
        let (task, requests) = run(ScriptedBackend::new(move |_| Err(said.clone())), &RunOptions::default());
        let finished = task.finished().unwrap();
        assert_eq!((finished.reason, finished.detail.as_str()), (FinishReason::Failed, format!("plan-agent: {error}").as_str()));
        assert_eq!(requests.len(), 1, "{error}");
    }
}

#[test]
fn a_reply_that_names_no_tool_of_the_task_ends_it_and_says_so() {
    for (reply, tool) in [(" So.\nAction: Retr", "Retr"), (" So.\nAction: ", ""), (" So.\nAction: Fly\n", "Fly")] {
        let (task, _) = run(ScriptedBackend::saying(reply), &RunOptions::default());
        let finished = task.finished().unwrap();
        assert_eq!(finished.reason, FinishReason::Failed);
        let told =
            format!("plan-agent: the plan agent's reply chooses the tool `{tool}`, which is none of the task's: `Search`, `Retrieve`");
        assert!(finished.detail.starts_with(&told), "{}", finished.detail);
        assert_eq!(task.steps(), 0);
    }
}

#[test]
fn a_cut_thought_is_closed() {
    let rambles = |request: &GenerateRequest| match &request.grammar {
        Some(Grammar::Regex(regex)) if regex.starts_with("\\nAction: ") && request.prompt.contains("Observation:") => {
            Ok("\nAction: Finish\n".to_owned())
        }
        Some(Grammar::Regex(regex)) if regex.starts_with("\\nAction: ") => Ok("\nAction: Retrieve\n".to_owned()),
        Some(Grammar::Regex(regex)) if regex.starts_with("\\nVerdict: ") => Ok("\nVerdict: right\n".to_owned()),
        _ if request.prompt.ends_with("Input:") => script(&request.prompt, "right"),
        _ => Ok((0..RAMBLING).map(|number| format!(" {number}")).collect()),
    };
    let (task, requests) = run(ScriptedBackend::new(rambles), &RunOptions::default());
    assert!(task.finished().unwrap().approved, "{:?}", task.finished());
    assert_eq!(task.best_answer(), "France");
    assert!(task.trajectory().steps().all(|step| step.thought.starts_with("0 1 2 ") && step.thought.len() > 500));
    assert_eq!(requests.len(), 3 * 2 + 2, "each thought is closed by a second request");
    assert!(requests[1].prompt.starts_with(requests[0].prompt.as_str()) && requests[1].sampling == requests[0].sampling);
}

#[test]
fn each_call_draws_from_its_own_seed() {
    let sampling = Sampling { temperature: 0.7, seed: 42, ..Sampling::default() };
    let (_, requests) = run(scripted("wrong"), &RunOptions { sampling, ..RunOptions::default() });
    let call = |role, step, round| CallId { kind: CallKind::Speak(role), step, round }.seed(42);
    let expected = [
        call(Role::Plan, 1, 0),
        call(Role::Tool, 1, 0),
        call(Role::Plan, 2, 0),
        call(Role::Tool, 2, 0),
        call(Role::Reflect, 2, 0),
        call(Role::Plan, 3, 1),
        call(Role::Tool, 3, 1),
        call(Role::Reflect, 3, 1),
        call(Role::Plan, 4, 2),
        call(Role::Tool, 4, 2),
        call(Role::Reflect, 4, 2),
    ];
    assert_eq!(requests.iter().map(|request| request.sampling.seed).collect::<Vec<_>>(), expected);
    assert!(requests.iter().all(|request| request.sampling.temperature == 0.7));
}

#[test]
fn the_models_chat_template_is_used() {
    let source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>";
    let template = ChatTemplate::new(source.into(), String::new(), String::new()).unwrap();
    let (task, requests) = run(scripted("right").with_template(template), &RunOptions::default());
    assert!(task.finished().unwrap().approved, "{:?}", task.finished());
    let duties = ["You plan how", "You operate the tools", "You plan how", "You operate the tools", "You check the work"];
    for (request, duty) in requests.iter().zip(duties) {
        assert!(request.prompt.starts_with(&format!("<system>{duty}")), "{}", request.prompt);
        assert_eq!(request.add_bos, Some(false));
    }
}

#[test]
fn adapters_and_words_to_lean_towards_are_the_roles_own() {
    let backend = Arc::new(scripted("right"));
    let mut voices = Voices::by_role();
    voices.specialists.insert("Finish".into(), "finish".into());
    let group = LocalGroup::new(Arc::clone(&backend) as Arc<dyn Backend>, Arc::new(library()), voices);
    let bias = WordBias::all(["Loire"], 2.0);
    group.run(QUESTION, group.library().specs(), &RunOptions { word_bias: bias.clone(), ..RunOptions::default() }).unwrap();
    let asked: Vec<_> = backend.requests().into_iter().map(|request| (request.adapter.unwrap(), request.word_bias)).collect();
    let leans = |name: &str, bias: &[WordBias]| (name.to_owned(), bias.to_vec());
    let plan = || leans("plan", &bias);
    assert_eq!(asked, [plan(), leans("tool", &[]), plan(), leans("finish", &[]), leans("reflect", &[])]);
}

/// Accepts the second thought and the second parameters of each call.
#[derive(Debug)]
struct Seconds {
    proposals: u32,
    /// The thoughts, parameters and what the tool returned to them, in the order in which they came.
    asked: Mutex<Vec<String>>,
}

impl Seconds {
    fn of(proposals: u32) -> Arc<Seconds> {
        Arc::new(Seconds { proposals, asked: Mutex::default() })
    }

    /// Whether it came before.
    fn again(&self, text: String) -> bool {
        let mut asked = self.asked.lock().unwrap();
        asked.push(text);
        asked.len().is_multiple_of(2)
    }
}

impl Guide for Seconds {
    fn proposals(&self) -> u32 {
        self.proposals
    }

    fn bias(&self, _: &Trajectory, rejected: &[Thought]) -> Vec<WordBias> {
        WordBias::all(rejected.iter().map(|thought| thought.tool.clone()), -1.0)
    }

    fn limit(&self, trajectory: &Trajectory) -> Option<WordLimit> {
        Some(WordLimit::new([trajectory.turns.len().to_string()]))
    }

    fn params_bias(&self, trajectory: &Trajectory, rejected: usize) -> Vec<WordBias> {
        let words = trajectory.open_step().map(|step| step.tool.clone());
        WordBias::all(words.filter(|_| rejected > 0), 1.0)
    }

    fn accepts_thought(&self, _: &Trajectory, thought: &Thought) -> bool {
        self.again(thought.thought.clone())
    }

    fn accepts_params(&self, _: &Trajectory, params: &str, seen: Option<&str>) -> bool {
        self.again(format!("{params}: {}", seen.unwrap_or("none")))
    }
}

#[test]
fn a_guide_chooses_among_proposals() {
    let guide = Seconds::of(2);
    let options = RunOptions {
        sampling: Sampling { temperature: 1.0, seed: 7, ..Sampling::default() },
        judgements: Some(0),
        word_bias: WordBias::all(["Loire"], 2.0),
        guide: Some(Arc::clone(&guide) as _),
        ..RunOptions::default()
    };
    let (task, requests) = run(scripted("right"), &options);
    assert_eq!((task.steps(), task.best_answer()), (2, "France"), "no step more than without a guide");
    let page = "Loire: The Loire is a river in France.";
    let asked = guide.asked.lock().unwrap().clone();
    let pairs = ["I need the country.", page, "It is France.", "France: none"];
    assert_eq!(asked, pairs.map(|text| [text, text]).concat(), "what ends the task is not run");
    assert_eq!(requests.len(), 8);
    let words = |request: &GenerateRequest| request.word_bias.iter().map(|bias| bias.word.clone()).collect::<Vec<_>>();
    assert_eq!(words(&requests[0]), ["Loire"]);
    assert_eq!(words(&requests[1]), ["Loire", "Retrieve"], "what was rejected");
    assert!(requests[2].word_bias.is_empty(), "the first parameters are the model's own");
    assert_eq!(words(&requests[3]), ["Retrieve"]);
    let limits: Vec<_> = requests.iter().map(|request| request.word_limit.clone()).collect();
    let [first, second] = ["0", "1"].map(|steps| Some(WordLimit::new([steps.to_owned()])));
    assert_eq!(limits, [first.clone(), first, None, None, second.clone(), second, None, None], "of thoughts only");
    let seeds: BTreeSet<u64> = requests.iter().map(|request| request.sampling.seed).collect();
    assert_eq!(seeds.len(), 8, "each proposal has a seed of its own");
}

#[test]
fn without_an_accepted_proposal_a_task_fails() {
    let (task, requests) = run(scripted("right"), &RunOptions { guide: Some(Seconds::of(1)), ..RunOptions::default() });
    assert_eq!(task.finished().unwrap().reason, FinishReason::Failed);
    assert_eq!(requests.len(), 1);
}

#[test]
fn a_model_without_room_is_asked_again() {
    let refused = AtomicBool::new(false);
    let (task, requests) = run(
        ScriptedBackend::new(move |request| {
            if refused.swap(true, Ordering::SeqCst) {
                return script(&request.prompt, "right");
            }
            Err(GenerateError::Overloaded { retry_after: Duration::from_millis(1) })
        }),
        &RunOptions::default(),
    );
    assert!(task.finished().unwrap().approved);
    assert_eq!(requests.len(), 6);
    assert_eq!(requests[0], requests[1], "the same call again");
}

#[test]
fn the_bound_on_time_holds_in_calls() {
    let limits = Limits { max_time: Duration::from_millis(200), ..Limits::default() };
    let options = RunOptions { limits, ..RunOptions::default() };
    let begun = Instant::now();
    for error in [GenerateError::Overloaded { retry_after: Duration::from_secs(3600) }, GenerateError::DeadlineExceeded] {
        let (task, requests) = run(ScriptedBackend::new(move |_| Err(error.clone())), &options);
        assert_eq!(task.finished().unwrap().reason, FinishReason::MaxTime);
        let deadline = requests[0].deadline.unwrap();
        assert!(deadline > begun && deadline <= Instant::now() + limits.max_time);
    }
}

/// A tool that answers when the test allows it, or panics.
struct Slow {
    spec: ToolSpec,
    answer: Mutex<Option<mpsc::Receiver<()>>>,
}

impl Tool for Slow {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, _: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        let receiver = self.answer.lock().unwrap().take().unwrap();
        let _ = receiver.recv();
        Ok("at last".to_owned().into())
    }
}

/// A group with one tool, which waits for `answer`, or panics if that is `None`.
fn with_slow(effect: Effect, timeout: Duration, answer: Option<mpsc::Receiver<()>>) -> LocalGroup {
    let spec = ToolSpec {
        definition: "Waits.".into(),
        usage: "Wait[for]".into(),
        effect,
        timeout,
        max_observation_bytes: 1000,
        ..ToolSpec::new("Wait")
    };
    let library = library().with_tool(Arc::new(Slow { spec, answer: Mutex::new(answer) })).unwrap();
    let model = ScriptedBackend::new(|request| {
        let reply = script(&request.prompt, "right")?;
        Ok(reply.replace("Action: Retrieve", "Action: Wait"))
    });
    LocalGroup::new(Arc::new(model), Arc::new(library), Voices::base())
}

fn first_observation(group: &LocalGroup, max_time: Duration) -> (String, FinishReason) {
    let options = RunOptions { limits: Limits { max_time, ..Limits::default() }, ..RunOptions::default() };
    let (task, log) = group.run_logged(QUESTION, group.library().specs(), &options).unwrap();
    let seen = log.events.iter().find_map(|event| match &event.body {
        EventBody::Observation(observation) => Some(observation.text.clone()),
        _ => None,
    });
    (seen.unwrap_or_default(), task.finished().unwrap().reason)
}

#[test]
fn a_tool_has_its_own_time_and_no_more_than_the_tasks() {
    let minute = Duration::from_secs(60);
    let (_hold, answer) = mpsc::channel();
    let group = with_slow(Effect::ReadOnly, Duration::from_millis(50), Some(answer));
    assert_eq!(first_observation(&group, minute), ("Wait failed: no answer within 50ms".to_owned(), FinishReason::Approved));

    let (_hold, answer) = mpsc::channel();
    let group = with_slow(Effect::ReadOnly, minute, Some(answer));
    let (seen, reason) = first_observation(&group, Duration::from_millis(200));
    assert_eq!(reason, FinishReason::MaxTime, "{seen}");

    let (_hold, answer) = mpsc::channel();
    let group = with_slow(Effect::SideEffect, minute, Some(answer));
    let (seen, reason) = first_observation(&group, Duration::from_millis(200));
    assert_eq!((seen.as_str(), reason), (UNKNOWN_OUTCOME, FinishReason::MaxTime));
}

#[test]
fn a_tool_that_panics_is_an_observation() {
    let group = with_slow(Effect::ReadOnly, Duration::from_secs(60), None);
    let (seen, reason) = first_observation(&group, Duration::from_secs(60));
    assert_eq!((seen.as_str(), reason), ("Wait failed: it panicked", FinishReason::Approved));
}
