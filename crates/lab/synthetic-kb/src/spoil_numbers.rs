//! Wrong calculations: another operator, the opposite sign, numbers in the wrong order.

use autoact_base::random::Rng;
use autoact_trajectory::{Step, Trajectory, Turn};

use crate::base::Fact;
use crate::fault::Fault;
use crate::question::{Question, QuestionPlan};
use crate::solve::{CALCULATE, Environment, Solver, digits, finish_step, resolve};
use crate::spoil::set_answer;
use crate::text::say;
use crate::walk::Walk;

impl Solver<'_> {
    /// Calculates with another operator.
    pub(crate) fn wrong_operator(
        &self,
        question: &Question,
        expression: &str,
        env: &mut dyn Environment,
        rng: &mut Rng,
    ) -> Option<Trajectory> {
        let others: Vec<&str> = ["+", "-", "*", ">", "<"].into_iter().filter(|sign| !expression.contains(&format!(" {sign} "))).collect();
        let compares = expression.contains([' ', '>', '<']) && question.answer.parse::<f64>().is_err();
        let others: Vec<&str> = others.into_iter().filter(|sign| matches!(*sign, ">" | "<") == compares).collect();
        let sign = rng.pick(&others)?;
        let parts: Vec<&str> = expression.splitn(3, ' ').collect();
        let [a, _, b] = parts.as_slice() else { return None };
        let wrong = format!("{a} {sign} {b}");
        let mut walk = self.begin(question, env);
        walk.think(self.style.compute, &[("a", &wrong)]);
        let seen = walk.act(CALCULATE, &wrong);
        let answer = match seen.as_str() {
            "true" => "yes",
            "false" => "no",
            other => other,
        };
        walk.think(self.style.so, &[("v", answer)]);
        let thought = std::mem::take(&mut walk.thought);
        walk.trajectory.turns.push(finish_step(thought, answer));
        Some(walk.trajectory)
    }

    /// Compares the right numbers with the opposite sign.
    pub(crate) fn wrong_sign(
        &self,
        question: &Question,
        a: &str,
        b: &str,
        more: bool,
        gold: &Trajectory,
        env: &mut dyn Environment,
    ) -> Option<Trajectory> {
        let chain = resolve(self.base, question).ok()?;
        let (first, second) = (self.base.find(a)?, self.base.find(b)?);
        let (x, y) = (*self.base.follow(first, &chain)?.last()?, *self.base.follow(second, &chain)?.last()?);
        let calculated = gold.turns.iter().rposition(|turn| matches!(turn, Turn::Step(step) if step.tool == CALCULATE))?;
        let Turn::Step(Step { thought, .. }) = &gold.turns[calculated] else { return None };
        let (right, wrong, sign) = if more { ("more", "less", "<") } else { ("less", "more", ">") };
        let slots = [("a", digits(x)), ("b", digits(y)), ("op", wrong), ("sign", sign)];
        let gold_sign = if more { ">" } else { "<" };
        let asked = say(self.style.whether, &[("a", digits(x)), ("b", digits(y)), ("op", right), ("sign", gold_sign)]);
        let trajectory = Trajectory { turns: gold.turns[..calculated].to_vec(), ..gold.clone() };
        let thought = thought.replace(&asked, &say(self.style.whether, &slots));
        let mut walk = Walk { trajectory, thought, ..self.begin(question, env) };
        let outcome = walk.act(CALCULATE, &format!("{} {sign} {}", digits(x), digits(y)));
        let holds = outcome.to_lowercase().contains("true");
        walk.think(if holds { self.style.holds } else { self.style.fails }, &slots);
        let answer = match &question.plan {
            QuestionPlan::Compare { .. } => (if holds { a } else { b }).to_owned(),
            _ => (if holds { "yes" } else { "no" }).to_owned(),
        };
        walk.think(self.style.so, &[("v", &answer)]);
        let thought = std::mem::take(&mut walk.thought);
        walk.trajectory.turns.push(finish_step(thought, &answer));
        Some(walk.trajectory)
    }

    /// Takes the numbers from each other in the wrong order, or answers with one of them.
    pub(crate) fn wrong_difference(
        &self,
        question: &Question,
        gold: &Trajectory,
        fault: Fault,
        env: &mut dyn Environment,
    ) -> Option<Trajectory> {
        let gap = self.base.gap(question)?;
        let [from, take] = gap.terms();
        let mut trajectory = gold.clone();
        if fault == Fault::OtherValue {
            set_answer(&mut trajectory, &from.text)?;
            return Some(trajectory);
        }
        let calculated = gold.turns.iter().rposition(|turn| matches!(turn, Turn::Step(step) if step.tool == CALCULATE))?;
        let Turn::Step(Step { thought, .. }) = &gold.turns[calculated] else { return None };
        let asked = |a: &Fact, b: &Fact| say(self.style.minus, &[("a", a.text.as_str()), ("b", b.text.as_str())]);
        let thought = thought.replace(&asked(from, take), &asked(take, from));
        trajectory.turns.truncate(calculated);
        let mut walk = Walk { trajectory, thought, ..self.begin(question, env) };
        let outcome = walk.act(CALCULATE, &format!("{} - {}", take.text, from.text));
        walk.think(self.style.gap, &[("a", &take.text), ("b", &from.text), ("v", &outcome)]);
        walk.think(self.style.so, &[("v", &outcome)]);
        let thought = std::mem::take(&mut walk.thought);
        walk.trajectory.turns.push(finish_step(thought, &outcome));
        Some(walk.trajectory)
    }
}
