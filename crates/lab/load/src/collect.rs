//! Aggregates the results of a load's tasks.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::account::{Account, Tokens};
use crate::distribution::Durations;
use crate::phase::{Agent, Call, Phase};
use crate::seen::End;

/// About as many as a plot is wide.
const SLICES: u32 = 100;
/// However long the last tasks take.
const MOST_SLICES: usize = 10_000;
/// Messages of errors that a report shows, by code.
const MOST_MESSAGES: usize = 3;

/// One task that ended.
#[derive(Debug, Clone)]
pub struct Record {
    /// When it was meant to arrive, since the beginning.
    pub arrived: Duration,
    /// When it ended.
    pub ended: Duration,
    /// Where its time went.
    pub account: Account,
    /// Its outcome.
    pub end: End,
    /// Whether its answer is right, where that is known.
    pub right: Option<bool>,
    /// Whether the memory service was asked in vain.
    pub recall_failed: bool,
}

/// A part of the load's time.
#[derive(Debug, Clone)]
pub struct Slice {
    /// Tasks that were meant to arrive in it.
    pub arrived: u64,
    /// Tasks that finished in it.
    pub finished: u64,
    /// Tasks that failed in it.
    pub failed: u64,
    /// Most tasks in flight.
    pub in_flight: usize,
    /// Most arrivals that were due and not begun.
    pub behind: usize,
    /// Of the tasks that were meant to arrive in it.
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
    /// Tasks begun, those of the warm-up included.
    pub begun: u64,
    /// Tasks that arrived during the warm-up and ended.
    pub warmup_tasks: u64,
    /// Tasks in flight when the load was broken off.
    pub dropped: u64,
    /// When arrivals were stopped, if they were.
    pub stopped_after: Option<Duration>,
    /// From the beginning to the end of the last task.
    pub took: Duration,
    /// When the last counted task ended.
    pub last_end: Duration,
    /// Finished tasks, from the intended arrival.
    pub latency: Durations,
    /// The same from the sending.
    pub from_sending: Durations,
    /// Tasks that did not finish, from the intended arrival.
    pub failures: Durations,
    /// Finished tasks' time by agent.
    pub agents: BTreeMap<Agent, Durations>,
    /// By phase.
    pub phases: BTreeMap<Phase, Durations>,
    /// By both.
    pub parts: BTreeMap<(Agent, Phase), Durations>,
    /// Single calls.
    pub calls: BTreeMap<Call, Durations>,
    /// The sum of the parts of all finished tasks, the time that no part claims, and the time that
    /// two claim.
    pub attributed: [Duration; 3],
    /// The smallest coverage of a single task.
    pub least_coverage: Option<f64>,
    /// Tokens by agent.
    pub tokens: BTreeMap<Agent, Tokens>,
    /// How many tasks took how many planning loops.
    pub rounds: BTreeMap<u32, u64>,
    /// Verdicts.
    pub reflections: u64,
    /// Tasks with more than one attempt.
    pub taken_over: u64,
    /// Tasks whose stream broke and was resumed: each is one task all the same.
    pub resumed: u64,
    /// How often streams were resumed.
    pub reconnects: u64,
    /// By outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// By gRPC code.
    pub codes: BTreeMap<String, u64>,
    /// Error messages by code, a few each.
    pub messages: BTreeMap<String, Vec<String>>,
    /// Answers that could be scored, and those that are right.
    pub scored: (u64, u64),
    /// Recalls in vain.
    pub recalls_failed: u64,
    /// The width of a slice.
    pub slice: Duration,
    /// Over time, from the beginning on.
    pub slices: Vec<Slice>,
}

impl Collected {
    /// Of a load that is planned to last so long.
    pub fn new(warmup: Duration, planned: Duration) -> Collected {
        let slice = Duration::from_secs_f64((planned / SLICES).as_secs_f64().ceil().max(1.0));
        Collected { warmup, slice, ..Collected::default() }
    }

    /// (finished, failed), the warm-up left out.
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
        // also of tasks that did not finish
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
        // a phase that a task did not have is a phase of no length: the distributions are over tasks
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

    /// Notes how many tasks are in flight, and how many wait to be.
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
