//! The planning loop in one process.

use std::sync::Arc;

use autoact_model::{Backend, WordBias};
use autoact_planning::{Driver, DriverOptions, FailureClass, MemoryLog, NeverFails, Progress, Stop};
use autoact_speaker::{SpeakError, SpeakRequest, Speaker, reflection};
use autoact_tools::ToolLibrary;
use autoact_trajectory::{
    Calibration, FoldError, Limits, NextAttempt, Reflection, Role, Sampling, Submitted, Task, TaskContext, TaskId, TaskKey, Tenant,
    ToolSpec, Trajectory,
};

use crate::guide::Guide;
use crate::members::Members;
use crate::voices::Voices;

/// The writer that events of a task in this process name.
const WRITER: &str = "local";

/// Options of a task.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// The task's bounds.
    pub limits: Limits,
    /// Sampling parameters. The seed of each call is derived from this seed.
    pub sampling: Sampling,
    /// After how many verdicts "wrong" Reflect-Agent is no longer called: the task is returned
    /// unfinished, with the next answer in its last step. 0: with the first one. `None`: every answer
    /// is judged.
    pub judgements: Option<u32>,
    /// What is known beside the question.
    pub context: TaskContext,
    /// Logit bias on words, for Plan-Agent only.
    pub word_bias: Vec<WordBias>,
    /// What chooses among proposals of Plan-Agent and Tool-Agent; `None`: there is one of each.
    pub guide: Option<Arc<dyn Guide>>,
    /// What the agents are given after a judgement "wrong"; `None`: what the calibration says.
    pub next_attempt: Option<NextAttempt>,
}

/// A failure of the planning loop itself, not of the model: a bug in this program.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// An event does not fit the task's state.
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
    calibration: Option<Arc<Calibration>>,
}

impl LocalGroup {
    /// A group over a backend in which the adapters named by `voices` are loaded. If the model has
    /// a chat template, it is used.
    pub fn new(backend: Arc<dyn Backend>, library: Arc<ToolLibrary>, voices: Voices) -> LocalGroup {
        LocalGroup { speaker: Speaker::new(backend), library, voices, calibration: None }
    }

    /// The same group, whose approvals need a confidence.
    #[must_use]
    pub fn calibrated(self, calibration: Calibration) -> LocalGroup {
        LocalGroup { calibration: Some(Arc::new(calibration)), ..self }
    }

    /// The tool library.
    pub fn library(&self) -> &ToolLibrary {
        &self.library
    }

    /// What Reflect-Agent says of a history that ends in an answer, greedily, with its own adapter.
    /// It blocks the thread like [`LocalGroup::run`].
    ///
    /// # Errors
    /// If the model fails, or its reply has no verdict.
    pub fn reflect(&self, trajectory: &Trajectory) -> Result<Reflection, SpeakError> {
        let request = SpeakRequest { adapter: self.voices.of(Role::Reflect), ..SpeakRequest::new(Role::Reflect, trajectory) };
        let reply = futures::executor::block_on(self.speaker.reply(&request))?;
        Ok(reflection(&reply)?)
    }

    /// Runs a question with the given tools until the task ends. It blocks the thread, so it must
    /// not be called from an async task. If the model fails (a prompt too long, an invalid reply),
    /// the task ends as failed and states the cause, as in the gateway. If the model is overloaded,
    /// the call is repeated while the task has time.
    ///
    /// # Errors
    /// Only a bug in this program.
    pub fn run(&self, question: &str, tools: &[ToolSpec], options: &RunOptions) -> Result<Task, LocalError> {
        Ok(self.run_logged(question, tools, options)?.0)
    }

    /// [`LocalGroup::run`], which also returns the events.
    ///
    /// # Errors
    /// Only a bug in this program.
    pub fn run_logged(&self, question: &str, tools: &[ToolSpec], options: &RunOptions) -> Result<(Task, MemoryLog), LocalError> {
        let submitted = Submitted {
            question: question.to_owned(),
            tools: tools.to_vec(),
            limits: options.limits,
            sampling: options.sampling,
            context: Box::new(options.context.clone()),
            next_attempt: options.next_attempt,
            ..Submitted::default()
        };
        let members = Members {
            speaker: self.speaker.clone(),
            voices: self.voices.clone(),
            library: Arc::clone(&self.library),
            word_bias: options.word_bias.clone(),
            guide: options.guide.clone(),
            calibration: self.calibration.clone(),
        };
        let settings = DriverOptions { writer: WRITER.to_owned(), judgements: options.judgements };
        let key = TaskKey::new(Tenant::default(), TaskId::generate());
        Ok(futures::executor::block_on(async {
            let mut driver = Driver::begin(members.agents(), MemoryLog::default(), settings, &key, submitted).await?;
            drive(&mut driver).await?;
            Ok::<_, Stop<NeverFails>>(driver.into_parts())
        })?)
    }
}

/// Runs a task until it ends, or until an answer that is not judged.
async fn drive(driver: &mut Driver<MemoryLog>) -> Result<(), Stop<NeverFails>> {
    loop {
        match driver.step(std::future::pending()).await? {
            Progress::Advanced | Progress::Interrupted => {}
            Progress::Ended | Progress::Answered => return Ok(()),
            Progress::Held => driver.fail("it waits for a person, and nobody can answer here").await?,
            Progress::Waiting(failure) => match failure.class {
                // the call used all of the task's time, so the next decision ends the task
                FailureClass::Busy | FailureClass::TimedOut => {}
                _ => driver.fail(&failure.chain()).await?,
            },
        }
    }
}
