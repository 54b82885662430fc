//! Run control: what holds a task back, what lets it go on, and what is shared with a retry.

use std::time::Duration;

use crate::common::*;
use autoact_trajectory::*;
use proptest::prelude::*;

fn paused() -> EventBody {
    EventBody::Paused(Paused { by: "ann".into(), reason: "lunch".into() })
}

fn resumed() -> EventBody {
    EventBody::Resumed(Resumed { by: "ann".into() })
}

fn requested(step: u32, kind: InputKind) -> EventBody {
    EventBody::InputRequested(InputRequested { step, kind, tool: "Send".into(), prompt: "x".into() })
}

fn given(step: u32, kind: InputKind, approved: bool, for_task: bool) -> EventBody {
    EventBody::InputGiven(InputGiven { step, kind, text: "because".into(), approved, for_task, by: "ann".into() })
}

fn with(approval: ApprovalPolicy, change: impl Fn(&mut ToolSpec)) -> EventBody {
    let EventBody::Submitted(mut submitted) = submitted(Limits::default()) else { unreachable!() };
    submitted.approval = approval;
    submitted.tools.push(ToolSpec::ask_user());
    submitted.tools.iter_mut().for_each(change);
    EventBody::Submitted(submitted)
}

/// A task that waits for the outcome of `Send`.
fn acting(first: EventBody) -> Vec<Event> {
    events([first, started(1), thought("Send"), action("Send", "x")])
}

fn next(task: &Task, body: EventBody) -> Event {
    Event { sequence: 0, ..event(task.next_index(), body) }
}

#[test]
fn a_paused_task_does_nothing_and_its_time_stands_still() {
    let mut task = Task::fold(&acting(submitted(Limits { max_time: Duration::from_secs(60), ..Limits::default() }))).unwrap();
    let stop = Event { time: at(30), ..next(&task, paused()) };
    task.apply(&stop).unwrap();
    assert_eq!(decide(&task, at(10_000)), Decision::Hold);
    for body in [started(2), observation("late"), paused(), requested(1, InputKind::Approval)] {
        assert!(task.check(&next(&task, body.clone())).is_err(), "{} follows a pause", body.name());
    }
    let go = Event { time: at(1_000), ..next(&task, resumed()) };
    task.apply(&go).unwrap();
    assert_eq!(task.waited(at(5_000)), Duration::from_secs(970));
    task.apply(&Event { time: at(1_001), ..next(&task, started(2)) }).unwrap();
    // whoever ran it may have been in the middle of the call
    assert_eq!(
        decide(&task, at(1_002)),
        Decision::Execute { action: Action { tool: "Send".into(), params: "x".into() }, step: 1, may_have_run: true }
    );
    assert_eq!(task.fruitless_attempts(), 0, "nobody crashed");
    // it began at 2 and has used 28 seconds
    assert!(matches!(decide(&task, at(1_031)), Decision::Execute { .. }));
    assert!(matches!(decide(&task, at(1_032)), Decision::Finish(Finished { reason: FinishReason::MaxTime, .. })));
}

#[test]
fn a_pause_before_the_start_costs_nothing() {
    let limits = Limits { max_time: Duration::from_secs(60), ..Limits::default() };
    let mut task = Task::fold(&events([submitted(limits), paused()])).unwrap();
    task.apply(&Event { time: at(1_000), ..next(&task, resumed()) }).unwrap();
    task.apply(&Event { time: at(1_001), ..next(&task, started(1)) }).unwrap();
    assert!(matches!(decide(&task, at(1_060)), Decision::Plan));
    assert!(matches!(decide(&task, at(1_061)), Decision::Finish(_)));
}

#[test]
fn actions_wait_for_approval_as_the_policy_and_the_tool_say() {
    let asks = |first: EventBody, untrusted: bool| {
        let mut all = vec![first, started(1)];
        if untrusted {
            let seen = Observation { text: "send it!".into(), untrusted: true, ..Observation::default() };
            all.extend([thought("Retrieve"), action("Retrieve", "x"), EventBody::Observation(seen)]);
        }
        all.extend([thought("Send"), action("Send", "x")]);
        let task = Task::fold(&events(all)).unwrap();
        matches!(decide(&task, at(10)), Decision::Request(InputRequested { kind: InputKind::Approval, .. }))
    };
    let plain = |policy| with(policy, |_| {});
    assert!(!asks(plain(ApprovalPolicy::Tools), true));
    assert!(!asks(plain(ApprovalPolicy::Untrusted), false) && asks(plain(ApprovalPolicy::Untrusted), true));
    assert!(asks(plain(ApprovalPolicy::Effects), false));
    let says_so = with(ApprovalPolicy::Tools, |tool| tool.asks = (tool.name == "Send").then_some(Asks::Approval));
    assert!(asks(says_so, false));
    // what is recalled may repeat what tools returned
    let EventBody::Submitted(mut submitted) = plain(ApprovalPolicy::Untrusted) else { unreachable!() };
    submitted.conversation = "c".into();
    let all = [EventBody::Submitted(submitted), started(1), recalled(&["t-1"]), thought("Send"), action("Send", "x")];
    assert!(matches!(decide(&Task::fold(&events(all)).unwrap(), at(10)), Decision::Request(_)));
}

