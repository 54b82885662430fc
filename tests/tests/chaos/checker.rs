//! A model of a run: what the history of a task, its receipts and the runs of its tools must be,
//! whatever was killed meanwhile.

use std::collections::BTreeMap;

use autoact_trajectory::{Action, Effect, Event, EventBody, Receipts, Standing, Task, UNKNOWN_OUTCOME};
use autoact_wire::receipt::action_digest;
use autoact_wire::v1::TrajectoryEvent;

/// What one task left behind.
pub(crate) struct History {
    /// Its events as the bus has them.
    pub(crate) events: Vec<Event>,
    /// Its receipts.
    pub(crate) receipts: Receipts,
    /// What its client was told.
    pub(crate) told: Vec<TrajectoryEvent>,
}

/// What was counted.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(crate) effects: usize,
    pub(crate) unknown: usize,
    pub(crate) take_overs: usize,
}

/// Checks a task against the model; what is wrong with it, one sentence each. `runs` says how often
/// each call was run, by its idempotency key.
pub(crate) fn check(history: &History, runs: &BTreeMap<String, usize>, counted: &mut Counted) -> Vec<String> {
    let mut wrong = Vec::new();
    let events = &history.events;
    let Some(first) = events.first() else { return vec!["it has no events".to_owned()] };
    let name = first.key();
    for (number, event) in (1..).zip(events) {
        if event.index != number || event.key() != name {
            wrong.push(format!("event {number} is event {} of `{}`", event.index, event.key()));
        }
    }
    for pair in events.windows(2) {
        if pair[1].previous != pair[0].digest {
            wrong.push(format!("event {} does not follow event {}", pair[1].index, pair[0].index));
        }
        if pair[1].epoch != 0 && pair[1].epoch < pair[0].epoch {
            wrong.push(format!("event {} was written by an older holder than event {}", pair[1].index, pair[0].index));
        }
    }
    if let Err(error) = Task::fold(events) {
        wrong.push(format!("it does not fold: {error}"));
        return wrong;
    }
    let ends = events.iter().filter(|event| matches!(event.body, EventBody::Finished(_))).count();
    if ends != 1 || !matches!(events.last().map(|event| &event.body), Some(EventBody::Finished(_))) {
        wrong.push(format!("it has {ends} ends, or goes on after one"));
    }
    counted.take_overs += events.iter().filter(|event| matches!(event.body, EventBody::Started(_))).count().saturating_sub(1);
    let stored: Vec<TrajectoryEvent> = events.iter().map(TrajectoryEvent::from).collect();
    if history.told != stored {
        let at = history.told.iter().zip(&stored).position(|(told, stored)| told != stored);
        let (told, stored) = (history.told.len(), stored.len());
        wrong.push(format!("its client was told {told} events and {stored} are stored; the first that differs: {at:?}"));
    }
    wrong.extend(effects(history, runs, counted));
    wrong
}

/// Checks the steps that change the world.
fn effects(history: &History, runs: &BTreeMap<String, usize>, counted: &mut Counted) -> Vec<String> {
    let mut wrong = Vec::new();
    let Some(EventBody::Submitted(submitted)) = history.events.first().map(|event| &event.body) else {
        return vec!["its first event is no submission".to_owned()];
    };
    let changes = |action: &Action| submitted.tools.iter().any(|tool| tool.name == action.tool && tool.effect == Effect::SideEffect);
    let key = history.events[0].key();
    let (mut step, mut known) = (0, Vec::new());
    for (at, event) in history.events.iter().enumerate() {
        match &event.body {
            EventBody::Thought(_) => step += 1,
            EventBody::Action(action) if changes(action) => {
                let name = format!("{key}/{step}");
                let ran = runs.get(&name).copied().unwrap_or_default();
                known.push(name.clone());
                counted.effects += ran;
                if ran > 1 {
                    wrong.push(format!("`{name}` was run {ran} times"));
                }
                let standing = history.receipts.standing(step, u64::MAX, &action_digest(action));
                let seen = history.events[at..].iter().find_map(|event| match &event.body {
                    EventBody::Observation(seen) => Some(Ok(seen)),
                    EventBody::Finished(end) => Some(Err(end)),
                    _ => None,
                });
                match (seen, standing) {
                    (Some(Ok(seen)), _) if seen.text.contains(UNKNOWN_OUTCOME) => {
                        counted.unknown += 1;
                        if matches!(standing, Standing::Free) {
                            wrong.push(format!("`{name}` is told as unknown, and nobody had claimed it"));
                        }
                    }
                    (Some(Ok(_)), Standing::Done(_)) if ran == 1 => {}
                    // told by the tool-agent that ran it: the bus was away for longer than its caller
                    // waits, and it died before the outcome was stored
                    (Some(Ok(_)), Standing::Claimed(_)) if ran == 1 => {}
                    (Some(Ok(seen)), _) if seen.is_error && ran == 0 => {}
                    (Some(Ok(seen)), _) => wrong.push(format!("`{name}` was seen (`{}`), ran {ran} times and is {standing:?}", seen.text)),
                    (Some(Err(end)), _) if end.open_effect != Some(step) && (ran > 0 || matches!(standing, Standing::Claimed(_))) => {
                        wrong.push(format!("`{name}` may have been run, and the end does not say that nobody has read its outcome"));
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    let prefix = format!("{key}/");
    for (name, _) in runs.range(prefix.clone()..).take_while(|(name, _)| name.starts_with(&prefix)) {
        if !known.contains(name) {
            wrong.push(format!("`{name}` was run, and the history does not know it"));
        }
    }
    wrong
}
