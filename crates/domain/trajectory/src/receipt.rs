//! Receipts: what is known of the effects of a task's steps, beside its events.
//!
//! A tool that changes the world leaves two records of its step: a claim before it runs, and its
//! outcome afterwards. Whoever takes a task over raises its epoch first, with a fence: what an older
//! holder asks is refused from then on. All records of a task are in one order, and each is stored
//! only if the last one is still the one that its writer knows; so of two that want to run the same
//! step one claims it, and no claim of an older holder follows a fence.

use std::collections::BTreeMap;
use std::time::SystemTime;

use crate::artifact::NewArtifact;
use crate::digest::Digest;
use crate::event::Observation;

/// A record of a task's effects.
#[derive(Debug, Clone, PartialEq)]
pub enum Receipt {
    /// From here on, older holders of the task's lease start nothing.
    Fence {
        /// The oldest holder whose calls are run.
        epoch: u64,
    },
    /// A step is about to be run.
    Claim(Claim),
    /// A step was run.
    Outcome {
        /// The step.
        step: u32,
        /// What it came to.
        outcome: Outcome,
    },
    /// Something that this program does not know, written by a later one.
    Unknown,
}

/// Who runs a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The step.
    pub step: u32,
    /// The holder of the task's lease that asked for it.
    pub epoch: u64,
    /// SHA-256 of the action.
    pub action: Digest,
    /// When the tool has ended, one way or the other.
    pub until: SystemTime,
    /// Names this claim: no other has the same name.
    pub claimant: String,
}

/// What running a step came to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// What the group reads.
    pub observation: Observation,
    /// What comes with it for people.
    pub artifacts: Vec<NewArtifact>,
}

/// What may be done with a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Standing<'a> {
    /// Nobody has claimed it: it was not run.
    Free,
    /// Somebody has claimed it, and its outcome is not known: it may have been run, or be running.
    Claimed(&'a Claim),
    /// It was run.
    Done(&'a Outcome),
    /// A newer holder has taken the task over, at this epoch.
    Fenced(u64),
    /// It was claimed for another action.
    OtherAction,
}

/// The receipts of one task, folded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Receipts {
    epoch: u64,
    steps: BTreeMap<u32, Step>,
}

#[derive(Debug, Clone, PartialEq)]
struct Step {
    claim: Claim,
    outcome: Option<Outcome>,
}

impl Receipts {
    /// Takes in the next record.
    pub fn apply(&mut self, receipt: Receipt) {
        match receipt {
            Receipt::Fence { epoch } => self.epoch = self.epoch.max(epoch),
            Receipt::Claim(claim) => match self.steps.get_mut(&claim.step) {
                // what was done stays done
                Some(step) if step.outcome.is_some() => {}
                // a tool that may be run again was claimed again
                Some(step) => step.claim = claim,
                None => {
                    self.steps.insert(claim.step, Step { claim, outcome: None });
                }
            },
            Receipt::Outcome { step, outcome } => {
                if let Some(step) = self.steps.get_mut(&step) {
                    step.outcome.get_or_insert(outcome);
                }
            }
            Receipt::Unknown => {}
        }
    }

