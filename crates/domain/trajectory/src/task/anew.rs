//! Attempts that begin anew: what the agents are given of a task, and how they decode.

use std::borrow::Cow;

use super::Task;
use crate::call::{CallId, CallKind, Role};
use crate::history::{Reflection, Step, Trajectory, Turn};
use crate::limits::Sampling;
use crate::next_attempt::{NextAttempt, TEMPERATURE};
use crate::shortening::Shortening;
use crate::tool::{Effect, ToolSpec};

impl Task {
    /// What the agents are given of [`Task::trajectory`]: all of it, unless it was shortened or this
    /// attempt begins anew. Tools always get the whole.
    pub fn shown(&self) -> Cow<'_, Trajectory> {
        self.shown_with(&self.shortening)
    }

    /// What the agents would be given if the history were shortened so.
    pub fn shown_with(&self, shortening: &Shortening) -> Cow<'_, Trajectory> {
        if *shortening == Shortening::default() && !self.begins_anew() {
            return Cow::Borrowed(&self.trajectory);
        }
        let mut shown = shortening.apply(&self.trajectory);
        self.leave_out_earlier_attempts(&mut shown);
        Cow::Owned(shown)
    }

    /// Leaves out of `shown`, this task's history or a shortened one, what an attempt that begins
    /// anew is not given. What a shortening left out of the attempt itself is still said.
    pub fn leave_out_earlier_attempts(&self, shown: &mut Trajectory) {
        if self.begins_anew() {
            let earlier = &self.trajectory.turns[..attempt_start(&self.trajectory.turns)];
            let steps = earlier.iter().filter(|turn| matches!(turn, Turn::Step(_))).count();
            shown.turns.drain(..attempt_start(&shown.turns));
            shown.left_out = shown.left_out.saturating_sub(u32::try_from(steps).unwrap_or(u32::MAX));
        }
    }

    /// How the model of `call` decodes.
    pub fn sampling_of(&self, call: CallId) -> Sampling {
        let mut sampling = Sampling { seed: call.seed(self.sampling.seed), ..self.sampling };
        let writes = matches!(call.kind, CallKind::Speak(Role::Plan | Role::Tool));
        if writes && sampling.temperature == 0.0 && self.begins_anew() {
            sampling.temperature = TEMPERATURE;
        }
        sampling
    }

    /// Whether the agents are given nothing of the attempts before the present one.
    pub(super) fn begins_anew(&self) -> bool {
        let before = &self.trajectory.turns[..attempt_start(&self.trajectory.turns)];
        let anew = matches!(before.last(), Some(Turn::Reflection(Reflection { next_attempt: NextAttempt::Anew, .. })));
        anew && before.iter().all(|turn| self.may_be_done_again(turn))
    }

    /// The turns that the present attempt knows, none of them shortened.
    pub(super) fn known_turns(&self) -> &[Turn] {
        let begin = if self.begins_anew() { attempt_start(&self.trajectory.turns) } else { 0 };
        &self.trajectory.turns[begin..]
    }

    fn may_be_done_again(&self, turn: &Turn) -> bool {
        let again = |tool: &ToolSpec| tool.is_terminal() || (tool.effect == Effect::ReadOnly && !tool.asks_user());
        match turn {
            Turn::Step(Step { tool, .. }) => self.trajectory.tool(tool).is_some_and(again),
            Turn::Reflection(_) => true,
        }
    }
}

/// Where the present attempt begins: after the last judgement.
fn attempt_start(turns: &[Turn]) -> usize {
    turns.iter().rposition(|turn| matches!(turn, Turn::Reflection(_))).map_or(0, |last| last + 1)
}
