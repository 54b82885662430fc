//! The history of a question while a planner runs, and the tools that extend it.

use autoact_prompt::transcript;
use autoact_trajectory::{Action, REPEATED_NOTE, Reflection, Step, Trajectory, Turn};

use crate::session::Halt;
use crate::toolbox::Toolbox;

/// A growing history.
pub(crate) struct Scratch<'a> {
    tools: &'a Toolbox,
    trajectory: Trajectory,
    /// Number of rounds so far, including earlier attempts.
    rounds: u32,
    most: u32,
}

impl<'a> Scratch<'a> {
    /// A history with the question only, for at most `most` rounds.
    pub(crate) fn new(question: &str, tools: &'a Toolbox, most: u32) -> Scratch<'a> {
        let trajectory = Trajectory { question: question.to_owned(), tools: tools.specs().to_vec(), ..Trajectory::default() };
        Scratch { tools, trajectory, rounds: 0, most }
    }

    /// The transcript so far.
    pub(crate) fn text(&self) -> String {
        transcript(&self.trajectory)
    }

    pub(crate) fn trajectory(&self) -> &Trajectory {
        &self.trajectory
    }

    pub(crate) fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Removes all steps and starts again with the reflections.
    pub(crate) fn restart(&mut self, lessons: &[Reflection]) {
        self.trajectory.turns = lessons.iter().cloned().map(Turn::Reflection).collect();
    }

    /// Begins a round with a thought and a tool, without its input.
    pub(crate) fn choose(&mut self, thought: String, tool: String) -> Result<(), Halt> {
        if self.rounds >= self.most {
            return Err(Halt::max_steps());
        }
        self.rounds += 1;
        self.trajectory.turns.push(Turn::Step(Step { thought, tool, ..Step::default() }));
        Ok(())
    }

    /// Sets the input of the current round and runs its tool. Returns the answer if the tool is
    /// terminal: an empty one if the tool says that there is none.
    pub(crate) fn run(&mut self, input: String) -> Option<String> {
        let before = self.trajectory.steps().rev().nth(1).and_then(Step::action);
        let Some(Turn::Step(step)) = self.trajectory.turns.last_mut() else { return None };
        step.params = Some(input.clone());
        let action = Action { tool: step.tool.clone(), params: input };
        if self.tools.is_finish(&action.tool) {
            let answers = self.tools.specs().iter().any(|spec| spec.is_answer() && spec.name == action.tool);
            return Some(if answers { action.params } else { String::new() });
        }
        let seen = self.tools.library().execute(&action, &self.trajectory).text;
        let seen = if before.as_ref() == Some(&action) { format!("{REPEATED_NOTE} {seen}") } else { seen };
        if let Some(Turn::Step(step)) = self.trajectory.turns.last_mut() {
            step.observation = Some(seen);
        }
        None
    }

    /// Fails if no further round is allowed.
    pub(crate) fn check(&self) -> Result<(), Halt> {
        if self.rounds >= self.most { Err(Halt::max_steps()) } else { Ok(()) }
    }

    /// Adds a reflection.
    pub(crate) fn reflect(&mut self, reflection: Reflection) {
        self.trajectory.turns.push(Turn::Reflection(reflection));
    }
}
