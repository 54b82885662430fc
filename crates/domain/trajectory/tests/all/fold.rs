//! One rule of the fold and of the loop per test.

use crate::common::*;
use autoact_trajectory::*;

fn task(bodies: impl IntoIterator<Item = EventBody>) -> Task {
    Task::fold(&events(bodies)).unwrap()
}

fn begun(bodies: impl IntoIterator<Item = EventBody>) -> Task {
    begun_with(Limits::default(), bodies)
}

fn begun_with(limits: Limits, bodies: impl IntoIterator<Item = EventBody>) -> Task {
    task([submitted_with_not_found(limits), started(1)].into_iter().chain(bodies))
}

/// A step that answers, and its verdict.
fn answer(text: &str, verdict: Verdict) -> [EventBody; 3] {
    [thought(FINISH), action(FINISH, text), reflection(verdict)]
}

fn step(params: &str) -> [EventBody; 3] {
    [thought("Retrieve"), action("Retrieve", params), observation("A page.")]
}

#[test]
fn the_loop_in_order() {
    let mut task = begun([]);
    let script = [
        (Decision::Plan, thought("Retrieve")),
        (Decision::Parameterize, action("Retrieve", "Loire")),
        (
            Decision::Execute { action: Action { tool: "Retrieve".into(), params: "Loire".into() }, step: 1, may_have_run: false },
            observation("Loire is a river in France."),
        ),
        (Decision::Plan, thought(FINISH)),
        (Decision::Parameterize, action(FINISH, "Paris")),
        (Decision::Reflect, reflection(Verdict::Wrong)),
        (Decision::Plan, thought(FINISH)),
        (Decision::Parameterize, action(FINISH, "Paris, France")),
        (Decision::Reflect, reflection(Verdict::Right)),
    ];
    for (decision, body) in script {
        assert_eq!(decide(&task, at(20)), decision);
        let event = event(task.next_index(), body);
        task.apply(&event).unwrap();
    }
    let end = Finished {
        answer: "Paris, France".into(),
        approved: true,
        reason: FinishReason::Approved,
        detail: String::new(),
        citations: Vec::new(),
        open_effect: None,
        by: String::new(),
    };
    assert_eq!(decide(&task, at(20)), Decision::Finish(end.clone()));
    let last = event(task.next_index(), EventBody::Finished(end));
    task.apply(&last).unwrap();
    assert_eq!(decide(&task, at(20)), Decision::Done);
    assert_eq!(task.finished_at(), Some(last.time));
}

#[test]
fn every_bound_ends_the_task_with_the_best_answer() {
    let end = |task: &Task, now| match decide(task, at(now)) {
        Decision::Finish(end) => (end.reason, end.approved, end.answer),
        other => panic!("{other:?}"),
    };
    let limits = Limits::default();

    let steps = begun_with(Limits { max_steps: 2, ..limits }, [step("a"), step("b")].concat());
    assert_eq!(end(&steps, 10), (FinishReason::MaxSteps, false, String::new()));

    let two = [answer("Lyon", Verdict::Wrong), answer("Paris", Verdict::Wrong)].concat();
    let reflections = begun_with(Limits { max_reflections: 2, ..limits }, two);
    assert_eq!(end(&reflections, 10), (FinishReason::MaxReflections, false, "Paris".into()));

    let mut tokens = begun_with(Limits { max_tokens: 50, ..limits }, answer("Paris", Verdict::Wrong));
    tokens.apply(&Event { usage: Some(usage(50)), ..event(tokens.next_index(), thought("Retrieve")) }).unwrap();
    assert_eq!(end(&tokens, 10), (FinishReason::MaxTokens, false, "Paris".into()));

    let time = begun(step("a"));
    assert_eq!(decide(&time, at(2 + 119)), Decision::Plan);
    assert_eq!(end(&time, 2 + 120), (FinishReason::MaxTime, false, String::new()));
}

#[test]
fn waiting_in_the_queue_costs_no_time() {
    assert_eq!(decide(&task([submitted(Limits::default())]), at(1_000_000)), Decision::Plan);
}

#[test]
fn an_approved_answer_beats_every_bound() {
    let limits = Limits { max_steps: 1, max_reflections: 1, ..Limits::default() };
    let task = begun_with(limits, answer("Paris", Verdict::Right));
    assert!(matches!(decide(&task, at(1_000_000)), Decision::Finish(Finished { approved: true, .. })));
}

/// A step that says that there is no answer, and its verdict.
fn denied(missing: &str, verdict: Verdict) -> [EventBody; 3] {
    [thought(NOT_FOUND), action(NOT_FOUND, missing), reflection(verdict)]
}

#[test]
fn that_there_is_no_answer_is_judged_like_an_answer() {
    let said = begun([thought(NOT_FOUND), action(NOT_FOUND, "the mouth of Loire")]);
    assert_eq!((said.phase(), said.no_answer()), (Phase::Reflecting, Some("the mouth of Loire")));
    assert_eq!(said.best_answer(), "");

    let agreed = begun([answer("Paris", Verdict::Wrong), denied("the mouth of Loire", Verdict::Right)].concat());
    let end = Finished {
        answer: String::new(),
        approved: false,
        reason: FinishReason::NoAnswer,
        detail: "the mouth of Loire".into(),
        citations: Vec::new(),
        open_effect: None,
        by: String::new(),
    };
    assert_eq!(decide(&agreed, at(1_000_000)), Decision::Finish(end.clone()));
    let mut over = agreed.clone();
    over.apply(&event(over.next_index(), EventBody::Finished(end))).unwrap();
    assert_eq!(decide(&over, at(20)), Decision::Done);

    // refused: the group plans on, and an earlier answer is still the best one
    let refused = begun([answer("Paris", Verdict::Wrong), denied("the mouth of Loire", Verdict::Wrong)].concat());
    assert_eq!((refused.phase(), refused.best_answer(), refused.wrong_verdicts()), (Phase::Planning, "Paris", 2));
}

