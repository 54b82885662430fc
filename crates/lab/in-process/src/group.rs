//! The planning loop in one process.

use std::sync::Arc;

use autoact_model::{Backend, WordBias};
use autoact_planning::{Driver, DriverOptions, FailureClass, MemoryLog, NeverFails, Progress, Stop};
use autoact_speaker::Speaker;
use autoact_tools::ToolLibrary;
use autoact_trajectory::{FoldError, Limits, Sampling, Submitted, Task, TaskId, TaskKey, Tenant, ToolSpec};

use crate::members::Members;
use crate::voices::Voices;

/// Who writes a local task's events.
const WRITER: &str = "local";

/// How a question is run.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// The task's bounds.
    pub limits: Limits,
    /// How the models decode; each call of a task draws from its own part of the seed.
    pub sampling: Sampling,
    /// Stop at the first answer, without asking Reflect-Agent: the task is returned unfinished, with the answer in its
    /// last step.
    pub without_reflection: bool,
    /// Words that Plan-Agent leans towards.
    pub word_bias: Option<WordBias>,
}

/// A loop that cannot go on for a reason that is not the model's: a mistake in the program.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// An event does not continue the task.
    #[error("the planning loop broke its own rules")]
    Fold(#[from] FoldError),
}

impl From<Stop<NeverFails>> for LocalError {
    fn from(stop: Stop<NeverFails>) -> Self {
        match stop {
            Stop::Log(never) => match never {},
            Stop::Fold(error) => LocalError::Fold(error),
        }
    }
}

/// A model, its adapters by role, and tools.
#[derive(Clone)]
pub struct LocalGroup {
    speaker: Speaker,
    library: Arc<ToolLibrary>,
    voices: Voices,
}

impl LocalGroup {
    /// A group over a backend that has the voices' adapters. It is asked with the chat template it brings.
    pub fn new(backend: Arc<dyn Backend>, library: Arc<ToolLibrary>, voices: Voices) -> LocalGroup {
        LocalGroup { speaker: Speaker::new(backend), library, voices }
    }

    /// The tools it runs.
    pub fn library(&self) -> &ToolLibrary {
        &self.library
    }

    /// Runs a question with the tools selected for it, to its end. Blocks; not for use within an async task. A model
    /// that cannot go on (a prompt too long, a reply that cannot be used) ends the task as `failed`, as in the
    /// gateway; the task that comes back says why. A model without room is waited for, while the task has time.
    ///
    /// # Errors
    /// Only a mistake in the program.
    pub fn run(&self, question: &str, tools: &[ToolSpec], options: &RunOptions) -> Result<Task, LocalError> {
        Ok(self.run_logged(question, tools, options)?.0)
    }

    /// The same, with the events that the task was folded from.
    ///
    /// # Errors
    /// Only a mistake in the program.
    pub fn run_logged(&self, question: &str, tools: &[ToolSpec], options: &RunOptions) -> Result<(Task, MemoryLog), LocalError> {
        let submitted = Submitted {
            question: question.to_owned(),
            tools: tools.to_vec(),
            limits: options.limits,
            sampling: options.sampling,
            ..Submitted::default()
        };
        let members = Members {
            speaker: self.speaker.clone(),
            voices: self.voices.clone(),
            library: Arc::clone(&self.library),
            word_bias: options.word_bias.clone(),
        };
        let settings = DriverOptions { writer: WRITER.to_owned(), without_reflection: options.without_reflection };
        let key = TaskKey::new(Tenant::default(), TaskId::generate());
        Ok(futures::executor::block_on(async {
            let mut driver = Driver::begin(members.agents(), MemoryLog::default(), settings, &key, submitted).await?;
            drive(&mut driver).await?;
            Ok::<_, Stop<NeverFails>>(driver.into_parts())
        })?)
    }
}

/// Runs a task to its end, or to its answer.
async fn drive(driver: &mut Driver<MemoryLog>) -> Result<(), Stop<NeverFails>> {
    loop {
        match driver.step(std::future::pending()).await? {
            Progress::Advanced | Progress::Interrupted => {}
            Progress::Ended | Progress::Answered => return Ok(()),
            Progress::Waiting(failure) => match failure.class {
                // the call had all the time there was: the next decision ends the task
                FailureClass::Busy | FailureClass::TimedOut => {}
                _ => driver.fail(&failure.chain()).await?,
            },
        }
    }
}
