//! Aggregates the results of a load's tasks.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::account::{Account, Tokens};
use crate::distribution::Durations;
use crate::phase::{Agent, Call, Phase};
use crate::seen::End;

/// Number of slices, about the width of a plot.
const SLICES: u32 = 100;
/// Maximum number of slices, however long the last tasks take.
const MOST_SLICES: usize = 10_000;
/// Maximum number of error messages in a report, by code.
const MOST_MESSAGES: usize = 3;

/// One task that has ended.
#[derive(Debug, Clone)]
pub struct Record {
    /// Its intended arrival, since the start of the load.
    pub arrived: Duration,
    /// Its end, since the start of the load.
    pub ended: Duration,
    /// The parts of its latency.
    pub account: Account,
    /// Its outcome.
    pub end: End,
    /// Whether its answer is right, if the right answer is known.
    pub right: Option<bool>,
    /// Whether a query of the memory service failed.
    pub recall_failed: bool,
}

/// A time slice of the load.
#[derive(Debug, Clone)]
pub struct Slice {
    /// Tasks with their intended arrival in it.
    pub arrived: u64,
    /// Tasks that finished in it.
    pub finished: u64,
    /// Tasks that failed in it.
    pub failed: u64,
    /// Maximum number of tasks in flight.
    pub in_flight: usize,
    /// Maximum number of arrivals that were due and not started.
    pub behind: usize,
    /// Latency of the tasks with their intended arrival in it.
    pub latency: Durations,
}

impl Default for Slice {
    fn default() -> Self {
        Slice { arrived: 0, finished: 0, failed: 0, in_flight: 0, behind: 0, latency: Durations::with_digits(2) }
    }
}

/// The results of a load so far.
#[derive(Debug, Clone, Default)]
pub struct Collected {
    warmup: Duration,
    /// Tasks started, including the warm-up.
    pub begun: u64,
    /// Tasks of the warm-up that ended.
    pub warmup_tasks: u64,
    /// Tasks in flight when the load was aborted.
    pub dropped: u64,
    /// When arrivals were stopped early, if they were.
    pub stopped_after: Option<Duration>,
    /// From the start to the end of the last task.
    pub took: Duration,
    /// When the last counted task ended.
    pub last_end: Duration,
    /// Latency of finished tasks, from the intended arrival.
    pub latency: Durations,
    /// Latency of finished tasks, from sending.
    pub from_sending: Durations,
    /// Duration of tasks that did not finish, from the intended arrival.
    pub failures: Durations,
    /// Time of finished tasks by agent.
    pub agents: BTreeMap<Agent, Durations>,
    /// Time of finished tasks by phase.
    pub phases: BTreeMap<Phase, Durations>,
    /// Time of finished tasks by agent and phase.
    pub parts: BTreeMap<(Agent, Phase), Durations>,
    /// Durations of single calls.
    pub calls: BTreeMap<Call, Durations>,
    /// Of all finished tasks: the sum of the parts, the time in no part, and the time in two parts.
    pub attributed: [Duration; 3],
    /// The lowest coverage of a single task.
    pub least_coverage: Option<f64>,
    /// Tokens by agent.
    pub tokens: BTreeMap<Agent, Tokens>,
    /// Number of tasks by number of steps.
    pub rounds: BTreeMap<u32, u64>,
    /// Number of verdicts.
    pub reflections: u64,
    /// Tasks with more than one attempt.
    pub taken_over: u64,
    /// Tasks whose stream broke and was resumed; each counts as one task.
    pub resumed: u64,
    /// Number of times that streams were resumed.
    pub reconnects: u64,
    /// Number of tasks by outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// Number of tasks by gRPC code.
    pub codes: BTreeMap<String, u64>,
    /// Some error messages by code.
    pub messages: BTreeMap<String, Vec<String>>,
    /// Number of scored answers, and of right ones.
    pub scored: (u64, u64),
    /// Number of failed queries of the memory service.
    pub recalls_failed: u64,
    /// Duration of a slice.
    pub slice: Duration,
    /// The slices, from the start on.
    pub slices: Vec<Slice>,
}

