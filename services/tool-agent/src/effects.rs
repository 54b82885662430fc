//! Effects at most once, over all processes that run tools: a step is claimed on the bus before it
//! is run, and its outcome is recorded there afterwards.

use std::time::{Duration, Instant, SystemTime};

use autoact_bus::{BusConfig, BusError, ReceiptBook};
use autoact_service::Tasks;
use autoact_trajectory::{Action, Claim, Effect, Outcome, Receipt, Standing, TaskKey};
use autoact_wire::receipt::action_digest;
use tokio::sync::OnceCell;

use crate::error::ExecuteError;

/// How long the bus is waited for before a step is run. The caller asks again.
const CLAIM_PATIENCE: Duration = Duration::from_secs(5);
/// How long a caller waits for the receipt of what was run. Storing it goes on without them.
const RECORD_WAIT: Duration = Duration::from_secs(2);
/// How often the receipt of a step is looked for that somebody else runs.
const LOOK: Duration = Duration::from_millis(50);

/// What is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) task: TaskKey,
    pub(crate) step: u32,
    pub(crate) epoch: u64,
    pub(crate) action: Action,
    pub(crate) effect: Effect,
    /// The action may have been run before.
    pub(crate) may_have_run: bool,
    /// How long the tool may take, its ending included.
    pub(crate) limit: Duration,
    /// When the caller stops waiting.
    pub(crate) deadline: Option<Instant>,
}

/// Whether a step is run.
#[derive(Debug)]
pub(crate) enum Permit {
    /// It is ours to run.
    Run(Box<Claimed>),
    /// It was run.
    Done(Box<Outcome>),
    /// It may have been run, and nobody knows what it came to.
    Unknown,
}

/// A step that is ours; without receipts there is no book.
#[derive(Debug)]
pub(crate) struct Claimed {
    book: Option<(ReceiptBook, u64)>,
    asked: Asked,
}

/// The receipts of this process.
pub(crate) struct Effects {
    /// Where they are kept; `None`: they are not.
    config: Option<BusConfig>,
    book: OnceCell<ReceiptBook>,
    tasks: Tasks,
}

impl Effects {
    /// Receipts at `config`, or none.
    pub(crate) fn new(config: Option<BusConfig>, tasks: Tasks) -> Effects {
        let config = config.map(|config| BusConfig { patience: CLAIM_PATIENCE, ..config });
        Effects { config, book: OnceCell::new(), tasks }
    }

    /// Whether a step is run here and now. Waits for one that somebody else may be running, at most
    /// for as long as the tool may take.
    pub(crate) async fn claim(&self, asked: Asked) -> Result<Permit, ExecuteError> {
        let Some(config) = &self.config else {
            let unknown = asked.may_have_run && asked.effect == Effect::SideEffect;
            return Ok(if unknown { Permit::Unknown } else { Permit::Run(Box::new(Claimed { book: None, asked })) });
        };
        let book = self.book.get_or_try_init(|| ReceiptBook::connect(config)).await?;
        let (action, claimant) = (action_digest(&asked.action), uuid::Uuid::new_v4().simple().to_string());
        let waited = Instant::now() + asked.limit;
        loop {
            let known = book.read(&asked.task).await?;
            match known.receipts.standing(asked.step, asked.epoch, &action) {
                Standing::Fenced(newer) => return Err(asked.fenced(newer)),
                Standing::OtherAction => return Err(ExecuteError::ClaimedForOther { task: asked.task.to_string(), step: asked.step }),
                Standing::Done(outcome) => {
                    count("reused");
                    return Ok(Permit::Done(Box::new(outcome.clone())));
                }
                // stored, although its acknowledgement was lost
                Standing::Claimed(claim) if claim.claimant == claimant => return Ok(asked.claimed(book, known.last)),
                Standing::Claimed(claim) if asked.effect == Effect::SideEffect => {
                    if claim.until <= SystemTime::now() || waited <= Instant::now() {
                        count("unknown");
                        return Ok(Permit::Unknown);
                    }
                    tokio::time::sleep(LOOK).await;
                }
                // one that may be run again is claimed again
                Standing::Free | Standing::Claimed(_) => {
                    asked.check_deadline()?;
                    let until = SystemTime::now() + asked.limit;
                    let claim = Claim { step: asked.step, epoch: asked.epoch, action, until, claimant: claimant.clone() };
                    match book.append(&asked.task, &Receipt::Claim(claim), known.last).await {
                        Ok(last) => return Ok(asked.claimed(book, last)),
                        // somebody was faster: look again
                        Err(BusError::Conflict { .. }) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
            }
        }
    }

    /// Records what a step came to. Returns when that is stored, or when the caller has waited long
    /// enough: storing goes on.
    pub(crate) async fn record(&self, claimed: Claimed, outcome: Outcome) {
        let Claimed { book: Some((book, last)), asked } = claimed else { return };
        let (stored, told) = tokio::sync::oneshot::channel();
        self.tasks.spawn_until_stopped("receipt", |_| async move {
            if let Err(error) = record(&book, last, &asked, outcome).await {
                tracing::warn!(task = %asked.task, step = asked.step, %error, "the outcome of an effect is not recorded");
                count("lost");
            }
            // an error means that nobody waits any more
            let _ = stored.send(());
        });
        let _ = tokio::time::timeout(RECORD_WAIT, told).await;
    }
}

async fn record(book: &ReceiptBook, mut last: u64, asked: &Asked, outcome: Outcome) -> Result<(), BusError> {
    let receipt = Receipt::Outcome { step: asked.step, outcome };
    loop {
        match book.append(&asked.task, &receipt, last).await {
            Ok(_) => return Ok(()),
            Err(BusError::Conflict { .. }) => {}
            Err(error) => return Err(error),
        }
        // a fence, another step, or ours already
        let known = book.read(&asked.task).await?;
        if known.receipts.open().all(|claim| claim.step != asked.step) {
            return Ok(());
        }
        last = known.last;
    }
}

impl Asked {
    /// Refuses what nobody waits for any more.
    pub(crate) fn check_deadline(&self) -> Result<(), ExecuteError> {
        match self.deadline {
            Some(deadline) if deadline <= Instant::now() => Err(ExecuteError::Expired),
            _ => Ok(()),
        }
    }

    fn fenced(&self, newer: u64) -> ExecuteError {
        count("fenced");
        ExecuteError::StaleEpoch { task: self.task.to_string(), step: self.step, epoch: self.epoch, newer }
    }

    fn claimed(self, book: &ReceiptBook, last: u64) -> Permit {
        count("claimed");
        Permit::Run(Box::new(Claimed { book: Some((book.clone(), last)), asked: self }))
    }
}

fn count(result: &'static str) {
    metrics::counter!("autoact_receipts_total", "result" => result).increment(1);
}
