//! AutoAct's group, and its ablations (table 2 of the paper).

use std::sync::Arc;
use std::time::Instant;

use autoact_in_process::{LocalGroup, RunOptions, Voices};
use autoact_model::Backend;
use autoact_prompt::transcript;
use autoact_trajectory::{Calibration, JudgedAnswers, Sampling, Turn};

use crate::outcome::{Cost, Ended, Outcome};
use crate::planner::{Planner, PlannerOptions};
use crate::toolbox::Toolbox;

/// Plan-Agent, Tool-Agent and Reflect-Agent in the planning loop that the services run.
pub(crate) struct GroupPlanner {
    pub(crate) name: &'static str,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) voices: Voices,
    pub(crate) calibration: Option<Calibration>,
    pub(crate) options: PlannerOptions,
}

impl Planner for GroupPlanner {
    fn name(&self) -> &'static str {
        self.name
    }

    fn solve(&self, question: &str, tools: &Toolbox, seed: u64) -> Outcome {
        let begun = Instant::now();
        let group = LocalGroup::new(Arc::clone(&self.backend), Arc::clone(tools.library()), self.voices.clone());
        let group = self.calibration.iter().fold(group, |group, calibration| group.calibrated(calibration.clone()));
        let sampling = Sampling { seed, ..self.options.sampling };
        let PlannerOptions { limits, next_attempt, judgements, .. } = self.options;
        let options = RunOptions { limits, sampling, next_attempt, judgements, ..RunOptions::default() };
        let (task, log) = match group.run_logged(question, tools.specs(), &options) {
            Ok(ended) => ended,
            Err(error) => {
                let ended = Ended::Failed(error.to_string());
                return Outcome {
                    answer: String::new(),
                    approved: None,
                    steps: 0,
                    judgements: Vec::new(),
                    transcript: String::new(),
                    cost: Cost::default(),
                    ended,
                };
            }
        };
        let mut judged = JudgedAnswers::default();
        log.events.iter().for_each(|event| judged.take(event));
        let calls = task.trajectory().turns.iter().map(|turn| match turn {
            Turn::Step(step) => 1 + u32::from(step.params.is_some()),
            Turn::Reflection(_) => 1,
        });
        Outcome {
            answer: task.best_answer().to_owned(),
            approved: (judgements != Some(0)).then(|| task.finished().is_some_and(|finished| finished.approved)),
            steps: task.steps(),
            judgements: judged.into_all(),
            transcript: transcript(task.trajectory()),
            cost: Cost {
                calls: calls.sum(),
                prompt_tokens: task.prompt_tokens(),
                completion_tokens: task.completion_tokens(),
                time: begun.elapsed(),
            },
            ended: Ended::of(&task),
        }
    }
}