impl Collected {
    /// Empty results of a load with this planned duration.
    pub fn new(warmup: Duration, planned: Duration) -> Collected {
        let slice = Duration::from_secs_f64((planned / SLICES).as_secs_f64().ceil().max(1.0));
        Collected { warmup, slice, ..Collected::default() }
    }

    /// Numbers of finished and failed tasks, without the warm-up.
    pub fn counts(&self) -> (u64, u64) {
        (self.latency.count(), self.failures.count())
    }

    /// Adds a task.
    pub fn add(&mut self, record: Record) {
        let finished = record.end.finished().is_some();
        let ended = self.at(record.ended);
        if finished {
            ended.finished += 1;
        } else {
            ended.failed += 1;
        }
        let arrived = self.at(record.arrived);
        arrived.arrived += 1;
        if finished {
            arrived.latency.record(record.account.whole);
        }
        if record.arrived < self.warmup {
            self.warmup_tasks += 1;
            return;
        }
        self.last_end = self.last_end.max(record.ended);
        *self.outcomes.entry(record.end.outcome()).or_default() += 1;
        *self.codes.entry(record.end.code().to_owned()).or_default() += 1;
        self.messages(&record.end);
        // also for tasks that did not finish
        self.resumed += u64::from(record.account.reconnects > 0);
        self.reconnects += u64::from(record.account.reconnects);
        if !finished {
            self.failures.record(record.account.whole);
            return;
        }
        if let Some(right) = record.right {
            self.scored.0 += 1;
            self.scored.1 += u64::from(right);
        }
        self.recalls_failed += u64::from(record.recall_failed);
        self.account(&record.account);
    }

    fn messages(&mut self, end: &End) {
        let (code, message) = match end {
            End::Status { code, message } => (*code, message),
            End::Finished(finished) if finished.reason() == autoact_wire::v1::FinishReason::Failed => ("failed", &finished.detail),
            _ => return,
        };
        let messages = self.messages.entry(code.to_owned()).or_default();
        if messages.len() < MOST_MESSAGES && !messages.contains(message) {
            messages.push(message.clone());
        }
    }

    fn account(&mut self, account: &Account) {
        self.latency.record(account.whole);
        self.from_sending.record(account.from_sending);
        // a phase that a task did not have counts as zero, because the distributions are over tasks
        for agent in Agent::ALL {
            self.agents.entry(agent).or_default().record(account.at(agent));
        }
        for phase in Phase::ALL {
            self.phases.entry(phase).or_default().record(account.on(phase));
        }
        for (part, took) in &account.parts {
            self.parts.entry(*part).or_default().record(*took);
        }
        for (call, took) in &account.calls {
            self.calls.entry(*call).or_default().record(*took);
        }
        let whole = account.whole.as_secs_f64();
        let lost = account.unattributed() + account.overlap();
        let coverage = if whole > 0.0 { 1.0 - lost.as_secs_f64() / whole } else { 1.0 };
        self.least_coverage = Some(self.least_coverage.map_or(coverage, |least| least.min(coverage)));
        for (sum, one) in self.attributed.iter_mut().zip([account.attributed(), account.unattributed(), account.overlap()]) {
            *sum += one;
        }
        for (agent, tokens) in &account.tokens {
            let sum = self.tokens.entry(*agent).or_default();
            sum.calls += tokens.calls;
            sum.prompt += tokens.prompt;
            sum.cached += tokens.cached;
            sum.completion += tokens.completion;
        }
        *self.rounds.entry(account.rounds).or_default() += 1;
        self.reflections += u64::from(account.reflections);
        self.taken_over += u64::from(account.attempts > 1);
    }

    /// Records the number of tasks in flight and the number of late arrivals.
    pub fn in_flight(&mut self, now: Duration, in_flight: usize, behind: usize) {
        let slice = self.at(now);
        slice.in_flight = slice.in_flight.max(in_flight);
        slice.behind = slice.behind.max(behind);
    }

    fn at(&mut self, time: Duration) -> &mut Slice {
        let index = ((time.as_secs_f64() / self.slice.as_secs_f64().max(0.001)) as usize).min(MOST_SLICES - 1);
        if self.slices.len() <= index {
            self.slices.resize_with(index + 1, Slice::default);
        }
        &mut self.slices[index]
    }
}
