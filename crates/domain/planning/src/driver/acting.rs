//! Running the tool that an action names, and what the group is told where it gave no answer.

use autoact_trajectory::{
    Action, Artifact, Effect, EventBody, NewArtifact, Observation, Task, TaskKey, UNKNOWN_OUTCOME, Usage, check_artifacts,
};

use super::{Called, Driver, Said, call, unless};
use crate::agents::{Execution, Reply, Seen};
use crate::failure::{Failure, FailureClass};
use crate::log::EventLog;

/// The group learns little from a long error.
const FAILURE_CHARS: usize = 300;

impl<L: EventLog> Driver<L> {
    pub(super) async fn execute(&mut self, action: &Action, may_have_run: bool, interrupt: impl Future<Output = ()>) -> Called {
        let Some(call) = call(&self.task, self.task.trajectory(), self.time_left()) else { return Called::Interrupted };
        let execution = Execution { call, action, spec: self.task.trajectory().tool(&action.tool), may_have_run };
        let (effect, receipts) = (execution.effect(), self.agents.tools.keeps_receipts());
        if may_have_run && effect == Effect::SideEffect && !receipts {
            return Called::Said(EventBody::Observation(self.task.observe(unknown_outcome())).into());
        }
        let (tools, log) = (&self.agents.tools, &mut self.log);
        let run = async {
            let Reply { value: Seen { observation, artifacts }, usage, retry } = tools.execute(execution).await?;
            let (observation, artifacts) = keep(log, call.task, effect, observation, artifacts).await?;
            Ok(Reply { value: (observation, artifacts), usage, retry })
        };
        let observed = |task: &Task, seen: Observation| EventBody::Observation(task.observe(seen));
        match unless(interrupt, run).await {
            None => Called::Interrupted,
            Some(Ok(Reply { value: (observation, artifacts), usage, retry })) => {
                self.clock.called(usage.total, retry);
                // whoever wrote it, it was none of the group
                let observation = Observation { untrusted: true, ..observation };
                Called::Said(Said { body: observed(&self.task, observation), usage: Some(usage), artifacts })
            }
            Some(Err(failure)) => match observation_of(&failure, action, effect, receipts) {
                None => Called::Failed(failure),
                Some(seen) => {
                    let said = Said::from(observed(&self.task, seen));
                    Called::Said(Said { usage: Some(Usage::default()), ..said })
                }
            },
        }
    }
}

/// What the group is told of an action that gave no answer; `None`: nothing, it is run again.
fn observation_of(failure: &Failure, action: &Action, effect: Effect, receipts: bool) -> Option<Observation> {
    let told = |text: String| Some(Observation { text, is_error: true, ..Observation::default() });
    match failure.class {
        // the receipt will tell
        FailureClass::MayHaveRun if receipts => None,
        FailureClass::TimedOut if receipts && effect == Effect::SideEffect => None,
        class if effect == Effect::SideEffect && class.may_have_run() => Some(unknown_outcome()),
        FailureClass::NotSent | FailureClass::Busy | FailureClass::MayHaveRun | FailureClass::Fenced => None,
        // the group may try something else
        FailureClass::TimedOut | FailureClass::Refused | FailureClass::Broken => {
            let text = format!("{} failed: {}", action.tool, failure.message());
            told(text.chars().take(FAILURE_CHARS).collect())
        }
    }
}

/// What the group is told of a side effect that may have happened.
fn unknown_outcome() -> Observation {
    Observation { text: UNKNOWN_OUTCOME.to_owned(), is_error: true, ..Observation::default() }
}

/// Stores an observation's artifacts before the event that refers to them. Where there is no room
/// now, the task waits and the tool is run again; one that must not run twice has run, and what it
/// told the group is kept without them.
async fn keep<L: EventLog>(
    log: &mut L,
    task: &TaskKey,
    effect: Effect,
    mut observation: Observation,
    new: Vec<NewArtifact>,
) -> Result<(Observation, Vec<Artifact>), Failure> {
    check_artifacts(&new).map_err(|error| Failure::new(FailureClass::Broken, "the tool", error))?;
    let mut artifacts = Vec::with_capacity(new.len());
    for artifact in &new {
        match log.keep(task, artifact).await {
            Ok(kept) => artifacts.push(kept),
            Err(_) if effect == Effect::SideEffect => {
                observation.text = format!("{} (Not stored: {}.)", observation.text, artifact.name);
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok((observation, artifacts))
}
