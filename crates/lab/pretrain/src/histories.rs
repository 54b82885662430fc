//! Histories that a judge has never read: over the atlas itself, of which training sees the
//! relations, but no page. Half of them are right, the others are made wrong in every way.

use autoact_base::random::Rng;
use autoact_synthetic_kb::{Fault, KnowledgeBase, Mix, Solver, Split, ThoughtStyle, Wording};
use autoact_tools::ToolLibrary;
use autoact_trajectory::{Reflection, Trajectory};

use crate::environment::{Tools, ToolsError};

/// Fractions of the questions.
const DIFFERENCES: f64 = 0.08;
const ARITHMETIC: f64 = 0.05;
const UNANSWERABLE: f64 = 0.2;
/// Fraction of the questions in the words of people.
const REWORDED: f64 = 0.6;
/// Draws for each history that is wanted.
const DRAWS: usize = 60;

/// A history up to an answer, or up to giving up.
#[derive(Debug, Clone)]
pub struct History {
    /// The question, the steps, and the last one.
    pub trajectory: Trajectory,
    /// How it was made wrong; `None`: it is right.
    pub fault: Option<Fault>,
    /// What a perfect judge says.
    pub reflection: Reflection,
}

/// `count` histories over a knowledge base, one half right, each kind of fault about equally often
/// in the other. The same seed gives the same histories.
///
/// # Errors
/// If its pages cannot be indexed.
pub fn histories(base: &KnowledgeBase, library: &ToolLibrary, count: usize, seed: u64) -> Result<Vec<History>, ToolsError> {
    let mut tools = Tools::over(library, base)?;
    let specs = tools.specs().to_vec();
    let solver = Solver { base, style: &ThoughtStyle::ADAPTER, tools: &specs, detours: 0.1 };
    let mix = Mix { difference: DIFFERENCES, ..Mix::default() }.with(ARITHMETIC, UNANSWERABLE);
    let mut rng = Rng::labelled(seed, "judged histories");
    let mut counts = [0; Fault::ALL.len()];
    let most = (count - count / 2).div_ceil(Fault::ALL.len());
    let mut out = Vec::with_capacity(count);
    for _ in 0..count * DRAWS {
        let right = out.len() - counts.iter().sum::<usize>();
        if out.len() == count {
            break;
        }
        let Some(mut question) = base.question(&mut rng, &mix, Split::Any) else { continue };
        if rng.chance(REWORDED)
            && let Some(reworded) = base.reword(&question, &Wording::TRAIN, &mut rng)
        {
            question = reworded;
        }
        let Ok(gold) = solver.solve(&question, &mut tools, &mut rng) else { continue };
        let (trajectory, fault) = if right < count / 2 && rng.chance(0.5) {
            (gold, None)
        } else {
            match solver.spoil(&question, &gold, &mut tools, &mut rng) {
                Some((wrong, fault)) => (wrong, Some(fault)),
                None => continue,
            }
        };
        let Ok(reflection) = solver.reflect(&question, &trajectory) else { continue };
        if let Some(fault) = fault {
            let at = Fault::ALL.iter().position(|one| *one == fault).unwrap_or_default();
            if counts[at] >= most {
                continue;
            }
            counts[at] += 1;
        }
        out.push(History { trajectory, fault, reflection });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use autoact_synthetic_kb::Atlas;
    use autoact_trajectory::Verdict;

    use super::*;

    #[test]
    fn half_are_right_and_every_fault_is_there() {
        let atlas = Atlas::load(Path::new("../../../corpora/atlas")).unwrap();
        let library = Tools::bundled().unwrap();
        let all = histories(atlas.base(), &library, 130, 1).unwrap();
        assert_eq!(all.len(), 130);
        let mut kinds: BTreeMap<Option<Fault>, usize> = BTreeMap::new();
        for history in &all {
            *kinds.entry(history.fault).or_default() += 1;
            let right = history.reflection.verdict == Verdict::Right;
            assert_eq!(right, history.fault.is_none(), "{history:#?}");
        }
        assert_eq!(kinds[&None], 65);
        assert_eq!(kinds.len(), 1 + Fault::ALL.len(), "{kinds:?}");
        let again = histories(atlas.base(), &library, 130, 1).unwrap();
        assert!(all.iter().zip(&again).all(|(one, other)| one.trajectory == other.trajectory));
    }
}
