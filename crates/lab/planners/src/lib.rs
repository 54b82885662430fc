//! Planners behind one trait: AutoAct's group, its ablations, and the planners it is compared with.
//! All of them use the same [`autoact_model::Backend`] and [`Toolbox`], have the same bounds, and
//! constrain every reply by a grammar. So two rows of a table differ only in the planning.
//!
//! Prompts have the agents' transcript format (`autoact-prompt`). A model without a chat template
//! gets the transcript alone. A model with one also gets an instruction ([`PlannerOptions`]). Any
//! model can get worked examples.

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
