//! The planners by name.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use autoact_in_process::Voices;
use autoact_model::Backend;
use autoact_trajectory::Calibration;

use crate::bolaa::Bolaa;
use crate::chameleon::Chameleon;
use crate::cot::Cot;
use crate::frame::{Solver, Speaker};
use crate::group::GroupPlanner;
use crate::planner::{Planner, PlannerOptions};
use crate::react::React;
use crate::reflexion::Reflexion;
use crate::rewoo::Rewoo;

/// A planner. Tables and figures are those of the AutoAct paper.
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
    /// The group of three adapters trained on unfiltered trajectories.
    Unfiltered,
    /// Chain of thought.
    Cot,
    /// ReAct: thought, action and input in one reply.
    React,
    /// ReAct with one adapter that was trained on all roles' text.
    FireAct,
    /// ReAct that judges its answer and tries again.
    Reflexion,
    /// Chameleon: plans all tools first, then runs them.
    Chameleon,
    /// ReWOO: plans with placeholders, gathers evidence, answers.
    Rewoo,
    /// BOLAA: a controller over one agent for each tool.
    Bolaa,
    /// The group with one Tool-Agent for each tool.
    ToolSpecified,
    /// The group trained on 25 trajectories.
    TrainedOn25,
    /// The group trained on 50 trajectories.
    TrainedOn50,
    /// The group trained on 100 trajectories.
    TrainedOn100,
    /// The group trained on 200 trajectories.
    TrainedOn200,
    /// The group trained on 400 trajectories.
    TrainedOn400,
    /// The group trained on 800 trajectories.
    TrainedOn800,
}

/// An unknown planner.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no planner `{name}`; expected `all` or one of `{}`", Kind::ALL.map(Kind::as_str).join("`, `"))]
pub struct UnknownPlanner {
    /// The name.
    pub name: String,
}

/// Adapters that a planner needs are not loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the planner `{planner}` needs {needed}")]
pub struct NoVoice {
    /// The planner.
    pub planner: Kind,
    /// The missing adapters.
    pub needed: &'static str,
}

/// The names of the loaded adapters that planners use.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cast {
    /// The group's adapters.
    pub group: Option<Voices>,
    /// What the group's approvals need, as it is served; without one a verdict is enough.
    pub calibration: Option<Calibration>,
    /// One adapter trained on all roles' text.
    pub one: Option<String>,
    /// The group's adapters trained on unfiltered trajectories.
    pub unfiltered: Option<Voices>,
    /// Adapters of Plan-Agent, Reflect-Agent and one Tool-Agent for each tool.
    pub specified: Option<Voices>,
    /// The group's adapters by the number of training trajectories.
    pub trained_on: BTreeMap<usize, Voices>,
}

impl Kind {
    /// All planners, in the order of reports.
    pub const ALL: [Kind; 19] = [
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
        Kind::ToolSpecified,
        Kind::TrainedOn25,
        Kind::TrainedOn50,
        Kind::TrainedOn100,
        Kind::TrainedOn200,
        Kind::TrainedOn400,
        Kind::TrainedOn800,
    ];

    /// The rows of table 1 of the paper.
    pub const TABLE_1: [Kind; 8] =
        [Kind::Cot, Kind::React, Kind::Chameleon, Kind::Reflexion, Kind::Bolaa, Kind::Rewoo, Kind::FireAct, Kind::AutoAct];

    /// The rows of table 2 of the paper: AutoAct and its ablations.
    pub const TABLE_2: [Kind; 5] = [Kind::AutoAct, Kind::NoReflection, Kind::OneAgent, Kind::ZeroShot, Kind::Unfiltered];

    /// The rows of table 5 of the paper: the planners that work in rounds.
    pub const TABLE_5: [Kind; 4] = [Kind::React, Kind::Bolaa, Kind::FireAct, Kind::AutoAct];

    /// The points of figure 3 of the paper: numbers of training trajectories, the whole set last.
    pub const FIGURE_3: [Kind; 7] = [
        Kind::TrainedOn25,
        Kind::TrainedOn50,
        Kind::TrainedOn100,
        Kind::TrainedOn200,
        Kind::TrainedOn400,
        Kind::TrainedOn800,
        Kind::AutoAct,
    ];

