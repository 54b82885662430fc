//! The gold trajectories of one document.

use autoact_base::random::Rng;
use autoact_synthetic_kb::{Misread, Mix, Question, Solver, Split, ThoughtStyle, Wording};
use autoact_trajectory::{ToolSpec, Trajectory, Turn};

use crate::environment::Tools;
use crate::recipe::WorldsRecipe;
use crate::worlds::Made;

/// Questions tried for one document, because some have no gold trajectory. If none has one, the
/// document is empty and the trainer skips it.
const TRIES: usize = 20;
/// Probability that a trajectory of the base's data starts with a wrong tool and recovers.
pub(crate) const DETOURS: f64 = 0.04;
/// The same for the adapters' data. It is lower, because adapters should learn the canonical way.
pub(crate) const ADAPTER_DETOURS: f64 = 0.02;

/// The tools of one document's trajectory and the mix that its question is drawn from.
pub(crate) struct Kit<'a> {
    pub(crate) world: &'a Made,
    pub(crate) specs: Vec<ToolSpec>,
    pub(crate) mix: Mix,
}

/// A right trajectory.
pub(crate) struct Gold {
    pub(crate) trajectory: Trajectory,
    pub(crate) question: Question,
    /// What its first steps get wrong. They are no targets.
    pub(crate) misread: Option<Misread>,
}

impl Kit<'_> {
    fn solver<'a>(&'a self, style: &'a ThoughtStyle, detours: f64) -> Solver<'a> {
        Solver { base: &self.world.base, style, tools: &self.specs, detours }
    }

    fn tools(&self) -> Tools {
        self.world.tools.clone()
    }

    pub(crate) fn gold(&self, rng: &mut Rng, style: &ThoughtStyle, detours: f64, split: Split) -> Option<Gold> {
        (0..TRIES).find_map(|_| {
            let mut question = self.world.base.question(rng, &self.mix, split)?;
            let reworded = self.world.recipe.reworded;
            if reworded > 0.0
                && rng.chance(reworded)
                && let Some(reworded) = self.world.base.reword(&question, &Wording::TRAIN, rng)
            {
                question = reworded;
            }
            let solver = self.solver(style, detours);
            let WorldsRecipe { misread, misread_asked, .. } = self.world.recipe;
            let misread = match rng.weighted(&[misread, misread_asked, (1.0 - misread - misread_asked).max(0.0)])? {
                0 => solver.misread_name(&question, &mut self.tools(), rng),
                1 => solver.misread_asked(&question, &mut self.tools(), rng),
                _ => None,
            };
            if let Some((trajectory, misread)) = misread {
                return Some(Gold { trajectory, question, misread: Some(misread) });
            }
            let trajectory = solver.solve(&question, &mut self.tools(), rng).ok()?;
            Some(Gold { trajectory, question, misread: None })
        })
    }

    /// Adds a reflection. With probability `spoiled`, the trajectory is first made wrong.
    pub(crate) fn judged(&self, gold: Trajectory, question: &Question, style: &ThoughtStyle, spoiled: f64, rng: &mut Rng) -> Trajectory {
        let solver = self.solver(style, 0.0);
        let mut history = gold;
        if rng.chance(spoiled)
            && let Some((wrong, _)) = solver.spoil(question, &history, &mut self.tools(), rng)
        {
            history = wrong;
        }
        if let Ok(reflection) = solver.reflect(question, &history) {
            history.turns.push(Turn::Reflection(reflection));
        }
        history
    }

    /// A trajectory with a wrong answer, its rejection, the right answer and its approval.
    pub(crate) fn repaired(&self, gold: &Trajectory, question: &Question, style: &ThoughtStyle, rng: &mut Rng) -> Option<Trajectory> {
        let solver = self.solver(style, 0.0);
        let mut history = solver.repair(question, gold, &mut self.tools(), rng).ok()??;
        let reflection = solver.reflect(question, &history).ok()?;
        history.turns.push(Turn::Reflection(reflection));
        Some(history)
    }
}
