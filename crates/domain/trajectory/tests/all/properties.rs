//! What holds for any sequence of agent replies and take-overs.

use crate::common::*;
use autoact_trajectory::*;
use proptest::prelude::*;

/// One agent's reply, whatever is asked next, and what it cost.
#[derive(Debug, Clone)]
struct Reply {
    tool: usize,
    params: String,
    right: bool,
    tokens: u32,
    seconds: u64,
    take_over: bool,
}

fn reply() -> impl Strategy<Value = Reply> {
    (0..4usize, "[a-c]{1,2}", prop::bool::weighted(0.2), 0..40u32, 0..4u64, prop::bool::weighted(0.1))
        .prop_map(|(tool, params, right, tokens, seconds, take_over)| Reply { tool, params, right, tokens, seconds, take_over })
}

fn limits() -> impl Strategy<Value = Limits> {
    (1..8u32, 1..4u32, 1..500u32, 1..60u64).prop_map(|(max_steps, max_reflections, max_tokens, seconds)| Limits {
        max_steps,
        max_reflections,
        max_tokens,
        max_time: std::time::Duration::from_secs(seconds),
    })
}

/// Runs the loop on a script of replies (repeated as needed) until it is done.
fn run(limits: Limits, script: &[Reply]) -> Vec<Event> {
    run_in("", limits, script)
}

/// The same for a task of a conversation.
fn run_in(conversation: &str, limits: Limits, script: &[Reply]) -> Vec<Event> {
    let EventBody::Submitted(submitted) = submitted_with_not_found(limits) else { unreachable!() };
    let submitted = Submitted { conversation: conversation.to_owned(), ..submitted };
    let mut events = events([EventBody::Submitted(submitted), started(1)]);
    let mut task = Task::fold(&events).unwrap();
    let mut clock = 10;
    for reply in script.iter().cycle() {
        clock += reply.seconds;
        let body = match decide(&task, at(clock)) {
            _ if reply.take_over && task.finished().is_none() && task.attempt() < 20 => started(task.attempt() + 1),
            Decision::Recall => recalled(&["t-1", "t-2"][..reply.tool % 3]),
            Decision::Plan => thought(["Retrieve", "Send", FINISH, NOT_FOUND][reply.tool]),
            Decision::Parameterize => action(&task.trajectory().open_step().unwrap().tool.clone(), &reply.params),
            Decision::Execute { .. } => {
                EventBody::Observation(task.observe(Observation { text: reply.params.clone(), ..Observation::default() }))
            }
            Decision::Reflect => reflection(if reply.right { Verdict::Right } else { Verdict::Wrong }),
            Decision::Finish(finished) => EventBody::Finished(finished),
            Decision::Request(_) | Decision::Observe(_) | Decision::Hold => unreachable!("no tool needs a person here"),
            Decision::Done => break,
        };
        let spoken = matches!(body, EventBody::Thought(_) | EventBody::Action(_) | EventBody::Reflection(_));
        let event = Event { time: at(clock), usage: spoken.then(|| usage(reply.tokens)), ..event(task.next_index(), body) };
        task.apply(&event).unwrap();
        events.push(event);
    }
    events
}

fn recalled_again(recalled: &Recalled) -> EventBody {
    EventBody::Recalled(recalled.clone())
}

proptest! {
    #[test]
    fn every_task_ends_within_its_bounds(limits in limits(), script in prop::collection::vec(reply(), 1..20)) {
        let events = run(limits, &script);
        let task = Task::fold(&events).unwrap();
        prop_assert!(task.steps() <= limits.max_steps);
        prop_assert!(task.wrong_verdicts() <= limits.max_reflections);
        let last = Task::fold(&events[..events.len() - 1]).unwrap();
        let finished = task.finished().unwrap();
        let (judged_right, missing) = (last.phase() == Phase::Approved, last.no_answer());
        prop_assert_eq!(finished.approved, judged_right && missing.is_none());
        prop_assert_eq!(finished.reason == FinishReason::NoAnswer, judged_right && missing.is_some());
        if finished.reason == FinishReason::NoAnswer {
            prop_assert_eq!((finished.answer.as_str(), Some(finished.detail.as_str())), ("", missing));
        } else {
            prop_assert_eq!(&finished.answer, last.best_answer());
        }
        let answers: Vec<&str> = task.trajectory().steps().filter(|step| step.tool == FINISH).filter_map(|step| step.params.as_deref()).collect();
        prop_assert!(finished.answer.is_empty() || answers.contains(&finished.answer.as_str()));
        for (event, index) in events.iter().zip(1..) {
            prop_assert_eq!(event.index, index);
        }
    }

    /// Whoever takes a task over at whatever moment: what was recalled is an event before the first
    /// thought, and nobody recalls again. Without a conversation nobody recalls at all.
    #[test]
    fn a_task_recalls_once(limits in limits(), script in prop::collection::vec(reply(), 1..20), conversation in "(c-1)?", now in 0..9u64) {
        let events = run_in(&conversation, limits, &script);
        let is = |name| move |event: &Event| event.body.name() == name;
        let recalls: Vec<usize> = (0..events.len()).filter(|at| is("recalled")(&events[*at])).collect();
        let spoken = events.iter().position(is("thought"));
        if conversation.is_empty() {
            prop_assert!(recalls.is_empty());
        } else if let Some(spoken) = spoken {
            prop_assert!(recalls.len() == 1 && recalls[0] > 1 && recalls[0] < spoken, "{recalls:?} {spoken}");
        }
        for end in 2..=events.len() {
            let mut task = Task::fold(&events[..end]).unwrap();
            if task.finished().is_none() {
                task.apply(&event(task.next_index(), started(task.attempt() + 1))).unwrap();
            }
            let known = recalls.first().is_some_and(|at| *at < end);
            if known {
                let EventBody::Recalled(recalled) = &events[recalls[0]].body else { unreachable!() };
                prop_assert_eq!(&task.trajectory().recalled, &recalled.items);
                prop_assert!(decide(&task, at(now)) != Decision::Recall);
                let again = Event { sequence: 0, ..event(task.next_index(), recalled_again(recalled)) };
                prop_assert!(task.apply(&again).is_err());
            }
        }
    }

    #[test]
    fn recovery_is_replay(limits in limits(), script in prop::collection::vec(reply(), 1..20), now in 0..100u64, conversation in "(c-1)?") {
        let events = run_in(&conversation, limits, &script);
        let mut live = Task::begin(&events[0]).unwrap();
        for end in 1..=events.len() {
            let replayed = Task::fold(&events[..end]).unwrap();
            prop_assert_eq!(&replayed, &live);
            prop_assert_eq!(decide(&replayed, at(now)), decide(&live, at(now)));
            if let Some(next) = events.get(end) {
                live.apply(next).unwrap();
            }
        }
    }

    #[test]
    fn a_refused_event_changes_nothing(
        limits in limits(),
        script in prop::collection::vec(reply(), 1..20),
        stray in any::<prop::sample::Index>(),
        end in any::<prop::sample::Index>(),
        index_off in 0..2u64,
    ) {
        let events = run(limits, &script);
        let task = Task::fold(&events[..1 + end.index(events.len())]).unwrap();
        let stray = Event { index: task.next_index() + index_off, sequence: 0, ..stray.get(&events).clone() };
        let mut tried = task.clone();
        if tried.apply(&stray).is_err() {
            prop_assert_eq!(tried, task);
        } else {
            prop_assert_eq!(tried.next_index(), task.next_index() + 1);
        }
    }
}
