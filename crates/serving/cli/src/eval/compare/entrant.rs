//! The rows of a comparison: a planner, and how it is tested.

use std::fmt;

use autoact_planners::{Kind, Outcome, Planner, Toolbox};

use super::problem::Problem;

/// The temperature of a second try where the first one is greedy: otherwise it would be the same.
pub(super) const SECOND_TEMPERATURE: f32 = 0.5;

/// A row of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entrant {
    /// A planner that answers once, and sees no gold answer.
    Once(Kind),
    /// The better one of the answers of the planner in the row before, and of a second try: the paper
    /// tests all methods but Reflexion so (its paragraph on baselines), because that is told what is right.
    BestOfTwo(Kind),
    /// A planner that is told whether its answers are right.
    Told(Kind),
}

impl Entrant {
    /// How the paper tests a planner.
    pub(super) fn paper(kind: Kind) -> Entrant {
        if kind == Kind::Reflexion { Entrant::Told(kind) } else { Entrant::BestOfTwo(kind) }
    }

    /// The planner.
    pub(crate) fn kind(self) -> Kind {
        match self {
            Entrant::Once(kind) | Entrant::BestOfTwo(kind) | Entrant::Told(kind) => kind,
        }
    }

    /// Its name in the paper, and what is done otherwise here.
    pub(crate) fn title(self) -> String {
        match self {
            Entrant::Once(kind) => kind.title().to_owned(),
            Entrant::BestOfTwo(kind) => format!("{}, best of 2", kind.title()),
            Entrant::Told(kind) => format!("{}, told", kind.title()),
        }
    }

    /// One try at a question.
    pub(super) fn solve(self, planner: &dyn Planner, problem: &Problem, tools: &Toolbox, seed: u64) -> Outcome {
        match self {
            Entrant::Once(_) => planner.solve(&problem.question, tools, seed),
            // sampled; another seed than the first one's, should that be sampled too
            Entrant::BestOfTwo(_) => planner.solve(&problem.question, tools, !seed),
            Entrant::Told(_) => planner.solve_told(&problem.question, tools, seed, &|answer| problem.score(Some(answer)).0),
        }
    }
}

impl fmt::Display for Entrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entrant::Once(kind) => write!(f, "{kind}"),
            Entrant::BestOfTwo(kind) => write!(f, "{kind}-best-of-2"),
            Entrant::Told(kind) => write!(f, "{kind}-told"),
        }
    }
}

/// The outcome with the higher reward, the first one if they are equal, at the cost of both.
pub(super) fn better(problem: &Problem, first: &Outcome, second: &Outcome) -> Outcome {
    let chosen = if problem.reward(second) > problem.reward(first) { second } else { first };
    Outcome { cost: first.cost.with(second.cost), ..chosen.clone() }
}

#[cfg(test)]
mod tests {
    use autoact_planners::{Cost, Ended};

    use super::*;

    fn outcome(answer: &str, calls: u32) -> Outcome {
        Outcome {
            answer: answer.into(),
            approved: None,
            steps: calls,
            judgements: Vec::new(),
            transcript: String::new(),
            cost: Cost { calls, prompt_tokens: 10, ..Cost::default() },
            ended: Ended::Answered,
        }
    }

    #[test]
    fn the_better_answer_counts_and_both_cost() {
        let problem = Problem::of("Where is the Loire?", "France");
        let pick = |first: &str, second: &str| {
            let better = better(&problem, &outcome(first, 2), &outcome(second, 3));
            assert_eq!((better.cost.calls, better.cost.prompt_tokens), (5, 20));
            (better.answer, better.steps)
        };
        assert_eq!(pick("Italy", "France"), ("France".into(), 3));
        assert_eq!(pick("France", "Italy"), ("France".into(), 2));
        assert_eq!(pick("Italy", "Spain"), ("Italy".into(), 2));
    }
}
