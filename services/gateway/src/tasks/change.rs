//! Changing a task from outside: an event is appended to its trajectory by whoever asks for it,
//! whichever gateway runs the task, and also when none does.

use autoact_access::Principal;
use autoact_bus::BusError;
use autoact_trajectory::{Event, EventBody, FinishReason, Paused, Task, TaskId};

use crate::run::log::append;
use crate::run::runner::fence;
use crate::tasks::admission::Entering;
use crate::tasks::{Application, TaskError, name};

/// A running task appends a few events a second: one of the first attempts fits in between.
const MAX_ATTEMPTS: u32 = 20;

/// What is to become of a task.
pub(super) enum Wanted {
    /// It ends as cancelled, for this reason. An effect that was begun is named in its end.
    End(&'static str),
    /// It is stopped for a while.
    Pause(Paused),
    /// What this says lets it go on.
    GoOn {
        body: Box<EventBody>,
        /// Nothing else holds the task back: it needs a place among those that are queued.
        queued: bool,
    },
}

/// A task, and whether it was changed now.
pub(super) struct Changed<'a> {
    pub(super) task: Task,
    pub(super) changed: bool,
    /// The place of a task that goes on; kept until it is in the queue.
    pub(super) entering: Option<Entering<'a>>,
}

impl Application {
    /// Does with the task what `next` wants of it as it stands; `None` leaves it as it is. `next` is
    /// asked again where the task went on in the meantime.
    pub(super) async fn change(
        &self,
        who: &Principal,
        id: &TaskId,
        mut next: impl FnMut(&Task) -> Result<Option<Wanted>, TaskError> + Send,
    ) -> Result<Changed<'_>, TaskError> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let mut task = self.get(who, id).await?;
            let Some(wanted) = next(&task)? else { return Ok(Changed { task, changed: false, entering: None }) };
            // before anything is stored, so that who has to wait can ask for the same again
            let entering = match &wanted {
                Wanted::GoOn { queued: true, .. } => Some(self.admit(who).await?),
                _ => None,
            };
            let body = self.prepare(who, &task, wanted).await?;
            // whoever asks holds no lease
            let mut event = Event { epoch: 0, ..task.next_event(self.bus.now(), &self.writer, body) };
            task.check(&event).map_err(|source| TaskError::Fold { task: id.clone(), source: Box::new(source) })?;
            match append(&self.bus, &event, task.last_sequence()).await {
                Ok(stored) => (event.sequence, event.digest) = (stored.sequence, stored.digest),
                // the task went on in the meantime
                Err(BusError::Conflict { .. }) if attempt < MAX_ATTEMPTS => continue,
                Err(error) => return Err(error.into()),
            }
            task.apply(&event).map_err(|source| TaskError::Fold { task: id.clone(), source: Box::new(source) })?;
            return Ok(Changed { task, changed: true, entering });
        }
    }

    /// Does what has to be done before the event is stored.
    async fn prepare(&self, who: &Principal, task: &Task, wanted: Wanted) -> Result<EventBody, TaskError> {
        Ok(match wanted {
            Wanted::End(why) => {
                // whoever runs the task starts nothing any more, stopped or slow as they may be
                let receipts = fence(&self.bus, task).await?;
                let mut finished = task.finish(FinishReason::Cancelled, why);
                finished.by = name(who);
                finished.open_effect = task.side_effect().filter(|step| receipts.is_none_or(|receipts| receipts.was_begun(*step)));
                EventBody::Finished(finished)
            }
            Wanted::Pause(paused) => {
                fence(&self.bus, task).await?;
                EventBody::Paused(paused)
            }
            Wanted::GoOn { body, .. } => {
                // whoever dies before it is queued again leaves it to those who look for such tasks
                self.bus.record_resumption(task.key()).await?;
                *body
            }
        })
    }
}
