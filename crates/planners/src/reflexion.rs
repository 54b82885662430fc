//! Reflexion: ReAct, a judgement of the attempt in words, and another attempt that has read it.
//!
//! The paper's Reflexion is told whether its answer is right. No planner here sees the gold answer: this one judges for itself, as it would
//! have to at work.

use std::sync::Arc;

use autoact_model::Backend;
use autoact_prompt::{Role, cue, parse_reflection};
use autoact_trajectory::{Reflection, Verdict};

use crate::form::role;
use crate::opening::opening;
use crate::outcome::Outcome;
use crate::planner::{Planner, PlannerOptions};
use crate::react;
use crate::scratch::Scratch;
use crate::session::{Halt, Session};
use crate::toolbox::Toolbox;

const JUDGE: &str = "A question was answered with tools. Write one thought on whether the observations support the answer and, if not, what \
                     the next attempt should do differently; then a verdict: right or wrong.";

/// ReAct that learns from its own judgement.
pub(crate) struct Reflexion {
    pub(crate) name: &'static str,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) options: PlannerOptions,
}

impl Planner for Reflexion {
    fn name(&self) -> &'static str {
        self.name
    }

    fn solve(&self, question: &str, tools: &Toolbox, seed: u64) -> Outcome {
        let mut run = Run {
            session: Session::new(self.backend.as_ref(), None, &self.options, seed),
            scratch: Scratch::new(question, tools, self.options.limits.max_steps),
            answer: String::new(),
            before: String::new(),
        };
        let judged = run.attempts(tools, &self.options);
        let transcript = format!("{}{}", run.before, run.scratch.text());
        run.session.judged(run.answer, judged, run.scratch.rounds(), transcript)
    }
}

struct Run<'a> {
    session: Session<'a>,
    scratch: Scratch<'a>,
    answer: String,
    /// The transcripts of earlier attempts.
    before: String,
}

impl Run<'_> {
    /// Whether an attempt was approved before they ran out.
    fn attempts(&mut self, tools: &Toolbox, options: &PlannerOptions) -> Result<bool, Halt> {
        let prompt = react::prompt(tools, options);
        // examples show how to act, not how to judge
        let judge = opening(JUDGE, tools, &PlannerOptions { shots: 0, ..*options }, |_| String::new());
        let mut lessons: Vec<Reflection> = Vec::new();
        loop {
            self.answer = react::rounds(&mut self.session, &mut self.scratch, tools, &prompt)?;
            let asked = format!("{judge}{}{}", self.scratch.text(), cue(Role::Reflect));
            let (thought, verdict) = parse_reflection(&self.session.ask(asked, role(Role::Reflect, tools.specs()))?)?;
            let reflection = Reflection { thought, verdict };
            self.scratch.reflect(reflection.clone());
            if verdict == Verdict::Right {
                return Ok(true);
            }
            lessons.push(reflection);
            if lessons.len() >= options.limits.max_reflections as usize {
                return Ok(false);
            }
            self.before.push_str(&self.scratch.text());
            self.before.push('\n');
            self.scratch.restart(&lessons);
        }
    }
}