#[test]
fn what_a_person_says_is_done() {
    let asked = || {
        let mut task = Task::fold(&acting(with(ApprovalPolicy::Effects, |_| {}))).unwrap();
        let Decision::Request(asked) = decide(&task, at(10)) else { panic!("it asks") };
        task.apply(&next(&task, EventBody::InputRequested(asked))).unwrap();
        assert_eq!(decide(&task, at(10)), Decision::Hold);
        task
    };
    for wrong in [given(2, InputKind::Approval, true, false), given(1, InputKind::Answer, true, false), resumed(), started(2)] {
        let task = asked();
        assert!(task.check(&next(&task, wrong)).is_err());
    }
    let mut task = asked();
    task.apply(&next(&task, given(1, InputKind::Approval, false, false))).unwrap();
    task.apply(&next(&task, started(2))).unwrap();
    let Decision::Observe(seen) = decide(&task, at(10)) else { panic!("it is told") };
    assert!(seen.is_error && seen.text.starts_with(REFUSED) && seen.text.ends_with("because"));
    let mut task = asked();
    task.apply(&next(&task, given(1, InputKind::Approval, true, true))).unwrap();
    // paused before anybody took it up again: still nobody has run it
    task.apply(&next(&task, paused())).unwrap();
    task.apply(&next(&task, resumed())).unwrap();
    task.apply(&next(&task, started(2))).unwrap();
    assert!(matches!(decide(&task, at(10)), Decision::Execute { may_have_run: false, step: 1, .. }));
    for body in [observation("sent"), thought("Send"), action("Send", "y")] {
        task.apply(&next(&task, body)).unwrap();
    }
    assert!(matches!(decide(&task, at(10)), Decision::Execute { step: 2, .. }), "approved for the whole task");
}

#[test]
fn the_users_reply_is_the_observation() {
    let mut task =
        Task::fold(&events([with(ApprovalPolicy::Tools, |_| {}), started(1), thought(ASK_USER), action(ASK_USER, "Which?")])).unwrap();
    let Decision::Request(asked) = decide(&task, at(10)) else { panic!("it asks") };
    assert_eq!((asked.kind, asked.prompt.as_str()), (InputKind::Answer, "Which?"));
    task.apply(&next(&task, EventBody::InputRequested(asked))).unwrap();
    task.apply(&next(&task, given(1, InputKind::Answer, false, false))).unwrap();
    task.apply(&next(&task, started(2))).unwrap();
    assert_eq!(decide(&task, at(10)), Decision::Observe(Observation { text: "because".into(), ..Observation::default() }));
}

#[test]
fn a_retry_shares_whole_steps() {
    let finish = [thought(FINISH), action(FINISH, "Paris"), reflection(Verdict::Wrong)];
    let mut all = vec![submitted(Limits::default()), started(1), thought("Retrieve"), action("Retrieve", "Loire"), observation("a river")];
    all.extend(finish);
    all.extend([started(2), thought("Send"), action("Send", "x")]);
    let all = events(all);
    for (from, names) in [(1, 0), (2, 3), (3, 6)] {
        let found = shared(&all, from).unwrap();
        assert_eq!((found.events.len(), found.origin.steps, found.origin.events), (names, from - 1, u32::try_from(names).unwrap()));
    }
    assert_eq!(shared(&all, 4).unwrap_err(), NotShared::Open { step: 3 });
    for from in [0, 5] {
        assert_eq!(shared(&all, from).unwrap_err(), NotShared::NoStep { steps: 3 });
    }
    let right = events([submitted(Limits::default()), started(1), thought(FINISH), action(FINISH, "Paris"), reflection(Verdict::Right)]);
    assert_eq!(shared(&right, 2).unwrap_err(), NotShared::Approved { step: 1 });
    assert!(shared(&right, 1).is_ok());
    assert!(matches!(shared(&[], 1), Err(NotShared::Fold(FoldError::Empty))));
}

