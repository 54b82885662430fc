//! Keeps prompts within the models' contexts: the history that agents are shown is shortened before
//! a call, or after a refusal.

use std::pin::Pin;
use std::time::Duration;

use autoact_prompt::{Expect, most_bytes, transcript};
use autoact_trajectory::{EventBody, PromptSize, Role, Shortened, Task, Trajectory, Usage, shorten};

use super::{Driver, Progress, Stop, unless};
use crate::contexts::{Contexts, measure, tightest};
use crate::failure::Failure;
use crate::log::EventLog;

/// Of what can be left out, this much stays at most, in quarters of the room. The rest is for the
/// steps to come, so that shortening is rare and prompts share their beginnings in between.
const STAYS: (usize, usize) = (3, 4);
/// Tokens by which prompts of the same history may differ: the roles have cues and duties of their
/// own.
const MARGIN: usize = 128;

/// A length that was told: with so many bytes of transcript at most ([`most_bytes`]), no prompt had
/// more tokens than that.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    tokens: usize,
    bytes: usize,
}

/// What is to be done about the length of the next prompt.
enum Plan {
    /// Nothing: it fits, or there is nothing more to leave out.
    Ask(Option<Known>),
    /// Store this first.
    Shorten(Shortened, Option<Known>),
}

impl<L: EventLog> Driver<L> {
    /// Sees that the next prompt, that of `role`, fits. `None`: the call can be made.
    pub(super) async fn make_room(
        &mut self,
        role: Role,
        interrupt: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Option<Progress>, Stop<L::Error>> {
        let reply = Expect::next(role, self.task.trajectory()).max_tokens;
        if self.agents.contexts.room(role).is_some_and(|room| self.most_tokens() + reply <= room) {
            return Ok(None);
        }
        self.shorten(role, None, interrupt).await
    }

    /// More tokens than the next prompt has.
    fn most_tokens(&self) -> usize {
        let now = most_bytes(&self.task.shown());
        let most = now + self.beside;
        match self.known {
            Some(Known { tokens, bytes }) => most.min(tokens + now.saturating_sub(bytes) + MARGIN),
            None => most,
        }
    }

    /// An agent has told what a call cost; the history has its reply by now.
    pub(super) fn told(&mut self, usage: &Usage) {
        self.known = (usage.prompt_tokens > 0).then(|| Known {
            tokens: usage.prompt_tokens as usize + usage.completion_tokens as usize,
            bytes: most_bytes(&self.task.shown()),
        });
    }

    /// Leaves out what does not fit, or what was refused as too long. `None`: it fits, or nothing
    /// more can be left out.
    pub(super) async fn shorten(
        &mut self,
        role: Role,
        refused: Option<PromptSize>,
        interrupt: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Option<Progress>, Stop<L::Error>> {
        let planned = plan(self.agents.contexts.as_ref(), &self.task, role, refused, self.time_left());
        match unless(interrupt, planned).await {
            None => {
                self.settle().await?;
                Ok(Some(Progress::Interrupted))
            }
            Some(Err(failure)) => self.failed(failure).await.map(Some),
            Some(Ok(Plan::Ask(known))) => {
                self.known = known;
                Ok(None)
            }
            Some(Ok(Plan::Shorten(shortened, known))) => {
                self.known = known;
                self.store(EventBody::Shortened(shortened)).await.map(Some)
            }
        }
    }
}

/// What to leave out of the task's next prompts: nothing while the prompt of `role`, whose turn it
/// is, fits; otherwise enough for all roles. Whether and how much is left out follows from the
/// history and the models alone, so that every run of a task does the same. Lengths are planned in
/// bytes and checked in tokens.
async fn plan(contexts: &dyn Contexts, task: &Task, role: Role, refused: Option<PromptSize>, time_left: Duration) -> Result<Plan, Failure> {
    let (history, before, shown) = (task.trajectory(), task.shortening(), task.shown());
    let known = |sizes: &[PromptSize], shown: &Trajectory| {
        sizes.iter().map(|size| size.tokens).max().map(|tokens| Known { tokens, bytes: most_bytes(shown) })
    };
    if refused.is_none() {
        match contexts.measure(role, task.key(), &shown, time_left).await {
            Ok(size) if size.fits() => return Ok(Plan::Ask(known(&[size], &shown))),
            Ok(_) => {}
            Err(failure) if failure.class.passes() => return Err(failure),
            // its call will tell what is too long
            Err(_) => return Ok(Plan::Ask(None)),
        }
    }
    let mut sizes = measure(contexts, task.key(), &shown, time_left).await?;
    let fits = known(&sizes, &shown);
    // what was refused does not fit, whatever an estimate says
    sizes.extend(refused);
    let Some(tight) = tightest(&sizes) else { return Ok(Plan::Ask(fits)) };
    let bytes = |history: &Trajectory| {
        let mut shown = history.clone();
        task.leave_out_earlier_attempts(&mut shown);
        bytes_of(&shown)
    };
    let least = bytes_of(&task.shown_with(&shorten(history, before, bytes, 0)));
    let mut room = scaled(bytes_of(&shown), tight);
    loop {
        let (stays, of) = STAYS;
        let budget = least + room.saturating_sub(least) * stays / of;
        let shortening = shorten(history, before, bytes, budget);
        if shortening == *before {
            return Ok(Plan::Ask(fits));
        }
        let shorter = task.shown_with(&shortening);
        let sizes = measure(contexts, task.key(), &shorter, time_left).await?;
        let length = bytes_of(&shorter);
        match tightest(&sizes) {
            Some(size) if !size.fits() && length > least => room = scaled(length, size),
            _ => {
                let (tokens, limit) = (count(tight.tokens), count(tight.limit));
                return Ok(Plan::Shorten(Shortened { shortening, tokens, limit }, known(&sizes, &shorter)));
            }
        }
    }
}

fn bytes_of(trajectory: &Trajectory) -> usize {
    transcript(trajectory).len()
}

/// The bytes that have room, where so many bytes have this size.
fn scaled(bytes: usize, size: PromptSize) -> usize {
    let room = (bytes as u128) * (size.limit as u128) / (size.tokens.max(1) as u128);
    usize::try_from(room).unwrap_or(usize::MAX).min(bytes)
}

fn count(tokens: usize) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}
