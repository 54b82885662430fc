//! Whether a request makes sense: all its fields, and this agent's turn. It runs on an async
//! worker, so it takes time that is linear in the request, and the request is bounded.

use std::collections::HashMap;

use autoact_trajectory::{MAX_TOOLS, Role, Sampling, Step, Trajectory, Turn};
use autoact_wire::v1;

use crate::error::AgentError;

/// Turns of a trajectory at most: ten times the steps that a gateway lets a task take.
const MAX_TURNS: usize = 1024;

/// Items that were recalled at most: more than a gateway's box can hold.
const MAX_RECALLED: usize = 1024;

/// The trajectory of a request, if it is `role`'s turn to go on with it.
pub(crate) fn trajectory(role: Role, trajectory: Option<v1::Trajectory>) -> Result<Trajectory, AgentError> {
    let trajectory = trajectory.ok_or(AgentError::Missing("trajectory"))?;
    bounded("trajectory.tools", trajectory.tools.len(), MAX_TOOLS)?;
    bounded("trajectory.turns", trajectory.turns.len(), MAX_TURNS)?;
    bounded("trajectory.recalled", trajectory.recalled.len(), MAX_RECALLED)?;
    let trajectory = Trajectory::try_from(trajectory)?;
    if trajectory.question.trim().is_empty() {
        return Err(AgentError::Missing("trajectory.question"));
    }
    if trajectory.tools.is_empty() {
        return Err(AgentError::Missing("trajectory.tools"));
    }
    let tools = Tools::of(&trajectory);
    known_tools(&trajectory, &tools)?;
    order(role, &trajectory, &tools)?;
    Ok(trajectory)
}

fn bounded(field: &'static str, found: usize, limit: usize) -> Result<(), AgentError> {
    if found > limit { Err(AgentError::TooMany { field, found, limit }) } else { Ok(()) }
}

/// A trajectory's tools by name, and whether they end a task.
struct Tools<'a>(HashMap<&'a str, bool>);