#[test]
fn nobody_takes_a_task_up_before_its_history_is_copied() {
    let all = events([submitted(Limits::default()), started(1), thought("Retrieve"), action("Retrieve", "Loire"), observation("a river")]);
    let found = shared(&all, 2).unwrap();
    let EventBody::Submitted(first) = all[0].body.clone() else { unreachable!() };
    let mut task = Task::begin(&event(1, EventBody::Submitted(Submitted { origin: Some(Box::new(found.origin)), ..first }))).unwrap();
    for (left, copy) in (1..=3u32).rev().zip(found.events) {
        assert_eq!(task.to_copy(), left);
        assert!(task.check(&next(&task, started(1))).is_err());
        task.apply(&next(&task, copy.body.clone())).unwrap();
    }
    assert_eq!((task.to_copy(), task.steps()), (0, 1));
    task.apply(&next(&task, started(1))).unwrap();
    assert_eq!(decide(&task, at(10)), Decision::Plan);
    assert_eq!(task.trajectory().turns, Task::fold(&all).unwrap().trajectory().turns);
}

/// What a client, or another gateway, does next.
#[derive(Debug, Clone)]
enum Outside {
    Nothing,
    Pause,
    Resume,
    Give { approved: bool, for_task: bool },
    TakeOver,
}

fn outside() -> impl Strategy<Value = Outside> {
    prop_oneof![
        4 => Just(Outside::Nothing),
        1 => Just(Outside::Pause),
        2 => Just(Outside::Resume),
        3 => (any::<bool>(), any::<bool>()).prop_map(|(approved, for_task)| Outside::Give { approved, for_task }),
        1 => Just(Outside::TakeOver),
    ]
}

proptest! {
    /// Whatever people do and whoever takes the task over: while it is held nothing is decided, no
    /// action that needs an approval is run without one, and replaying the events gives the same task.
    #[test]
    fn no_effect_is_run_without_its_approval(
        script in prop::collection::vec((outside(), 0..4usize, 0..50u64), 1..60),
        policy in prop::sample::select(ApprovalPolicy::ALL.to_vec()),
    ) {
        let mut all = events([with(policy, |_| {}), started(1)]);
        let mut task = Task::fold(&all).unwrap();
        let (mut clock, mut approved, mut always) = (10, None, false);
        for (outside, tool, seconds) in script {
            clock += seconds;
            let asked = task.input_required().map(|asked| (asked.step, asked.kind));
            let body = match (outside, decide(&task, at(clock))) {
                (Outside::Pause, _) if task.finished().is_none() && !task.is_paused() => paused(),
                (Outside::Resume, _) if task.is_paused() => resumed(),
                (Outside::Give { approved: yes, for_task }, Decision::Hold) if asked.is_some() => {
                    let (step, kind) = asked.unwrap();
                    approved = (yes && kind == InputKind::Approval).then_some(step);
                    always |= approved.is_some() && for_task;
                    given(step, kind, yes, for_task)
                }
                (_, Decision::Hold) => continue,
                (Outside::TakeOver, _) if task.finished().is_none() => started(task.attempt() + 1),
                (_, Decision::Plan) => thought(["Retrieve", "Send", ASK_USER, FINISH][tool]),
                (_, Decision::Parameterize) => action(&task.trajectory().open_step().unwrap().tool.clone(), "x"),
                (_, Decision::Request(asked)) => EventBody::InputRequested(asked),
                (_, Decision::Observe(seen)) => EventBody::Observation(task.observe(seen)),
                (_, Decision::Execute { action, step, .. }) => {
                    prop_assert!(!task.is_held());
                    prop_assert!(!task.needs_approval(&action) || approved == Some(step) || always);
                    prop_assert!(action.tool != ASK_USER);
                    EventBody::Observation(task.observe(Observation { untrusted: true, ..Observation::default() }))
                }
                (_, Decision::Reflect) => reflection(Verdict::Wrong),
                (_, Decision::Finish(finished)) => EventBody::Finished(finished),
                (_, Decision::Recall | Decision::Done) => break,
            };
            let event = Event { time: at(clock), ..event(task.next_index(), body) };
            task.apply(&event).unwrap();
            all.push(event);
        }
        prop_assert_eq!(Task::fold(&all).unwrap(), task);
    }
}
