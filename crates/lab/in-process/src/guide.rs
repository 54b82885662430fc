//! A choice among an agent's proposals. Where the way to the answer is known, a step that does not
//! follow it is proposed anew, before the task goes on: one step that fails costs one step, and not
//! the whole trajectory.

use std::fmt;
use std::time::Instant;

use autoact_model::{WordBias, WordLimit};
use autoact_planning::{Call, Failure, FailureClass, Reply};
use autoact_trajectory::{Role, Sampling, Thought, Trajectory};

/// What a proposal's seed differs by from that of the one before.
const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// What chooses among proposals. What an agent is asked has nothing of it, but for bias and limit.
pub trait Guide: fmt::Debug + Send + Sync {
    /// Maximum number of proposals of a call. If none is accepted, the task fails.
    fn proposals(&self) -> u32;

    /// The logit bias on the words of a thought, beside that of the options. `rejected`: the proposals
    /// of this call so far.
    fn bias(&self, trajectory: &Trajectory, rejected: &[Thought]) -> Vec<WordBias>;

    /// The only words of a thought; `None`: any.
    fn limit(&self, trajectory: &Trajectory) -> Option<WordLimit>;

    /// The logit bias on the words of parameters after so many rejected proposals of this call.
    fn params_bias(&self, trajectory: &Trajectory, rejected: usize) -> Vec<WordBias>;

    /// Whether a thought and its tool lead on.
    fn accepts_thought(&self, trajectory: &Trajectory, thought: &Thought) -> bool;

    /// Whether parameters of the tool in the open step lead on. `seen`: what the tool returns to them;
    /// `None` if it ends the task, or may change the world and was not run.
    fn accepts_params(&self, trajectory: &Trajectory, params: &str, seen: Option<&str>) -> bool;
}

/// The proposals of one call.
pub(crate) struct Proposals<'a, T> {
    guide: Option<&'a dyn Guide>,
    role: Role,
    call: Call<'a>,
    begun: Instant,
    /// When the last one began.
    last: Instant,
    /// Those that were not accepted.
    pub(crate) rejected: Vec<T>,
}

impl<'a, T> Proposals<'a, T> {
    /// Of a call to `role`. Without a guide there is one, which is accepted.
    pub(crate) fn of(guide: Option<&'a dyn Guide>, role: Role, call: Call<'a>) -> Proposals<'a, T> {
        let now = Instant::now();
        Proposals { guide, role, call, begun: now, last: now, rejected: Vec::new() }
    }

    /// The next proposal's call: the time that is left, and a seed of its own but for the first.
    pub(crate) fn next(&mut self) -> Call<'a> {
        self.last = Instant::now();
        let seed = self.call.sampling.seed.wrapping_add(SEED_STEP.wrapping_mul(self.rejected.len() as u64));
        let time_left = self.call.time_left.saturating_sub(self.last.duration_since(self.begun));
        Call { sampling: Sampling { seed, ..self.call.sampling }, time_left, ..self.call }
    }

    /// What the call comes to with this proposal; `None`: another one is needed.
    pub(crate) fn settle(&mut self, reply: Reply<T>, accepts: impl FnOnce(&dyn Guide, &T) -> bool) -> Option<Result<Reply<T>, Failure>> {
        let Some(guide) = self.guide else { return Some(Ok(reply)) };
        if accepts(guide, &reply.value) {
            let retry = self.last.duration_since(self.begun) + reply.retry;
            return Some(Ok(Reply { retry, ..reply }));
        }
        self.rejected.push(reply.value);
        let all = self.rejected.len() >= guide.proposals() as usize;
        all.then(|| Err(Failure::new(FailureClass::Refused, format!("{}-agent", self.role.as_str()), "no proposal was accepted")))
    }
}
