//! Reflexion (<https://arxiv.org/abs/2303.11366>): ReAct, a reflection on the attempt, and another
//! attempt with the reflection in its prompt.
//!
//! In the paper, Reflexion is told whether its answer is right. Otherwise no planner sees the gold
//! answer here, so the model judges its own answer.

use autoact_prompt::{Role, cue, parse_reflection};
use autoact_trajectory::{Reflection, Verdict};

use crate::form::role;
use crate::frame::{Desk, Speaker};
use crate::opening::opening;
use crate::outcome::Outcome;
use crate::planner::{Planner, PlannerOptions};
use crate::react;
use crate::session::Halt;
use crate::toolbox::Toolbox;

const JUDGE: &str = "A question was answered with tools. Write one thought on whether the observations support the answer and, if not, what \
                     the next attempt should do differently; then a verdict: right or wrong.";

/// ReAct with reflection on its own answers.
pub(crate) struct Reflexion(pub(crate) Speaker);

impl Planner for Reflexion {
    fn name(&self) -> &'static str {
        self.0.name
    }

    fn solve(&self, question: &str, tools: &Toolbox, seed: u64) -> Outcome {
        let mut desk = self.0.desk(question, tools, seed);
        let mut answer = String::new();
        let judged = attempts(&mut desk, &mut answer, None);
        let transcript = format!("{}{}", desk.before, desk.scratch.text());
        desk.session.judged(answer, judged, desk.scratch.rounds(), transcript)
    }

    fn solve_told(&self, question: &str, tools: &Toolbox, seed: u64, right: &dyn Fn(&str) -> bool) -> Outcome {
        let mut desk = self.0.desk(question, tools, seed);
        let mut answer = String::new();
        let told = attempts(&mut desk, &mut answer, Some(right));
        let transcript = format!("{}{}", desk.before, desk.scratch.text());
        // it did not judge for itself
        desk.session.outcome(told.map(|_| answer), desk.scratch.rounds(), transcript)
    }
}

/// Runs attempts until one is approved or the bound is reached: by the model's own verdict, or by
/// `right`. Returns whether the last one was approved; `answer` gets its answer.
fn attempts(desk: &mut Desk<'_>, answer: &mut String, right: Option<&dyn Fn(&str) -> bool>) -> Result<bool, Halt> {
    let prompt = react::prompt(desk);
    // the examples show steps and no judgements
    let judge = opening(JUDGE, desk.tools, &PlannerOptions { shots: 0, ..*desk.options }, |_| String::new());
    let mut lessons: Vec<Reflection> = Vec::new();
    loop {
        *answer = react::rounds(desk, &prompt)?;
        if right.is_some_and(|right| right(answer)) {
            return Ok(true);
        }
        let asked = format!("{judge}{}{}", desk.scratch.text(), cue(Role::Reflect));
        let (thought, verdict) = parse_reflection(&desk.session.ask(asked, role(Role::Reflect, desk.tools.specs()))?)?;
        // what it was told outweighs what it says itself
        let verdict = if right.is_some() { Verdict::Wrong } else { verdict };
        let reflection = Reflection::new(thought, verdict);
        desk.scratch.reflect(reflection.clone());
        if verdict == Verdict::Right {
            return Ok(true);
        }
        lessons.push(reflection);
        if lessons.len() >= desk.options.limits.max_reflections as usize {
            return Ok(false);
        }
        desk.before.push_str(&desk.scratch.text());
        desk.before.push('\n');
        desk.scratch.restart(&lessons);
    }
}
