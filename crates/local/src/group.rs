//! The planning loop in one process.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use autoact_model::{Backend, GenerateError, Generated, Sampling as ModelSampling, WordBias};
use autoact_prompt::{ParseError, Role, parse_input, parse_plan, parse_reflection};
use autoact_tools::ToolLibrary;
use autoact_trajectory::{
    Action, Decision, Event, EventBody, FinishReason, FoldError, Limits, Reflection, Sampling, Started, Submitted, Task, TaskId, Thought,
    ToolSpec, Usage, decide,
};

use crate::speak::{Voices, say};

/// Who writes a local task's events.
const WRITER: &str = "local";

/// How a question is run.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// The task's bounds.
    pub limits: Limits,
    /// How the models decode; each call of a task draws from its own part of the seed.
    pub sampling: Sampling,
    /// Stop at the first answer, without asking Reflect-Agent: the task is returned unfinished, with the answer in its last step.
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

/// What ends a task as failed: the model could not speak.
#[derive(Debug, thiserror::Error)]
enum Mute {
    #[error(transparent)]
    Generate(#[from] GenerateError),
    #[error(transparent)]
    Reply(#[from] ParseError),
}

/// A model, its adapters by role, and tools.
#[derive(Clone)]
pub struct LocalGroup {
    backend: Arc<dyn Backend>,
    library: Arc<ToolLibrary>,
    voices: Voices,
}

impl LocalGroup {
    /// A group over a backend that has the voices' adapters.
    pub fn new(backend: Arc<dyn Backend>, library: Arc<ToolLibrary>, voices: Voices) -> LocalGroup {
        LocalGroup { backend, library, voices }
    }

    /// The tools it runs.
    pub fn library(&self) -> &ToolLibrary {
        &self.library
    }

    /// Runs a question with the tools selected for it, to its end. A model that cannot go on (a prompt too long, a reply cut short) ends
    /// the task as `failed`, as in the gateway; the task that comes back says why.
    ///
    /// # Errors
    /// Only a mistake in the program.
    pub fn run(&self, question: &str, tools: &[ToolSpec], options: &RunOptions) -> Result<Task, LocalError> {
        let submitted = Submitted {
            question: question.to_owned(),
            tools: tools.to_vec(),
            limits: options.limits,
            sampling: options.sampling,
            ..Submitted::default()
        };
        let id = TaskId::generate();
        let mut task = Task::begin(&event(&id, 1, EventBody::Submitted(submitted), None))?;
        self.append(&mut task, EventBody::Started(Started { gateway: WRITER.to_owned(), attempt: 1 }), None)?;
        loop {
            let decision = decide(&task, SystemTime::now());
            let next = match decision {
                Decision::Done => return Ok(task),
                Decision::Reflect if options.without_reflection => return Ok(task),
                Decision::Finish(finished) => Ok((EventBody::Finished(finished), None)),
                Decision::Observe(observation) => Ok((EventBody::Observation(observation), None)),
                Decision::Execute { action, .. } => Ok(self.execute(&task, &action)),
                Decision::Plan => self.plan(&task, options.word_bias.as_ref()),
                Decision::Parameterize => self.parameterize(&task),
                Decision::Reflect => self.reflect(&task),
            };
            let (body, usage) = next.unwrap_or_else(|error| {
                let finished = task.finish(FinishReason::Failed, error.to_string());
                (EventBody::Finished(finished), None)
            });
            if let Err(error) = self.append(&mut task, body, usage) {
                // a reply that was cut within a tool's name names no tool
                let finished = task.finish(FinishReason::Failed, error.to_string());
                self.append(&mut task, EventBody::Finished(finished), None)?;
            }
        }
    }

    fn append(&self, task: &mut Task, body: EventBody, usage: Option<Usage>) -> Result<(), FoldError> {
        let event = event(task.id(), task.next_index(), body, usage);
        task.apply(&event)
    }

    fn plan(&self, task: &Task, bias: Option<&WordBias>) -> Result<(EventBody, Option<Usage>), Mute> {
        let (text, usage) = self.say(Role::Plan, self.voices.of(Role::Plan), task, bias)?;
        let (thought, tool) = parse_plan(&text)?;
        Ok((EventBody::Thought(Thought { thought, tool }), Some(usage)))
    }

    fn parameterize(&self, task: &Task) -> Result<(EventBody, Option<Usage>), Mute> {
        let tool = task.trajectory().open_step().map(|step| step.tool.clone()).unwrap_or_default();
        let (text, usage) = self.say(Role::Tool, self.voices.of_tool(&tool), task, None)?;
        Ok((EventBody::Action(Action { tool, params: parse_input(&text)? }), Some(usage)))
    }

    fn reflect(&self, task: &Task) -> Result<(EventBody, Option<Usage>), Mute> {
        let (text, usage) = self.say(Role::Reflect, self.voices.of(Role::Reflect), task, None)?;
        let (thought, verdict) = parse_reflection(&text)?;
        Ok((EventBody::Reflection(Reflection { thought, verdict }), Some(usage)))
    }

    fn execute(&self, task: &Task, action: &Action) -> (EventBody, Option<Usage>) {
        let begun = Instant::now();
        let seen = self.library.execute(action, task.trajectory());
        let usage = Usage { tool: begun.elapsed(), total: begun.elapsed(), ..Usage::default() };
        (EventBody::Observation(task.observe(seen.text, seen.is_error, seen.truncated)), Some(usage))
    }

    fn say(&self, role: Role, voice: Option<&str>, task: &Task, bias: Option<&WordBias>) -> Result<(String, Usage), Mute> {
        let begun = Instant::now();
        let sampling = model_sampling(task.sampling(), task.next_index());
        let generated = say(self.backend.as_ref(), voice, role, task.trajectory(), sampling, bias)?;
        let usage = usage(&generated, begun);
        Ok((generated.text, usage))
    }
}

/// A task's decoding settings for its `index`th event.
fn model_sampling(sampling: &Sampling, index: u64) -> ModelSampling {
    ModelSampling {
        temperature: sampling.temperature,
        top_k: usize::try_from(sampling.top_k).ok().filter(|k| *k > 0),
        top_p: Some(sampling.top_p).filter(|p| *p > 0.0 && *p < 1.0),
        // odd multiplier of splitmix64: neighbouring events draw unrelated numbers
        seed: sampling.seed.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
    }
}

fn usage(generated: &Generated, begun: Instant) -> Usage {
    let count = |tokens: usize| u32::try_from(tokens).unwrap_or(u32::MAX);
    let adapter = generated.adapter.clone();
    Usage {
        queue: generated.queue,
        prefill: generated.prefill,
        decode: generated.decode,
        total: begun.elapsed(),
        prompt_tokens: count(generated.prompt_tokens),
        cached_prompt_tokens: count(generated.cached_prompt_tokens),
        completion_tokens: count(generated.completion_tokens),
        model: generated.model.clone(),
        adapter: adapter.as_ref().map(|adapter| adapter.name.clone()).unwrap_or_default(),
        adapter_digest: adapter.map(|adapter| adapter.digest).unwrap_or_default(),
        ..Usage::default()
    }
}

fn event(id: &TaskId, index: u64, body: EventBody, usage: Option<Usage>) -> Event {
    Event { task_id: id.clone(), index, time: SystemTime::now(), writer: WRITER.to_owned(), usage, timing: None, sequence: 0, body }
}
