//! Attempts that begin anew: what agents are given of a task, how they decode, which answer counts.

use crate::common::*;
use autoact_trajectory::*;

fn task(next_attempt: NextAttempt, sampling: Sampling) -> Task {
    let EventBody::Submitted(mut submitted) = submitted_with_not_found(Limits::default()) else { unreachable!() };
    submitted.tools.push(ToolSpec::ask_user());
    let submitted = EventBody::Submitted(Submitted { next_attempt: Some(next_attempt), sampling, ..submitted });
    let mut task = Task::begin(&event(1, submitted)).unwrap();
    apply(&mut task, started(1));
    task
}

fn apply(task: &mut Task, body: EventBody) {
    let usage = Usage { log_prob: Some(-1.0), scored_tokens: 2, ..usage(1) };
    task.apply(&Event { usage: Some(usage), ..event(task.next_index(), body) }).unwrap();
}

fn read(task: &mut Task, tool: &str) {
    apply(task, thought(tool));
    apply(task, action(tool, "Loire"));
    apply(task, observation("It flows through Nantes."));
}

fn answer(task: &mut Task, tool: &str, text: &str) {
    apply(task, thought(tool));
    apply(task, action(tool, text));
}

/// Judged wrong, with this confidence.
fn reject(task: &mut Task, confidence: f64) {
    let next_attempt = task.next_attempt().unwrap();
    let reflection = Reflection { confidence: Some(confidence), next_attempt, ..Reflection::new("No.", Verdict::Wrong) };
    apply(task, EventBody::Reflection(reflection));
}

/// A task with one rejected answer, which took a step with `tool`.
fn rejected(next_attempt: NextAttempt, tool: &str) -> Task {
    let mut task = task(next_attempt, Sampling::default());
    read(&mut task, tool);
    answer(&mut task, FINISH, "Lyon");
    reject(&mut task, 0.4);
    task
}

fn temperatures(task: &Task) -> [f32; 3] {
    [Role::Plan, Role::Tool, Role::Reflect].map(|role| {
        task.sampling_of(CallId { kind: CallKind::Speak(role), step: task.steps() + 1, round: task.wrong_verdicts() }).temperature
    })
}

#[test]
fn an_attempt_that_begins_anew_is_given_the_question_alone() {
    let mut task = rejected(NextAttempt::Anew, "Retrieve");
    assert_eq!(task.trajectory().turns.len(), 3, "the history stays");
    assert!(task.shown().turns.is_empty());
    assert_eq!(temperatures(&task), [1.0, 1.0, 0.0]);
    read(&mut task, "Retrieve");
    answer(&mut task, FINISH, "Paris");
    // of its own steps it sees all, and so does the judge
    assert_eq!(task.shown().turns, task.trajectory().turns[3..]);
    assert_eq!(task.call().unwrap().to_string(), "reflect-4-1");
    reject(&mut task, 0.3);
    assert!(task.shown().turns.is_empty());
    assert_eq!(task.best_answer(), "Lyon", "the surest of all attempts");
}

#[test]
fn an_attempt_that_continues_is_given_all() {
    let task = rejected(NextAttempt::Continues, "Retrieve");
    assert_eq!(*task.shown(), *task.trajectory());
    assert_eq!(temperatures(&task), [0.0; 3]);
}

#[test]
fn what_changed_the_world_or_asked_the_user_is_never_forgotten() {
    for tool in ["Send", ASK_USER] {
        let mut task = rejected(NextAttempt::Anew, tool);
        assert_eq!(*task.shown(), *task.trajectory(), "{tool}");
        assert_eq!(temperatures(&task), [0.0; 3], "{tool}");
        // nor in the attempts after the next
        answer(&mut task, FINISH, "Paris");
        reject(&mut task, 0.3);
        assert_eq!(*task.shown(), *task.trajectory(), "{tool}");
    }
    // an effect in an attempt that began anew is its own: it sees that, and nothing of before
    let mut task = rejected(NextAttempt::Anew, "Retrieve");
    read(&mut task, "Send");
    assert_eq!(task.shown().turns, task.trajectory().turns[3..]);
    answer(&mut task, FINISH, "Paris");
    reject(&mut task, 0.3);
    assert_eq!(*task.shown(), *task.trajectory());
}

#[test]
fn a_temperature_that_was_asked_for_stays() {
    let sampling = Sampling { temperature: 0.5, top_k: 3, seed: 7, ..Sampling::default() };
    let mut task = task(NextAttempt::Anew, sampling);
    answer(&mut task, FINISH, "Lyon");
    reject(&mut task, 0.4);
    assert_eq!(temperatures(&task), [0.5; 3]);
    let call = task.call().unwrap();
    assert_eq!(task.sampling_of(call), Sampling { seed: call.seed(7), ..sampling });
}

