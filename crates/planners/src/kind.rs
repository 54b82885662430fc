//! The planners there are, by name.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use autoact_local::Voices;
use autoact_model::Backend;

use crate::bolaa::Bolaa;
use crate::chameleon::Chameleon;
use crate::cot::Cot;
use crate::group::Group;
use crate::planner::{Planner, PlannerOptions};
use crate::react::React;
use crate::reflexion::Reflexion;
use crate::rewoo::Rewoo;

/// A planner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The group of three adapters.
    AutoAct,
    /// The group without Reflect-Agent.
    NoReflection,
    /// One adapter in all three roles.
    OneAgent,
    /// The base in all three roles.
    ZeroShot,
    /// The group of three adapters trained on trajectories that nobody filtered.
    Unfiltered,
    /// Chain of thought.
    Cot,
    /// Thought, action and input in one go.
    React,
    /// ReAct with the adapter that was trained on everything.
    FireAct,
    /// ReAct that judges itself and tries again.
    Reflexion,
    /// Plan all tools first, then run them.
    Chameleon,
    /// Plan with placeholders, work, solve.
    Rewoo,
    /// A controller over one agent per tool.
    Bolaa,
}

/// A planner that there is not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no planner `{name}`; expected `all` or one of `{}`", Kind::ALL.map(Kind::as_str).join("`, `"))]
pub struct UnknownPlanner {
    /// What was asked for.
    pub name: String,
}

/// Adapters that a planner needs and that are not loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the planner `{planner}` needs {needed}")]
pub struct NoVoice {
    /// The planner.
    pub planner: Kind,
    /// What it needs.
    pub needed: &'static str,
}

/// Which loaded adapters speak for whom.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cast {
    /// The group's three.
    pub group: Option<Voices>,
    /// The one that was trained on everything.
    pub one: Option<String>,
    /// The three that were trained on unfiltered trajectories.
    pub unfiltered: Option<Voices>,
}

impl Kind {
    /// All of them, in the order of reports.
    pub const ALL: [Kind; 12] = [
        Kind::AutoAct,
        Kind::NoReflection,
        Kind::OneAgent,
        Kind::ZeroShot,
        Kind::Unfiltered,
        Kind::Cot,
        Kind::React,
        Kind::Chameleon,
        Kind::Reflexion,
        Kind::Bolaa,
        Kind::Rewoo,
        Kind::FireAct,
    ];

    /// The rows of the paper's table 1.
    pub const TABLE_1: [Kind; 8] =
        [Kind::Cot, Kind::React, Kind::Chameleon, Kind::Reflexion, Kind::Bolaa, Kind::Rewoo, Kind::FireAct, Kind::AutoAct];

    /// The rows of the paper's table 2: AutoAct, and without one part each.
    pub const TABLE_2: [Kind; 5] = [Kind::AutoAct, Kind::NoReflection, Kind::OneAgent, Kind::ZeroShot, Kind::Unfiltered];

    /// The rows of the paper's table 5: who plans in rounds.
    pub const TABLE_5: [Kind; 4] = [Kind::React, Kind::Bolaa, Kind::FireAct, Kind::AutoAct];

    /// Its name on the command line and in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::AutoAct => "autoact",
            Kind::NoReflection => "no-reflection",
            Kind::OneAgent => "one-agent",
            Kind::ZeroShot => "zero-shot",
            Kind::Unfiltered => "unfiltered",
            Kind::Cot => "cot",
            Kind::React => "react",
            Kind::FireAct => "fireact",
            Kind::Reflexion => "reflexion",
            Kind::Chameleon => "chameleon",
            Kind::Rewoo => "rewoo",
            Kind::Bolaa => "bolaa",
        }
    }

    /// What the paper calls it.
    pub fn title(self) -> &'static str {
        match self {
            Kind::AutoAct => "AutoAct",
            Kind::NoReflection => "- reflection",
            Kind::OneAgent => "- multi",
            Kind::ZeroShot => "- fine-tuning",
            Kind::Unfiltered => "- filtering",
            Kind::Cot => "CoT",
            Kind::React => "ReAct",
            Kind::FireAct => "FireAct",
            Kind::Reflexion => "Reflexion",
            Kind::Chameleon => "Chameleon",
            Kind::Rewoo => "ReWOO",
            Kind::Bolaa => "BOLAA",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Kind {
    type Err = UnknownPlanner;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == name).ok_or_else(|| UnknownPlanner { name: name.to_owned() })
    }
}

/// The planner over a backend that has the cast's adapters.
///
/// # Errors
/// The cast has no adapters for it.
pub fn build(kind: Kind, backend: &Arc<dyn Backend>, cast: &Cast, options: &PlannerOptions) -> Result<Box<dyn Planner>, NoVoice> {
    let (name, backend, options) = (kind.as_str(), Arc::clone(backend), *options);
    let needs = |needed: &'static str| NoVoice { planner: kind, needed };
    let group = |voices: Voices, without_reflection: bool, backend: Arc<dyn Backend>| {
        Box::new(Group { name, backend, voices, without_reflection, options }) as Box<dyn Planner>
    };
    let trained = || cast.group.clone().ok_or(needs("the adapters `plan`, `tool` and `reflect`"));
    let one = || cast.one.clone().ok_or(needs("the adapter that is trained on all roles"));
    Ok(match kind {
        Kind::AutoAct => group(trained()?, false, backend),
        Kind::NoReflection => group(trained()?, true, backend),
        Kind::OneAgent => group(Voices::one(&one()?), false, backend),
        Kind::ZeroShot => group(Voices::base(), false, backend),
        Kind::Unfiltered => {
            let voices = cast.unfiltered.clone().ok_or(needs("the three adapters that are trained on unfiltered trajectories"))?;
            group(voices, false, backend)
        }
        Kind::Cot => Box::new(Cot { name, backend, options }),
        Kind::React => Box::new(React { name, backend, adapter: None, options }),
        Kind::FireAct => Box::new(React { name, backend, adapter: Some(one()?), options }),
        Kind::Reflexion => Box::new(Reflexion { name, backend, options }),
        Kind::Chameleon => Box::new(Chameleon { name, backend, options }),
        Kind::Rewoo => Box::new(Rewoo { name, backend, options }),
        Kind::Bolaa => Box::new(Bolaa { name, backend, options }),
    })
}