#[test]
fn a_confidence_in_no_answer_is_of_no_answer() {
    let judged = |confidence| EventBody::Reflection(Reflection { confidence: Some(confidence), ..Reflection::new("So.", Verdict::Wrong) });
    let first = vec![thought(FINISH), action(FINISH, "Paris"), judged(0.2)];
    let second = vec![thought(NOT_FOUND), action(NOT_FOUND, "the mouth of Loire"), judged(0.9)];
    let task = begun([first, second].concat());
    assert_eq!((task.best_answer(), task.confidence()), ("Paris", Some(0.2)));
}

fn seen(text: &str) -> Observation {
    Observation { text: text.into(), ..Observation::default() }
}

#[test]
fn a_repeated_action_is_noted() {
    let task = begun([step("Loire").to_vec(), vec![thought("Retrieve"), action("Retrieve", "Loire")]].concat());
    let noted = task.observe(seen("A page."));
    assert!(noted.repeated);
    assert_eq!(noted.text, "(Same action as before; try another.) A page.");

    let other = begun([step("Loire").to_vec(), vec![thought("Retrieve"), action("Retrieve", "France")]].concat());
    assert!(!other.observe(seen("A page.")).repeated);
    // while planning, the step before is the last one
    assert!(begun(step("Loire")).repeats(&Action { tool: "Retrieve".into(), params: "Loire".into() }));
}

#[test]
fn after_a_take_over_an_action_may_have_run() {
    let interrupted = |tool: &str| begun([thought(tool), action(tool, "x"), started(2)]);
    for tool in ["Send", "Retrieve"] {
        assert!(matches!(decide(&interrupted(tool), at(5)), Decision::Execute { may_have_run: true, .. }), "{tool}");
    }
    let end = |tool: &str| interrupted(tool).finish(FinishReason::Cancelled, "").open_effect;
    assert_eq!((end("Send"), end("Retrieve")), (Some(1), None));
    // a take-over before the action was complete changes nothing
    let early = begun([thought("Send"), started(2), action("Send", "x")]);
    assert!(matches!(decide(&early, at(5)), Decision::Execute { may_have_run: false, .. }));
}

#[test]
fn events_that_do_not_fit_are_refused() {
    use FoldError::*;
    let planning = begun([]);
    let chosen = begun([thought("Retrieve")]);
    let answered = begun([thought(FINISH), action(FINISH, "Paris")]);
    let end = |reason, approved| {
        EventBody::Finished(Finished {
            answer: String::new(),
            approved,
            reason,
            detail: String::new(),
            citations: Vec::new(),
            open_effect: None,
            by: String::new(),
        })
    };
    let over = begun([end(FinishReason::Cancelled, false)]);
    let refused = |task: &Task, body| task.clone().apply(&event(task.next_index(), body)).unwrap_err();

    assert!(matches!(refused(&planning, action("Retrieve", "x")), Unexpected { .. }));
    assert!(matches!(refused(&planning, reflection(Verdict::Right)), Unexpected { .. }));
    assert!(matches!(refused(&planning, submitted(Limits::default())), Unexpected { .. }));
    assert!(matches!(refused(&planning, thought("Teleport")), UnknownTool { .. }));
    assert!(matches!(refused(&planning, end(FinishReason::Approved, true)), Approval { .. }));
    let right = begun(answer("Paris", Verdict::Right));
    let unjudged = begun([thought(NOT_FOUND), action(NOT_FOUND, "it")]);
    for task in [&planning, &right, &unjudged] {
        assert!(matches!(refused(task, end(FinishReason::NoAnswer, false)), Approval { .. }));
    }
    let agreed = begun(denied("it", Verdict::Right));
    assert!(matches!(refused(&agreed, end(FinishReason::NoAnswer, true)), Approval { .. }));
    assert!(matches!(refused(&chosen, action("Send", "x")), OtherTool { .. }));
    assert!(matches!(refused(&chosen, thought("Retrieve")), Unexpected { .. }));
    assert!(matches!(refused(&answered, observation("x")), Unexpected { .. }));
    assert!(matches!(refused(&over, started(2)), Unexpected { .. }));

    let gap = planning.clone().apply(&event(planning.next_index() + 1, thought("Retrieve"))).unwrap_err();
    assert!(matches!(gap, Gap { .. }));
    let late = Event { sequence: 1, ..event(planning.next_index(), thought("Retrieve")) };
    assert!(matches!(planning.clone().apply(&late), Err(Sequence { .. })));
    let foreign = Event { task_id: "other".parse().unwrap(), ..event(planning.next_index(), thought("Retrieve")) };
    assert!(matches!(planning.clone().apply(&foreign), Err(WrongTask { .. })));
    assert!(matches!(Task::fold(&[]), Err(Empty)));
    assert!(matches!(Task::fold(&events([started(1)])), Err(NotSubmitted { .. })));
}