impl<'a> Tools<'a> {
    fn of(trajectory: &'a Trajectory) -> Tools<'a> {
        // of two tools with one name the first counts, as everywhere
        Tools(trajectory.tools.iter().rev().map(|tool| (tool.name.as_str(), tool.is_terminal())).collect())
    }

    fn knows(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    fn is_terminal(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|terminal| *terminal)
    }
}

fn known_tools(trajectory: &Trajectory, tools: &Tools<'_>) -> Result<(), AgentError> {
    for (at, step) in trajectory.steps().enumerate() {
        if !tools.knows(&step.tool) {
            let known = trajectory.tools.iter().map(|tool| tool.name.clone()).collect();
            return Err(AgentError::UnknownTool { step: at + 1, tool: step.tool.clone(), known });
        }
    }
    Ok(())
}

fn order(role: Role, trajectory: &Trajectory, tools: &Tools<'_>) -> Result<(), AgentError> {
    let expected = match role {
        Role::Plan => "finished turns only",
        Role::Tool => "a last step with a tool and without parameters",
        Role::Reflect => "a last step with a terminal tool and its parameters",
    };
    let wrong = |found: String| Err(AgentError::Order { agent: role.as_str(), expected, found });
    let (last, before) = match trajectory.turns.split_last() {
        Some((last, before)) => (Some(last), before),
        None => (None, [].as_slice()),
    };
    for (at, turn) in before.iter().enumerate() {
        if let Turn::Step(step) = turn
            && !matches!(state(tools, step), State::Observed | State::Answered)
        {
            return wrong(format!("turn {} unfinished with turns after it", at + 1));
        }
    }
    let state = match last {
        None => return if role == Role::Plan { Ok(()) } else { wrong("no turn at all".to_owned()) },
        Some(Turn::Reflection(_)) => return if role == Role::Plan { Ok(()) } else { wrong("a reflection".to_owned()) },
        Some(Turn::Step(step)) => state(tools, step),
    };
    match (role, state) {
        (Role::Plan, State::Observed) | (Role::Tool, State::Chosen) | (Role::Reflect, State::Answered) => Ok(()),
        (_, State::Chosen) => wrong("a step that waits for its parameters".to_owned()),
        (_, State::Parameterized) => wrong("a step that waits for its observation".to_owned()),
        (_, State::Observed) => wrong("a step with its observation".to_owned()),
        (_, State::Answered) => wrong("an answer that waits for its reflection".to_owned()),
    }
}

/// How far a step is.
enum State {
    /// Thought and tool.
    Chosen,
    /// And parameters.
    Parameterized,
    /// And the observation: done.
    Observed,
    /// Parameters of a terminal tool: an answer.
    Answered,
}

fn state(tools: &Tools<'_>, step: &Step) -> State {
    match (&step.params, &step.observation) {
        (None, _) => State::Chosen,
        (Some(_), _) if tools.is_terminal(&step.tool) => State::Answered,
        (Some(_), None) => State::Parameterized,
        (Some(_), Some(_)) => State::Observed,
    }
}

/// The sampling settings of a request; greedy when it has none.
pub(crate) fn sampling(params: Option<v1::SamplingParams>) -> Result<Sampling, AgentError> {
    Ok(params.map(Sampling::try_from).transpose().map_err(AgentError::Sampling)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use autoact_wire::status::ServiceError;

    fn spec(name: &str, terminal: bool) -> v1::ToolSpec {
        v1::ToolSpec { name: name.into(), usage: format!("{name}[x]"), terminal, ..v1::ToolSpec::default() }
    }

    fn step(tool: &str, params: Option<&str>, observation: Option<&str>) -> v1::Turn {
        let step = v1::Step {
            thought: "hm".into(),
            tool: tool.into(),
            params: params.map(Into::into),
            observation: observation.map(Into::into),
            ..v1::Step::default()
        };
        v1::Turn { turn: Some(v1::turn::Turn::Step(step)) }
    }

    fn reflection() -> v1::Turn {
        let verdict = v1::Verdict::Wrong as i32;
        v1::Turn { turn: Some(v1::turn::Turn::Reflection(v1::Reflection { thought: "no".into(), verdict, ..Default::default() })) }
    }

    fn history(turns: Vec<v1::Turn>) -> v1::Trajectory {
        v1::Trajectory {
            task_id: "t".into(),
            question: "q".into(),
            tools: vec![spec("Retrieve", false), spec("Finish", true)],
            turns,
            ..v1::Trajectory::default()
        }
    }

    #[test]
    fn each_agent_has_its_turn() {
        let open = step("Retrieve", None, None);
        let waiting = step("Retrieve", Some("a"), None);
        let done = step("Retrieve", Some("a"), Some("b"));
        let answer = step("Finish", Some("a"), None);
        let allowed = |turns: &[v1::Turn]| -> Vec<Role> {
            Role::ALL.into_iter().filter(|role| trajectory(*role, Some(history(turns.to_vec()))).is_ok()).collect()
        };
        assert_eq!(allowed(&[]), [Role::Plan]);
        assert_eq!(allowed(std::slice::from_ref(&open)), [Role::Tool]);
        assert_eq!(allowed(std::slice::from_ref(&waiting)), []);
        assert_eq!(allowed(std::slice::from_ref(&done)), [Role::Plan]);
        assert_eq!(allowed(&[done.clone(), answer.clone()]), [Role::Reflect]);
        assert_eq!(allowed(&[done.clone(), answer.clone(), reflection()]), [Role::Plan]);
        assert_eq!(allowed(&[answer, reflection(), open.clone()]), [Role::Tool]);
        assert_eq!(allowed(&[open, done.clone()]), []);
        assert_eq!(allowed(&[waiting, done]), []);
    }

    #[test]
    fn what_is_missing_is_named() {
        let named = |trajectory: Option<v1::Trajectory>| match super::trajectory(Role::Plan, trajectory) {
            Err(AgentError::Missing(field)) => field,
            other => panic!("{other:?}"),
        };
        assert_eq!(named(None), "trajectory");
        assert_eq!(named(Some(v1::Trajectory { question: " \n".into(), ..history(vec![]) })), "trajectory.question");
        assert_eq!(named(Some(v1::Trajectory { tools: vec![], ..history(vec![]) })), "trajectory.tools");
    }

    #[test]
    fn a_step_with_a_tool_that_was_not_selected_is_an_error() {
        let error = trajectory(Role::Tool, Some(history(vec![step("Fly", None, None)]))).unwrap_err();
        assert!(matches!(error, AgentError::UnknownTool { step: 1, .. }), "{error}");
    }

    #[test]
    fn tools_and_turns_are_bounded() {
        // the largest request that is let through, with names that differ at their end
        let name = |at: usize| format!("{}{at}", "T".repeat(60));
        let tools: Vec<v1::ToolSpec> = (0..MAX_TOOLS).map(|at| spec(&name(at), false)).collect();
        let turns: Vec<v1::Turn> = (0..MAX_TURNS).map(|at| step(&name(at % MAX_TOOLS), Some("a"), Some("b"))).collect();
        let largest = v1::Trajectory { tools, turns, ..history(vec![]) };
        assert_eq!(trajectory(Role::Plan, Some(largest.clone())).unwrap().turns.len(), MAX_TURNS);
        let too_many = |change: &dyn Fn(&mut v1::Trajectory)| {
            let mut more = largest.clone();
            change(&mut more);
            match trajectory(Role::Plan, Some(more)) {
                Err(AgentError::TooMany { field, found, limit }) => (field, found - limit),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(too_many(&|more| more.tools.push(spec("One", false))), ("trajectory.tools", 1));
        assert_eq!(too_many(&|more| more.turns.push(reflection())), ("trajectory.turns", 1));
        // the last step's tool is looked at as well
        let mut unknown = largest;
        unknown.turns[MAX_TURNS - 1] = step("Fly", Some("a"), Some("b"));
        assert!(matches!(trajectory(Role::Plan, Some(unknown)), Err(AgentError::UnknownTool { step: MAX_TURNS, .. })));
    }

    #[test]
    fn the_first_of_two_tools_with_one_name_counts() {
        let twice = v1::Trajectory { tools: vec![spec("End", true), spec("End", false)], ..history(vec![step("End", Some("a"), None)]) };
        assert!(trajectory(Role::Reflect, Some(twice)).is_ok());
    }

    #[test]
    fn sampling_parameters_have_ranges() {
        let with = |temperature, top_p| sampling(Some(v1::SamplingParams { temperature, top_p, top_k: 0, seed: 1 }));
        assert_eq!(with(0.0, 0.0).unwrap(), Sampling { seed: 1, ..Sampling::default() });
        assert_eq!(sampling(None).unwrap(), Sampling::default());
        for (temperature, top_p, field) in [
            (-1.0, 0.0, "sampling.temperature"),
            (f32::NAN, 0.0, "sampling.temperature"),
            (1.0, 1.5, "sampling.top_p"),
            (1.0, f32::NAN, "sampling.top_p"),
        ] {
            assert_eq!(with(temperature, top_p).unwrap_err().field(), Some(field));
        }
    }
}
