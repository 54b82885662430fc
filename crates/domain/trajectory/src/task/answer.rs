//! What a task has for an answer, how sure the group is of it, and what it rests on.

use super::Task;
use crate::citation::{Citation, citations};
use crate::confidence::Evidence;
use crate::fit::{Fit, fit};
use crate::history::{Reflection, Step, Turn, Verdict};
use crate::next_attempt::NextAttempt;
use crate::usage::Usage;

impl Task {
    /// What is missing, where the last step says that there is no answer. Whether Reflect-Agent
    /// agrees is another matter: in [`Phase::Approved`] it does.
    pub fn no_answer(&self) -> Option<&str> {
        let step = self.trajectory.steps().next_back()?;
        let tool = self.trajectory.tool(&step.tool)?;
        step.params.as_deref().filter(|_| tool.is_no_answer())
    }

    /// The answer that the task ends with if it ends now: the approved one, else the first of those
    /// with the highest confidence, else the latest. Empty: there is none. That there is no answer is
    /// none.
    pub fn best_answer(&self) -> &str {
        match &self.surest {
            Some((answer, _)) if !self.is_approved() => answer,
            _ => &self.answer,
        }
    }

    fn is_approved(&self) -> bool {
        matches!(self.trajectory.turns.last(), Some(Turn::Reflection(Reflection { verdict: Verdict::Right, .. })))
    }

    /// The confidence in [`best_answer`](Self::best_answer), where it was judged with one.
    pub fn confidence(&self) -> Option<f64> {
        match self.trajectory.turns.last() {
            Some(Turn::Reflection(Reflection { verdict: Verdict::Right, confidence, .. })) => *confidence,
            _ => self.surest.as_ref().map(|(_, confidence)| *confidence),
        }
    }

    /// The confidence that the client asks of an approval.
    pub fn min_confidence(&self) -> Option<f64> {
        self.min_confidence
    }

    /// What the client says that the agents are given after a judgement "wrong".
    pub fn next_attempt(&self) -> Option<NextAttempt> {
        self.next_attempt
    }

    /// How sure the agents were of the answer that is judged next, given the log-odds of its
    /// verdict and what the judgement cost.
    pub fn evidence(&self, log_odds: Option<f64>, judgement: &Usage) -> Option<Evidence> {
        self.likelihood.evidence(log_odds, judgement, || self.fit())
    }

    /// How the answer that is judged next fits the question.
    fn fit(&self) -> Fit {
        let open = self.trajectory.open_step();
        let answer = open.and_then(|step| Some(self.trajectory.tool(&step.tool)?.answer(step.params.as_deref()?)));
        answer.map_or_else(Fit::default, |answer| fit(&self.trajectory.question, self.known_turns(), &answer))
    }

    /// The passages that one of the task's answers rests on, from the history up to the last step
    /// that gave it.
    pub(super) fn citations(&self, answer: &str) -> Vec<Citation> {
        let gives = |turn: &Turn| match turn {
            Turn::Step(Step { tool, params: Some(params), .. }) => {
                self.trajectory.tool(tool).is_some_and(|tool| tool.is_answer() && tool.answer(params) == answer)
            }
            _ => false,
        };
        match self.trajectory.turns.iter().rposition(gives) {
            Some(last) => citations(&self.trajectory.question, &self.trajectory.turns[..=last], answer),
            None => Vec::new(),
        }
    }
}
