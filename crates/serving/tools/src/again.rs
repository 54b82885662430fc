//! A call that an earlier step of the task has made already.
//!
//! Source: KwaiAgents section 2.1 (the planner is told not to repeat a query). Here it is a rule.

use autoact_trajectory::{Action, Effect, REPEATED_NOTE, Trajectory};

/// What an earlier step with the same call returned.
pub(crate) struct Earlier<'a> {
    /// The planning loop, from 1.
    pub(crate) step: usize,
    /// Whether it is the last one before the call.
    pub(crate) last: bool,
    /// Its observation, without notes about repetitions.
    pub(crate) text: &'a str,
}

/// The latest earlier step with this very call whose observation still holds: nothing that changes
/// the world was run since. One that failed is no such step: it may do better now.
pub(crate) fn earlier<'a>(trajectory: &'a Trajectory, action: &Action) -> Option<Earlier<'a>> {
    let seen: Vec<_> = trajectory.steps().filter(|step| step.observation.is_some()).collect();
    for (at, step) in seen.iter().enumerate().rev() {
        let effect = trajectory.tool(&step.tool).map_or(Effect::SideEffect, |tool| tool.effect);
        if effect != Effect::ReadOnly {
            return None;
        }
        if step.tool != action.tool || step.params.as_deref() != Some(action.params.as_str()) {
            continue;
        }
        let text = plain(step.observation.as_deref()?);
        let failed = text.starts_with(&failure(&action.tool));
        return (!failed).then_some(Earlier { step: at + 1, last: at + 1 == seen.len(), text });
    }
    None
}

/// How the observation of a tool begins that ran and failed.
pub(crate) fn failure(tool: &str) -> String {
    format!("{tool} failed: ")
}

/// The text of an observation without the notes that say that its call was made before.
fn plain(text: &str) -> &str {
    let text = text.strip_prefix(REPEATED_NOTE).map_or(text, str::trim_start);
    match text.strip_prefix(NOTE).and_then(|rest| rest.split_once(".) ")) {
        Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => rest,
        _ => text,
    }
}

const NOTE: &str = "(Same call as in step ";

/// What is told of a call that was made before and not made again. Of the step before the task's own
/// note tells.
pub(crate) fn told(Earlier { step, last, text }: &Earlier<'_>) -> String {
    if *last { (*text).to_owned() } else { format!("{NOTE}{step}.) {text}") }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use autoact_trajectory::{Step, ToolSpec, Turn};

    use super::*;

    fn tool(name: &str, effect: Effect) -> ToolSpec {
        ToolSpec {
            definition: "Does.".into(),
            usage: format!("{name}[x]"),
            effect,
            timeout: Duration::from_secs(1),
            max_observation_bytes: 100,
            ..ToolSpec::new(name)
        }
    }

    fn history(calls: &[(&str, &str, &str)]) -> Trajectory {
        let turn = |(tool, params, seen): &(&str, &str, &str)| {
            Turn::Step(Step { tool: (*tool).into(), params: Some((*params).into()), observation: Some((*seen).into()), ..Step::default() })
        };
        let tools = vec![tool("Read", Effect::ReadOnly), tool("Write", Effect::Idempotent)];
        Trajectory { tools, turns: calls.iter().map(turn).collect(), ..Trajectory::default() }
    }

    fn found(calls: &[(&str, &str, &str)]) -> Option<String> {
        let action = Action { tool: "Read".into(), params: "a".into() };
        earlier(&history(calls), &action).map(|earlier| told(&earlier))
    }

    #[test]
    fn only_what_still_holds_is_referred_to() {
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[("Read", "b", "x")]), None);
        assert_eq!(found(&[("Read", "a", "x")]).as_deref(), Some("x"));
        assert_eq!(found(&[("Read", "a", "x"), ("Read", "b", "y")]).as_deref(), Some("(Same call as in step 1.) x"));
        // something was changed since, or the tool is not known any more
        assert_eq!(found(&[("Read", "a", "x"), ("Write", "b", "y")]), None);
        assert_eq!(found(&[("Read", "a", "x"), ("Gone", "b", "y")]), None);
        assert_eq!(found(&[("Write", "b", "y"), ("Read", "a", "x")]).as_deref(), Some("x"));
        // a failure may pass
        assert_eq!(found(&[("Read", "a", "Read failed: no answer within 5s")]), None);
    }

    #[test]
    fn notes_do_not_pile_up() {
        let repeated = format!("{REPEATED_NOTE} x");
        let calls =
            [("Read", "a", "x"), ("Read", "a", repeated.as_str()), ("Read", "b", "y"), ("Read", "a", "(Same call as in step 2.) x")];
        assert_eq!(found(&calls[..2]).as_deref(), Some("x"));
        assert_eq!(found(&calls[..3]).as_deref(), Some("(Same call as in step 2.) x"));
        assert_eq!(found(&calls).as_deref(), Some("x"));
        // what only looks like a note stays
        assert_eq!(found(&[("Read", "a", "(Same call as in step one.) x")]).as_deref(), Some("(Same call as in step one.) x"));
    }
}
