//! A question's history while a planner works on it, and the tools that add to it.

use autoact_prompt::transcript;
use autoact_trajectory::{Action, REPEATED_NOTE, Reflection, Step, Trajectory, Turn};

use crate::session::Halt;
use crate::toolbox::Toolbox;

/// A history that grows.
pub(crate) struct Scratch<'a> {
    tools: &'a Toolbox,
    trajectory: Trajectory,
    /// Planning rounds so far, of earlier attempts too.
    rounds: u32,
    most: u32,
}

impl<'a> Scratch<'a> {
    /// Nothing but the question; `most` rounds.
    pub(crate) fn new(question: &str, tools: &'a Toolbox, most: u32) -> Scratch<'a> {
        let trajectory = Trajectory { question: question.to_owned(), tools: tools.specs().to_vec(), ..Trajectory::default() };
        Scratch { tools, trajectory, rounds: 0, most }
    }

    /// The history so far.
    pub(crate) fn text(&self) -> String {
        transcript(&self.trajectory)
    }

    pub(crate) fn trajectory(&self) -> &Trajectory {
        &self.trajectory
    }

    pub(crate) fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Forgets the steps and begins anew with what was learnt.
    pub(crate) fn restart(&mut self, lessons: &[Reflection]) {
        self.trajectory.turns = lessons.iter().cloned().map(Turn::Reflection).collect();
    }

    /// Begins a round: a thought and a tool, whose input is still to come.
    pub(crate) fn choose(&mut self, thought: String, tool: String) -> Result<(), Halt> {
        if self.rounds >= self.most {
            return Err(Halt::max_steps());
        }
        self.rounds += 1;
        self.trajectory.turns.push(Turn::Step(Step { thought, tool, params: None, observation: None }));
        Ok(())
    }

    /// Gives the open round its input and runs it. The answer, if the tool is the one that answers.
    pub(crate) fn run(&mut self, input: String) -> Option<String> {
        let before = self.trajectory.steps().rev().nth(1).and_then(Step::action);
        let Some(Turn::Step(step)) = self.trajectory.turns.last_mut() else { return None };
        step.params = Some(input.clone());
        let action = Action { tool: step.tool.clone(), params: input };
        if self.tools.is_finish(&action.tool) {
            return Some(action.params);
        }
        let seen = self.tools.library().execute(&action, &self.trajectory).text;
        let seen = if before.as_ref() == Some(&action) { format!("{REPEATED_NOTE} {seen}") } else { seen };
        if let Some(Turn::Step(step)) = self.trajectory.turns.last_mut() {
            step.observation = Some(seen);
        }
        None
    }

    /// Whether another round is allowed.
    pub(crate) fn check(&self) -> Result<(), Halt> {
        if self.rounds >= self.most { Err(Halt::max_steps()) } else { Ok(()) }
    }

    /// Adds a judgement.
    pub(crate) fn reflect(&mut self, reflection: Reflection) {
        self.trajectory.turns.push(Turn::Reflection(reflection));
    }
}
