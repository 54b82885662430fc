//! Who works at a task: how often it was taken up, and whether the open action may have run.

use super::Task;

/// What the events say of the task's holders, one after the other.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Lease {
    attempt: u32,
    fruitless: u32,
    /// The last holder gave the task back; whether the open action may have run by then.
    released: Option<bool>,
    interrupted: bool,
}

impl Lease {
    /// Somebody takes the task up, for the `attempt`th time; `acting`: while an action is open.
    pub(super) fn take_up(&mut self, attempt: u32, acting: bool) {
        self.attempt = attempt;
        let released = self.released.take();
        // one that gave the task back did not crash
        self.fruitless += u32::from(released.is_none());
        // whoever held the lease before may have begun to run the open action, unless it says that
        // it did not
        self.interrupted |= acting && attempt > 1 && released.unwrap_or(true);
    }

    /// The holder gives the task back and says whether the open action may have run.
    pub(super) fn give_back(&mut self, may_have_run: bool) {
        self.released = Some(may_have_run);
    }

    /// Whoever runs the task lets go of it, maybe in the middle of the call.
    pub(super) fn let_go(&mut self, acting: bool) {
        self.released.get_or_insert(acting);
    }

    /// The open action has its observation.
    pub(super) fn observed(&mut self) {
        self.interrupted = false;
    }

    /// The task got further.
    pub(super) fn progress(&mut self) {
        self.fruitless = 0;
    }
}

impl Task {
    /// How often the task has been taken up; 0 before the first time.
    pub fn attempt(&self) -> u32 {
        self.lease.attempt
    }

    /// The number of the present holder of the lease; 0 before the first.
    pub fn epoch(&self) -> u64 {
        u64::from(self.lease.attempt)
    }

    /// How often the task has been taken up since its last progress by somebody who then vanished,
    /// the present holder included.
    pub fn fruitless_attempts(&self) -> u32 {
        self.lease.fruitless
    }

    /// Whether the lease changed hands between the open action and its observation: the action may
    /// have run.
    pub fn may_have_run(&self) -> bool {
        self.lease.interrupted
    }
}