    /// What the holder with this epoch may do with a step.
    pub fn standing(&self, step: u32, epoch: u64, action: &Digest) -> Standing<'_> {
        if epoch < self.epoch {
            return Standing::Fenced(self.epoch);
        }
        match self.steps.get(&step) {
            None => Standing::Free,
            Some(step) if step.claim.action != *action => Standing::OtherAction,
            Some(Step { outcome: Some(outcome), .. }) => Standing::Done(outcome),
            Some(step) => Standing::Claimed(&step.claim),
        }
    }

    /// Whether anybody has claimed a step: it may have been run.
    pub fn was_begun(&self, step: u32) -> bool {
        self.steps.contains_key(&step)
    }

    /// The oldest holder whose calls are run.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Steps that were claimed and whose outcome is not known.
    pub fn open(&self) -> impl Iterator<Item = &Claim> {
        self.steps.values().filter(|step| step.outcome.is_none()).map(|step| &step.claim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ACTION: Digest = Digest([7; 32]);

    fn claim(step: u32, epoch: u64, claimant: usize) -> Claim {
        Claim { step, epoch, action: ACTION, until: SystemTime::UNIX_EPOCH, claimant: claimant.to_string() }
    }

    fn outcome(text: &str) -> Outcome {
        Outcome { observation: Observation { text: text.to_owned(), ..Observation::default() }, artifacts: Vec::new() }
    }

    #[test]
    fn a_step_is_free_then_claimed_then_done() {
        let mut receipts = Receipts::default();
        assert_eq!(receipts.standing(1, 0, &ACTION), Standing::Free);
        receipts.apply(Receipt::Claim(claim(1, 1, 0)));
        assert_eq!(receipts.standing(1, 2, &ACTION), Standing::Claimed(&claim(1, 1, 0)));
        assert_eq!(receipts.standing(1, 2, &Digest([8; 32])), Standing::OtherAction);
        receipts.apply(Receipt::Fence { epoch: 2 });
        assert_eq!(receipts.standing(1, 1, &ACTION), Standing::Fenced(2));
        assert_eq!(receipts.open().count(), 1);
        // what ran is done, whoever asked for it
        receipts.apply(Receipt::Outcome { step: 1, outcome: outcome("sent") });
        assert_eq!(receipts.standing(1, 2, &ACTION), Standing::Done(&outcome("sent")));
        receipts.apply(Receipt::Outcome { step: 1, outcome: outcome("again") });
        receipts.apply(Receipt::Claim(claim(1, 3, 1)));
        assert_eq!(receipts.standing(1, 3, &ACTION), Standing::Done(&outcome("sent")));
        assert_eq!(receipts.open().count(), 0);
    }

    /// One that wants a side effect done: it reads the records, claims, runs and records. It may
    /// stop anywhere for as long as it likes.
    #[derive(Debug, Clone, Default)]
    struct Worker {
        epoch: u64,
        /// How many records it has read.
        read: usize,
        claimed: bool,
        ended: bool,
    }

    /// Records that are stored only after the one that their writer knows, as the bus does it.
    fn append(log: &mut Vec<Receipt>, read: usize, receipt: Receipt) -> bool {
        if log.len() == read {
            log.push(receipt);
            return true;
        }
        false
    }

    fn fold(log: &[Receipt]) -> Receipts {
        let mut receipts = Receipts::default();
        log.iter().cloned().for_each(|receipt| receipts.apply(receipt));
        receipts
    }

    proptest! {
        /// Holders and replicas in any order, each stopped at any point and gone on later: a step
        /// is run once at most, and never for a holder that was fenced off before it claimed.
        #[test]
        fn of_all_that_want_a_step_one_runs_it(turns in prop::collection::vec((0usize..4, any::<bool>()), 1..80)) {
            let mut log = Vec::new();
            let mut workers: Vec<Worker> = (0..4).map(|at| Worker { epoch: 1 + at / 2, ..Worker::default() }).collect();
            let mut runs = Vec::new();
            for (at, fences) in turns {
                let worker = &mut workers[at];
                if worker.ended {
                    continue;
                }
                if fences {
                    let known = fold(&log).epoch();
                    if worker.epoch > known {
                        log.push(Receipt::Fence { epoch: worker.epoch });
                    }
                    continue;
                }
                if worker.claimed {
                    runs.push((worker.epoch, at));
                    log.push(Receipt::Outcome { step: 1, outcome: outcome("done") });
                    worker.ended = true;
                    continue;
                }
                if worker.read < log.len() {
                    // reading takes a turn, so that others come between
                    worker.read = log.len();
                    continue;
                }
                let receipts = fold(&log[..worker.read]);
                match receipts.standing(1, worker.epoch, &ACTION) {
                    Standing::Free => {
                        let claimed = append(&mut log, worker.read, Receipt::Claim(claim(1, worker.epoch, at)));
                        worker.claimed = claimed;
                        if claimed {
                            prop_assert!(worker.epoch >= receipts.epoch());
                        }
                    }
                    _ => worker.ended = true,
                }
            }
            prop_assert!(runs.len() <= 1, "{runs:?}");
            let receipts = fold(&log);
            prop_assert_eq!(receipts.open().count() == 0, workers.iter().all(|worker| !worker.claimed || worker.ended));
        }
    }
}
