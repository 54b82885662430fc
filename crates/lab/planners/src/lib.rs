//! Ways to answer a question with a model and tools, behind one trait: AutoAct's group and its ablations, and the planners it is compared
//! with. All of them speak through the same [`autoact_model::Backend`], use the same [`Toolbox`], keep the same bounds and hold every reply
//! to a grammar, so that what differs between two rows of a table is the planning alone.
//!
//! The prompts share the agents' transcript format (`autoact-prompt`): a bare language model gets the transcript as it is; a model with a
//! chat template gets a short instruction before it ([`PlannerOptions`]), and any model can get worked examples.

mod bolaa;
mod chameleon;
mod cot;
mod form;
mod frame;
mod group;
mod kind;
mod opening;
mod outcome;
mod planner;
mod react;
mod reflexion;
mod rewoo;
mod scratch;
mod session;
mod toolbox;

pub use kind::{Cast, Kind, NoVoice, UnknownPlanner, build};
pub use outcome::{Cost, Ended, Outcome};
pub use planner::{Planner, PlannerOptions};
pub use toolbox::Toolbox;
