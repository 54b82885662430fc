//! Holding a task back and letting it go on: pause, resume, and what a person says to a task that
//! asks. All of it are events of the task, so that it survives the restart of everything. A task
//! that is held back leaves the queue; whoever lets it go on queues it again.

use autoact_access::{Principal, Role};
use autoact_trajectory::{EventBody, InputGiven, InputKind, MAX_INPUT_BYTES, Paused, Resumed, Task, TaskId};

use crate::tasks::change::Wanted;
use crate::tasks::{Application, TaskError, name};

/// What a person says to a task that asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Input {
    /// The step that asks.
    pub(crate) step: u32,
    pub(crate) said: Said,
}

/// What was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// The answer to a question.
    Answer(String),
    /// Whether an action may be run.
    Approval {
        approved: bool,
        /// Why not.
        reason: String,
        /// All later calls of the tool in this task are approved too.
        for_task: bool,
    },
}

impl Application {
    /// Stops a task for a while. Once this returns, nothing with an effect is begun.
    pub(crate) async fn pause(&self, who: &Principal, id: &TaskId, reason: &str) -> Result<Task, TaskError> {
        within("reason", reason)?;
        let paused = self
            .change(who, id, |task| {
                unended(task)?;
                let paused = || Wanted::Pause(Paused { by: name(who), reason: reason.to_owned() });
                Ok((!task.is_paused()).then(paused))
            })
            .await?;
        if paused.changed {
            metrics::counter!("autoact_tasks_held_total", "why" => "paused").increment(1);
            self.bus.announce_change(paused.task.key()).await;
        }
        Ok(paused.task)
    }

    /// Lets a paused task go on; one that is not paused stays as it is.
    pub(crate) async fn resume(&self, who: &Principal, id: &TaskId) -> Result<Task, TaskError> {
        let resumed = self
            .change(who, id, |task| {
                let body = || Box::new(EventBody::Resumed(Resumed { by: name(who) }));
                let resumed = || Wanted::GoOn { body: body(), queued: task.input_required().is_none() };
                Ok((task.is_paused() && task.finished().is_none()).then(resumed))
            })
            .await?;
        self.go_on(&resumed.task).await?;
        drop(resumed.entering);
        Ok(resumed.task)
    }

    /// Answers a task that waits for a person. The same answer again changes nothing.
    pub(crate) async fn give_input(&self, who: &Principal, id: &TaskId, input: &Input) -> Result<Task, TaskError> {
        let (kind, text, approved, for_task) = match &input.said {
            Said::Answer(answer) if answer.trim().is_empty() => return Err(TaskError::EmptyAnswer),
            Said::Answer(answer) => {
                within("answer", answer)?;
                (InputKind::Answer, answer, false, false)
            }
            Said::Approval { approved, reason, for_task } => {
                within("approval.reason", reason)?;
                // who may ask a question may not thereby change the world
                who.require(Role::Operate)?;
                (InputKind::Approval, reason, *approved, *approved && *for_task)
            }
        };
        let given = InputGiven { step: input.step, kind, text: text.clone(), approved, for_task, by: name(who) };
        let answered = self
            .change(who, id, |task| {
                unended(task)?;
                match (task.input_required(), task.input_given()) {
                    (Some(asked), _) if (asked.step, asked.kind) == (given.step, given.kind) => {
                        let body = Box::new(EventBody::InputGiven(given.clone()));
                        Ok(Some(Wanted::GoOn { body, queued: !task.is_paused() }))
                    }
                    // said before, by the same or somebody else
                    (None, Some(known)) if InputGiven { by: known.by.clone(), ..given.clone() } == *known => Ok(None),
                    (asked, _) => {
                        let asked = asked.map(|asked| (asked.step, asked.kind));
                        Err(TaskError::NotAsked { task: id.clone(), step: given.step, asked })
                    }
                }
            })
            .await?;
        if answered.changed {
            let what = match (kind, approved) {
                (InputKind::Approval, true) => "approved",
                (InputKind::Approval, false) => "refused",
                _ => "answered",
            };
            metrics::counter!("autoact_inputs_total", "input" => what).increment(1);
        }
        self.go_on(&answered.task).await?;
        drop(answered.entering);
        Ok(answered.task)
    }

    /// Queues a task that nothing holds back any more; one that is queued or runs stays as it is.
    async fn go_on(&self, task: &Task) -> Result<(), TaskError> {
        if task.is_held() || task.finished().is_some() {
            return Ok(());
        }
        self.tenants.add(&[task.key().tenant.clone()].into());
        self.bus.enqueue(task.key()).await?;
        Ok(())
    }
}

fn unended(task: &Task) -> Result<(), TaskError> {
    if task.finished().is_some() { Err(TaskError::Ended(task.id().clone())) } else { Ok(()) }
}

fn within(field: &'static str, text: &str) -> Result<(), TaskError> {
    if text.len() > MAX_INPUT_BYTES { Err(TaskError::LongInput { field, bytes: text.len() }) } else { Ok(()) }
}
