//! The answers of a task that were judged, and how sure the agents were: from its events.

use crate::confidence::Evidence;
use crate::event::{Event, EventBody};
use crate::history::Verdict;
use crate::task::Task;
use crate::usage::Usage;

/// An answer that was judged.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedAnswer {
    /// `None`: that there is no answer.
    pub answer: Option<String>,
    /// The verdict, as it was stored: "right" only if the threshold was reached.
    pub approved: bool,
    /// The confidence, where the group has a calibration.
    pub confidence: Option<f64>,
    /// The confidence that an approval needed.
    pub threshold: Option<f64>,
    /// What the confidence is computed from.
    pub evidence: Option<Evidence>,
}

/// The judged answers of one task, in their order. It takes the task's events, one after the other.
#[derive(Debug, Default)]
pub struct JudgedAnswers {
    task: Option<Task>,
    /// An event could not be folded: what comes after it stays without evidence.
    broken: bool,
    all: Vec<JudgedAnswer>,
}

impl JudgedAnswers {
    /// Takes in the task's next event.
    pub fn take(&mut self, event: &Event) {
        if let EventBody::Reflection(reflection) = &event.body {
            let usage = event.usage.clone().unwrap_or_default();
            let (answer, evidence) = self.judged(reflection.log_odds, &usage);
            self.all.push(JudgedAnswer {
                answer,
                approved: reflection.verdict == Verdict::Right,
                confidence: reflection.confidence,
                threshold: reflection.threshold,
                evidence,
            });
        }
        self.broken |= match &mut self.task {
            Some(task) => task.apply(event).is_err(),
            none => {
                *none = Task::begin(event).ok();
                none.is_none()
            }
        };
    }

    /// An event is missing or unreadable: what comes after it stays without evidence.
    pub fn lose(&mut self) {
        self.broken = true;
    }

    /// The answer that is judged next, and how sure the agents were of it.
    fn judged(&self, log_odds: Option<f64>, usage: &Usage) -> (Option<String>, Option<Evidence>) {
        let Some(task) = self.task.as_ref().filter(|_| !self.broken) else { return (Some(String::new()), None) };
        let open = task.trajectory().open_step();
        let answer = open.and_then(|step| Some(task.trajectory().tool(&step.tool)?.answer(step.params.as_deref()?)));
        let answer = if task.no_answer().is_some() { None } else { Some(answer.unwrap_or_default()) };
        (answer, task.evidence(log_odds, usage))
    }

    /// All judged answers.
    pub fn into_all(self) -> Vec<JudgedAnswer> {
        self.all
    }
}
