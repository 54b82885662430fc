//! The actor around a runner: one per task, so that a bug in one task is the failure of that task
//! alone.

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tracing::{Instrument, Span};

use crate::run::runner::{Outcome, Runner};

/// Runs one task.
pub(crate) struct TaskActor;

/// Do the next thing. The actor sends it to itself, one at a time, so that a stop comes between
/// two.
pub(crate) struct Advance;

/// A task being run, its span, and how that ended.
pub(crate) struct TaskState {
    runner: Runner,
    span: Span,
    pub(crate) outcome: Option<Outcome>,
}

impl Actor for TaskActor {
    type Msg = Advance;
    type State = TaskState;
    type Arguments = (Runner, Span);

    async fn pre_start(&self, _: ActorRef<Advance>, (runner, span): (Runner, Span)) -> Result<TaskState, ActorProcessingErr> {
        Ok(TaskState { runner, span, outcome: None })
    }

    async fn post_start(&self, myself: ActorRef<Advance>, _: &mut TaskState) -> Result<(), ActorProcessingErr> {
        Ok(myself.cast(Advance)?)
    }

    async fn handle(&self, myself: ActorRef<Advance>, _: Advance, state: &mut TaskState) -> Result<(), ActorProcessingErr> {
        match state.runner.advance().instrument(state.span.clone()).await {
            None => myself.cast(Advance)?,
            outcome => {
                state.outcome = outcome;
                myself.stop(None);
            }
        }
        Ok(())
    }
}
