//! For tests only: histories as they travel, to ask agents with; and the scripted model of
//! [`autoact_speaker::testing`].

pub use autoact_speaker::testing::{ScriptedBackend, tiny_model, tools};
use autoact_wire::v1;

/// A history with the tools `Retrieve` and `Finish`.
pub fn history(turns: Vec<v1::Turn>) -> v1::Trajectory {
    v1::Trajectory {
        task_id: "task-1".into(),
        question: "Where is it?".into(),
        tools: tools().iter().map(Into::into).collect(),
        turns,
        ..v1::Trajectory::default()
    }
}

/// One step as far as it is known.
pub fn step(tool: &str, params: Option<&str>, observation: Option<&str>) -> v1::Turn {
    let (params, observation) = (params.map(Into::into), observation.map(Into::into));
    let step = v1::Step { thought: "I need it.".into(), tool: tool.into(), params, observation, ..v1::Step::default() };
    v1::Turn { turn: Some(v1::turn::Turn::Step(step)) }
}
