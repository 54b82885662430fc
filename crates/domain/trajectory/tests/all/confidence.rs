//! What a confidence does to verdicts and answers.

use std::sync::Arc;

use crate::common::*;
use autoact_trajectory::*;

fn words(log_prob: f64) -> Usage {
    Usage { log_prob: Some(log_prob), scored_tokens: 1, ..usage(1) }
}

/// A calibration in which the verdict's log-odds are the log-odds of the confidence.
fn calibration(threshold: f64) -> Option<Arc<Calibration>> {
    let term = Term { part: "verdict".into(), mean: 0.0, deviation: 1.0, weight: 1.0 };
    let (precision, intercept, histories) = (0.97, 0.0, 10);
    Some(Arc::new(Calibration {
        format: CALIBRATION_FORMAT,
        threshold,
        precision,
        intercept,
        terms: vec![term],
        histories,
        next_attempt: NextAttempt::Anew,
    }))
}

/// A task that answered, with agents that know how likely their words were.
fn answered(min_confidence: Option<f64>) -> Task {
    let EventBody::Submitted(submitted) = submitted(Limits::default()) else { unreachable!() };
    let mut task = Task::begin(&event(1, EventBody::Submitted(Submitted { min_confidence, ..submitted }))).unwrap();
    apply(&mut task, started(1), None);
    answer(&mut task, "Lyon");
    task
}

fn apply(task: &mut Task, body: EventBody, usage: Option<Usage>) {
    task.apply(&Event { usage, ..event(task.next_index(), body) }).unwrap();
}

fn answer(task: &mut Task, text: &str) {
    apply(task, thought(FINISH), Some(words(-1.0)));
    apply(task, action(FINISH, text), Some(words(-0.5)));
}

/// A judgement "right" with these log-odds.
fn judged(task: &Task, log_odds: f64, calibration: Option<Arc<Calibration>>) -> Reflection {
    let reflection = Reflection { log_odds: Some(log_odds), ..Reflection::new("So it is.", Verdict::Right) };
    task.judge(Judgement { reflection, calibration }, &words(-0.1))
}

#[test]
fn a_verdict_below_the_threshold_is_no_approval() {
    let task = answered(None);
    let sure = judged(&task, 3.0, calibration(0.9));
    assert_eq!((sure.verdict, sure.threshold), (Verdict::Right, Some(0.9)));
    assert!((sure.confidence.unwrap() - 0.952_574).abs() < 1e-6);
    let unsure = judged(&task, 2.0, calibration(0.9));
    assert_eq!((unsure.verdict, unsure.threshold), (Verdict::Wrong, Some(0.9)));
    // a verdict "wrong" stays wrong, however sure
    let reflection = Reflection { log_odds: Some(9.0), ..Reflection::new("No.", Verdict::Wrong) };
    let wrong = task.judge(Judgement { reflection, calibration: calibration(0.9) }, &words(-0.1));
    assert_eq!(wrong.verdict, Verdict::Wrong);
}

#[test]
fn a_request_sets_its_own_threshold() {
    assert_eq!(judged(&answered(Some(0.96)), 3.0, calibration(0.9)).verdict, Verdict::Wrong);
    assert_eq!(judged(&answered(Some(0.0)), -3.0, calibration(0.9)).verdict, Verdict::Right);
}

#[test]
fn without_a_calibration_the_verdict_decides_unless_a_confidence_is_asked() {
    let plain = judged(&answered(None), 3.0, None);
    assert_eq!((plain.verdict, plain.confidence, plain.threshold), (Verdict::Right, None, None));
    let asked = judged(&answered(Some(0.5)), 3.0, None);
    assert_eq!((asked.verdict, asked.confidence, asked.threshold), (Verdict::Wrong, None, Some(0.5)));
    assert_eq!(judged(&answered(Some(0.0)), 3.0, None).verdict, Verdict::Right);
    // words without any usage: what is known of the others is not enough
    let mut untold = answered(None);
    apply(&mut untold, reflection(Verdict::Wrong), None);
    apply(&mut untold, thought(FINISH), None);
    apply(&mut untold, action(FINISH, "Paris"), Some(words(-0.5)));
    assert_eq!(judged(&untold, 3.0, calibration(0.99)).confidence, None);
    // one part of the evidence is unknown
    let mut silent = answered(None);
    apply(&mut silent, reflection(Verdict::Wrong), None);
    apply(&mut silent, thought(FINISH), Some(usage(1)));
    apply(&mut silent, action(FINISH, "Paris"), Some(words(-0.5)));
    let unknown = judged(&silent, 3.0, calibration(0.99));
    assert_eq!((unknown.verdict, unknown.confidence, unknown.threshold), (Verdict::Right, None, None));
}

#[test]
fn the_answer_with_the_highest_confidence_comes_back() {
    let mut task = answered(None);
    for (next, log_odds) in [("Paris", 1.0), ("Nantes", 2.0), ("Tours", 2.0)] {
        let reflection = judged(&task, log_odds, calibration(0.99));
        assert_eq!(reflection.verdict, Verdict::Wrong);
        apply(&mut task, EventBody::Reflection(reflection), None);
        answer(&mut task, next);
    }
    // Lyon was judged with 1, Paris with 2, Nantes with 2 after it, and Tours not at all
    assert_eq!(task.best_answer(), "Paris");
    assert_eq!(task.finish(FinishReason::MaxTime, "").answer, "Paris");
    assert!((task.confidence().unwrap() - 0.880_797).abs() < 1e-6);
    // an approved answer is the answer
    let approved = judged(&task, 9.0, calibration(0.99));
    apply(&mut task, EventBody::Reflection(approved), None);
    assert_eq!(task.best_answer(), "Tours");
    assert!(matches!(decide(&task, at(5)), Decision::Finish(Finished { approved: true, answer, .. }) if answer == "Tours"));
    assert!(task.confidence().unwrap() > 0.99);
}

#[test]
fn an_event_of_a_later_program_is_progress() {
    let mut task = answered(None);
    for attempt in 2..20 {
        apply(&mut task, started(attempt), None);
        apply(&mut task, EventBody::Unknown(Unknown { version: 99, needed: false }), None);
    }
    assert_eq!(task.fruitless_attempts(), 0);
    apply(&mut task, started(20), None);
    assert_eq!(task.fruitless_attempts(), 1);
}

#[test]
fn that_there_is_no_answer_needs_no_confidence() {
    let EventBody::Submitted(submitted) = submitted_with_not_found(Limits::default()) else { unreachable!() };
    let mut task = Task::begin(&event(1, EventBody::Submitted(Submitted { min_confidence: Some(0.99), ..submitted }))).unwrap();
    apply(&mut task, started(1), None);
    apply(&mut task, thought(NOT_FOUND), Some(words(-1.0)));
    apply(&mut task, action(NOT_FOUND, "the mouth of Loire"), Some(words(-0.5)));
    let unsure = judged(&task, 2.0, calibration(0.9));
    assert_eq!((unsure.verdict, unsure.threshold), (Verdict::Right, None));
    assert!(unsure.confidence.is_some());
}
