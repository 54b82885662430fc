//! The model calls of one question: seeds, bounds and costs.

use std::thread::sleep;
use std::time::{Duration, Instant};

use autoact_model::{Backend, GenerateError, GenerateRequest, Generated, Sampling as ModelSampling};
use autoact_prompt::{Expect, ParseError};
use autoact_speaker::{grammar, model_sampling};
use autoact_trajectory::Sampling;

use crate::form::Cut;
use crate::outcome::{Cost, Ended, Outcome};
use crate::planner::PlannerOptions;

/// Maximum pause before an overloaded model is called again.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The end of a planner without an answer.
#[derive(Debug)]
pub(crate) struct Halt(Ended);

impl Halt {
    pub(crate) fn max_steps() -> Halt {
        Halt(Ended::MaxSteps)
    }
}

impl From<Cut> for Halt {
    fn from(cut: Cut) -> Self {
        Halt(Ended::Failed(cut.to_string()))
    }
}

impl From<ParseError> for Halt {
    fn from(error: ParseError) -> Self {
        Halt(Ended::Failed(error.to_string()))
    }
}

/// The model calls of one question.
pub(crate) struct Session<'a> {
    backend: &'a dyn Backend,
    adapter: Option<&'a str>,
    options: &'a PlannerOptions,
    seed: u64,
    begun: Instant,
    cost: Cost,
}

impl<'a> Session<'a> {
    pub(crate) fn new(backend: &'a dyn Backend, adapter: Option<&'a str>, options: &'a PlannerOptions, seed: u64) -> Session<'a> {
        Session { backend, adapter, options, seed, begun: Instant::now(), cost: Cost::default() }
    }

    /// The model's reply to a prompt, constrained by a grammar.
    pub(crate) fn ask(&mut self, prompt: String, form: Expect) -> Result<String, Halt> {
        let limits = &self.options.limits;
        let deadline = self.begun + limits.max_time;
        if Instant::now() >= deadline {
            return Err(Halt(Ended::MaxTime));
        }
        if self.cost.completion_tokens >= u64::from(limits.max_tokens) {
            return Err(Halt(Ended::MaxTokens));
        }
        self.cost.calls += 1;
        let request = GenerateRequest {
            adapter: self.adapter.map(str::to_owned),
            grammar: Some(grammar(form.form)),
            max_tokens: form.max_tokens,
            sampling: self.sampling(),
            deadline: Some(deadline),
            ..GenerateRequest::new(prompt)
        };
        let generated = self.complete(&request, deadline)?;
        self.cost.prompt_tokens += generated.prompt_tokens as u64;
        self.cost.completion_tokens += generated.completion_tokens as u64;
        Ok(generated.text)
    }

    fn sampling(&self) -> ModelSampling {
        // the increment of splitmix64: successive calls get unrelated random numbers
        let seed = self.seed.wrapping_add(u64::from(self.cost.calls).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        model_sampling(Sampling { seed, ..self.options.sampling })
    }

    #[expect(clippy::disallowed_methods, reason = "the model says when it will have room, and nothing tells earlier")]
    fn complete(&self, request: &GenerateRequest, deadline: Instant) -> Result<Generated, Halt> {
        loop {
            match self.backend.generate(request.clone()).and_then(|stream| stream.blocking_finish()) {
                Err(GenerateError::Overloaded { retry_after }) if Instant::now() < deadline => sleep(retry_after.min(LONGEST_PAUSE)),
                Err(GenerateError::DeadlineExceeded | GenerateError::Overloaded { .. }) => return Err(Halt(Ended::MaxTime)),
                Err(error) => return Err(Halt(Ended::Failed(error.to_string()))),
                Ok(generated) => return Ok(generated),
            }
        }
    }

    /// The outcome of a planner that does not judge its answer.
    pub(crate) fn outcome(self, result: Result<String, Halt>, steps: u32, transcript: String) -> Outcome {
        let (answer, ended) = match result {
            Ok(answer) => (answer, Ended::Answered),
            Err(Halt(ended)) => (String::new(), ended),
        };
        self.close(answer, None, steps, transcript, ended)
    }

    /// The outcome of a planner that judges its answer: the last answer, whether it was approved,
    /// and why it ended.
    pub(crate) fn judged(self, answer: String, judged: Result<bool, Halt>, steps: u32, transcript: String) -> Outcome {
        let (approved, ended) = match judged {
            Ok(true) => (true, Ended::Approved),
            Ok(false) => (false, Ended::MaxReflections),
            Err(Halt(ended)) => (false, ended),
        };
        self.close(answer, Some(approved), steps, transcript, ended)
    }

    fn close(self, answer: String, approved: Option<bool>, steps: u32, transcript: String, ended: Ended) -> Outcome {
        let cost = Cost { time: self.begun.elapsed(), ..self.cost };
        Outcome { answer, approved, steps, judgements: Vec::new(), transcript, cost, ended }
    }
}