    /// The groups of figure 4 of the paper: one agent, three agents, a Tool-Agent for each tool.
    pub const FIGURE_4: [Kind; 3] = [Kind::OneAgent, Kind::AutoAct, Kind::ToolSpecified];

    /// The number of training trajectories of a point of figure 3.
    pub fn trained_on(self) -> Option<usize> {
        match self {
            Kind::TrainedOn25 => Some(25),
            Kind::TrainedOn50 => Some(50),
            Kind::TrainedOn100 => Some(100),
            Kind::TrainedOn200 => Some(200),
            Kind::TrainedOn400 => Some(400),
            Kind::TrainedOn800 => Some(800),
            _ => None,
        }
    }

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
            Kind::ToolSpecified => "tool-specified",
            Kind::TrainedOn25 => "trained-on-25",
            Kind::TrainedOn50 => "trained-on-50",
            Kind::TrainedOn100 => "trained-on-100",
            Kind::TrainedOn200 => "trained-on-200",
            Kind::TrainedOn400 => "trained-on-400",
            Kind::TrainedOn800 => "trained-on-800",
        }
    }

    /// Its name in the paper.
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
            Kind::ToolSpecified => "Tool Specified",
            Kind::TrainedOn25 => "25",
            Kind::TrainedOn50 => "50",
            Kind::TrainedOn100 => "100",
            Kind::TrainedOn200 => "200",
            Kind::TrainedOn400 => "400",
            Kind::TrainedOn800 => "800",
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

/// The planner over a backend in which the adapters named by `cast` are loaded.
///
/// # Errors
/// `cast` lacks an adapter that the planner needs.
pub fn build(kind: Kind, backend: &Arc<dyn Backend>, cast: &Cast, options: &PlannerOptions) -> Result<Box<dyn Planner>, NoVoice> {
    let needs = |needed: &'static str| NoVoice { planner: kind, needed };
    let group = |voices: Voices, judgements: Option<u32>| {
        let (name, backend, options) = (kind.as_str(), Arc::clone(backend), PlannerOptions { judgements, ..*options });
        // fitted on this group's verdicts, it says nothing of another's
        let calibration = cast.calibration.clone().filter(|_| kind == Kind::AutoAct);
        Box::new(GroupPlanner { name, backend, voices, calibration, options }) as Box<dyn Planner>
    };
    let judgements = options.judgements;
    let speaker = |adapter: Option<String>| Speaker { name: kind.as_str(), backend: Arc::clone(backend), adapter, options: *options };
    let trained = || cast.group.clone().ok_or(needs("the adapters `plan`, `tool` and `reflect`"));
    let one = || cast.one.clone().ok_or(needs("the adapter that is trained on all roles"));
    Ok(match kind {
        Kind::AutoAct => group(trained()?, judgements),
        Kind::NoReflection => group(trained()?, Some(0)),
        Kind::OneAgent => group(Voices::one(&one()?), judgements),
        Kind::ZeroShot => group(Voices::base(), judgements),
        Kind::Unfiltered => {
            let voices = cast.unfiltered.clone().ok_or(needs("the three adapters that are trained on unfiltered trajectories"))?;
            group(voices, judgements)
        }
        Kind::ToolSpecified => group(cast.specified.clone().ok_or(needs("adapters for single tools"))?, judgements),
        Kind::TrainedOn25 | Kind::TrainedOn50 | Kind::TrainedOn100 | Kind::TrainedOn200 | Kind::TrainedOn400 | Kind::TrainedOn800 => {
            let voices = kind.trained_on().and_then(|count| cast.trained_on.get(&count).cloned());
            group(voices.ok_or(needs("the adapters that are trained on a part of the trajectories"))?, judgements)
        }
        Kind::Cot => Box::new(Cot(speaker(None))),
        Kind::React => Box::new(Solver { speaker: speaker(None), method: React { bare: false } }),
        Kind::FireAct => Box::new(Solver { speaker: speaker(Some(one()?)), method: React { bare: true } }),
        Kind::Reflexion => Box::new(Reflexion(speaker(None))),
        Kind::Chameleon => Box::new(Solver { speaker: speaker(None), method: Chameleon }),
        Kind::Rewoo => Box::new(Solver { speaker: speaker(None), method: Rewoo }),
        Kind::Bolaa => Box::new(Solver { speaker: speaker(None), method: Bolaa }),
    })
}