#[test]
fn an_attempt_that_begins_anew_owes_nothing_to_the_words_before() {
    let evidence = |task: &Task| task.evidence(Some(2.0), &Usage { log_prob: Some(-0.1), scored_tokens: 1, ..usage(1) });
    let mut anew = rejected(NextAttempt::Anew, "Retrieve");
    assert_eq!(evidence(&anew), None, "it has said nothing");
    let mut continued = rejected(NextAttempt::Continues, "Retrieve");
    for task in [&mut anew, &mut continued] {
        let sure = Usage { log_prob: Some(-0.001), scored_tokens: 1, ..usage(1) };
        for body in [thought(FINISH), action(FINISH, "Nantes")] {
            task.apply(&Event { usage: Some(sure.clone()), ..event(task.next_index(), body) }).unwrap();
        }
    }
    assert_eq!(evidence(&anew).unwrap().lowest_thought, -0.001);
    assert_eq!(evidence(&continued).unwrap().lowest_thought, -0.5);
    // only the attempt before has read of Nantes
    assert_eq!([&anew, &continued].map(|task| evidence(task).unwrap().answer_shown), [0.0, 1.0]);
}

#[test]
fn that_there_is_no_answer_has_to_be_as_sure_as_an_answer_before() {
    let term = Term { part: "verdict".into(), mean: 0.0, deviation: 1.0, weight: 1.0 };
    let calibration = Calibration {
        format: CALIBRATION_FORMAT,
        threshold: 0.9,
        precision: 0.97,
        intercept: 0.0,
        terms: vec![term],
        histories: 10,
        next_attempt: NextAttempt::Continues,
    };
    let judged_by = |mut task: Task, log_odds: f64| {
        answer(&mut task, NOT_FOUND, "the mouth");
        let reflection = Reflection { log_odds: Some(log_odds), ..Reflection::new("So it is.", Verdict::Right) };
        let judgement = Judgement { reflection, calibration: Some(std::sync::Arc::new(calibration.clone())) };
        let reflection = task.judge(judgement, &Usage { log_prob: Some(-0.1), scored_tokens: 1, ..usage(1) });
        apply(&mut task, EventBody::Reflection(reflection.clone()));
        (reflection.verdict, reflection.threshold, task.phase(), task.best_answer().to_owned())
    };
    let judged = |log_odds| judged_by(rejected(NextAttempt::Anew, "Retrieve"), log_odds);
    // the answer before had 0.4: log-odds of -0.405
    assert_eq!(judged(-0.3), (Verdict::Right, Some(0.4), Phase::Approved, "Lyon".into()));
    assert_eq!(judged(-0.5), (Verdict::Wrong, Some(0.4), Phase::Planning, "Lyon".into()));
    // the verdict alone decides
    let EventBody::Submitted(submitted) = submitted_with_not_found(Limits::default()) else { unreachable!() };
    let submitted = Submitted { min_confidence: Some(0.0), next_attempt: Some(NextAttempt::Anew), ..submitted };
    let mut task = Task::begin(&event(1, EventBody::Submitted(submitted))).unwrap();
    apply(&mut task, started(1));
    answer(&mut task, FINISH, "Lyon");
    reject(&mut task, 0.4);
    assert_eq!(judged_by(task, -0.5), (Verdict::Right, None, Phase::Approved, "Lyon".into()));
}

#[test]
fn a_shortened_history_is_forgotten_too() {
    let mut task = rejected(NextAttempt::Anew, "Retrieve");
    read(&mut task, "Retrieve");
    let shortening = Shortening { observations: [(3, Cut { kept: 2, sentences: 0 })].into(), left_out: 1, ..Shortening::default() };
    let planned = task.shown_with(&shortening).into_owned();
    apply(&mut task, EventBody::Shortened(Shortened { shortening, tokens: 2026, limit: 1728 }));
    assert_eq!(*task.shown(), planned);
    let shown = task.shown();
    assert_eq!((shown.left_out, shown.turns.len()), (0, 1));
    assert_eq!(shown.steps().next().unwrap().observation.as_deref(), Some("It (The rest is left out.)"));
    // of its own steps it is told how many are left out: one of three
    let own = task.shown_with(&Shortening { left_out: 3, ..Shortening::default() });
    assert_eq!((own.left_out, own.turns.len()), (1, 0));
}

#[test]
fn the_request_says_how_to_go_on_else_the_calibration() {
    let term = Term { part: "verdict".into(), mean: 0.0, deviation: 1.0, weight: 1.0 };
    let calibration = |next_attempt| Calibration {
        format: CALIBRATION_FORMAT,
        threshold: 0.9,
        precision: 0.97,
        intercept: 0.0,
        terms: vec![term.clone()],
        histories: 10,
        next_attempt,
    };
    let judged = |asked: Option<NextAttempt>, calibrated: Option<NextAttempt>| {
        let EventBody::Submitted(submitted) = submitted(Limits::default()) else { unreachable!() };
        let mut task = Task::begin(&event(1, EventBody::Submitted(Submitted { next_attempt: asked, ..submitted }))).unwrap();
        apply(&mut task, started(1));
        answer(&mut task, FINISH, "Lyon");
        let calibration = calibrated.map(|next| std::sync::Arc::new(calibration(next)));
        task.judge(Judgement { reflection: Reflection::new("No.", Verdict::Wrong), calibration }, &usage(1)).next_attempt
    };
    let (continues, anew) = (NextAttempt::Continues, NextAttempt::Anew);
    assert_eq!(judged(None, None), continues);
    assert_eq!(judged(None, Some(anew)), anew);
    assert_eq!(judged(Some(continues), Some(anew)), continues);
    assert_eq!(judged(Some(anew), None), anew);
}
