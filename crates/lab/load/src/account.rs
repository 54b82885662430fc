//! Attribution of one task's latency to parts.
//!
//! Every part comes from a measurement of the process that spent the time; no part is defined as a
//! remainder. Only three parts are differences of measurements. `network` is the client's wait
//! minus the time that the gateway had the request. `lease` and `delivery` come from the times of
//! events; if two gateways' clocks differ, one part grows by what the other loses. Time in no part
//! is [`Account::unattributed`], time in two parts is [`Account::overlap`]. Both lower the
//! coverage.

use std::collections::BTreeMap;
use std::time::Duration;

use autoact_wire::v1::{self, trajectory_event::Body};
use tokio::time::Instant;

use crate::phase::{Agent, Call, Phase};
use crate::seen::Seen;

/// The latency of a task by parts, and its tokens.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Account {
    /// From the intended arrival to the end, as the client measured it.
    pub whole: Duration,
    /// From sending the request to the end: what a closed-loop client would have measured.
    pub from_sending: Duration,
    /// The parts.
    pub parts: BTreeMap<(Agent, Phase), Duration>,
    /// The duration of every call.
    pub calls: Vec<(Call, Duration)>,
    /// Tokens of the agents' models.
    pub tokens: BTreeMap<Agent, Tokens>,
    /// Number of steps.
    pub rounds: u32,
    /// Number of verdicts.
    pub reflections: u32,
    /// Number of attempts.
    pub attempts: u32,
    /// Number of times that its stream was resumed.
    pub reconnects: u32,
}

/// Prompt and completion tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Tokens {
    /// Number of model calls.
    pub calls: u64,
    /// Number of prompt tokens.
    pub prompt: u64,
    /// Number of prompt tokens whose keys and values came from a cache.
    pub cached: u64,
    /// Number of generated tokens.
    pub completion: u64,
}

impl Account {
    /// The account of a task with the arrival time `intended`.
    pub fn of(intended: Instant, seen: &Seen) -> Account {
        let mut account = Account {
            whole: seen.done.saturating_duration_since(intended),
            from_sending: seen.done.saturating_duration_since(seen.sent),
            reconnects: seen.reconnects,
            ..Account::default()
        };
        account.add(Agent::Client, Phase::Wait, seen.sent.saturating_duration_since(intended));
        if let Some(elapsed) = seen.elapsed {
            account.add(Agent::Client, Phase::Network, account.from_sending.saturating_sub(elapsed));
        }
        let mut before: Option<&v1::TrajectoryEvent> = None;
        for event in &seen.events {
            account.event(event, before, seen.accepted);
            before = Some(event);
        }
        account.delivery(seen);
        if let Some(Ok(took)) = seen.recall {
            account.calls.push((Call::Recall, took));
        }
        account
    }

    /// The sum of the parts.
    pub fn attributed(&self) -> Duration {
        self.parts.values().sum()
    }

    /// Time in no part.
    pub fn unattributed(&self) -> Duration {
        self.whole.saturating_sub(self.attributed())
    }

    /// Time in two parts.
    pub fn overlap(&self) -> Duration {
        self.attributed().saturating_sub(self.whole)
    }

    /// The time spent by one agent.
    pub fn at(&self, agent: Agent) -> Duration {
        self.parts.iter().filter(|((who, _), _)| *who == agent).map(|(_, took)| *took).sum()
    }

    /// The time spent in one phase.
    pub fn on(&self, phase: Phase) -> Duration {
        self.parts.iter().filter(|((_, what), _)| *what == phase).map(|(_, took)| *took).sum()
    }

    fn add(&mut self, agent: Agent, phase: Phase, took: Duration) {
        *self.parts.entry((agent, phase)).or_default() += took;
    }

    fn event(&mut self, event: &v1::TrajectoryEvent, before: Option<&v1::TrajectoryEvent>, accepted: Option<Duration>) {
        let timing = event.timing.unwrap_or_default();
        let (own, bus) = (duration(timing.own), duration(timing.bus));
        let call = match &event.body {
            Some(Body::Thought(_)) => Some(Call::Plan),
            Some(Body::Action(_)) => Some(Call::Parameterize),
            Some(Body::Observation(_)) => Some(Call::Execute),
            Some(Body::Reflection(_)) => Some(Call::Reflect),
            _ => None,
        };
        match &event.body {
            Some(Body::Thought(_)) => self.rounds += 1,
            Some(Body::Reflection(_)) => self.reflections += 1,
            Some(Body::Started(started)) => {
                self.attempts = started.attempt;
                // between the event before and the lease: for a new task it was stored and queued
                // first
                let gap = between(before, event).saturating_sub(own + bus);
                let first = before.filter(|before| matches!(before.body, Some(Body::Submitted(_))));
                let checked = first.and_then(|first| first.timing).map(|timing| duration(timing.own)).unwrap_or_default();
                let stored = first.and(accepted).unwrap_or_default().saturating_sub(checked).min(gap);
                self.add(Agent::Gateway, Phase::Bus, stored);
                self.add(Agent::Gateway, Phase::Lease, gap - stored);
            }
            _ => {}
        }
        self.add(Agent::Gateway, Phase::Own, own);
        self.add(Agent::Gateway, Phase::Bus, bus);
        self.add(call.and_then(Call::agent).unwrap_or(Agent::Gateway), Phase::Retry, duration(timing.retry));
        if let (Some(call), Some(usage)) = (call, &event.usage) {
            self.call(call, usage);
        }
    }

    fn call(&mut self, call: Call, usage: &v1::Usage) {
        let total = duration(usage.total);
        let Some(agent) = call.agent().filter(|_| !total.is_zero()) else { return };
        let mut left = total;
        let inside =
            [(Phase::Queue, usage.queue), (Phase::Prefill, usage.prefill), (Phase::Decode, usage.decode), (Phase::Tool, usage.tool)];
        for (phase, took) in inside {
            // an agent cannot have spent more time than the call took
            let took = duration(took).min(left);
            left -= took;
            self.add(agent, phase, took);
        }
        self.add(agent, Phase::Call, left);
        self.calls.push((call, total));
        if call != Call::Execute {
            let tokens = self.tokens.entry(agent).or_default();
            tokens.calls += 1;
            tokens.prompt += u64::from(usage.prompt_tokens);
            tokens.cached += u64::from(usage.cached_prompt_tokens);
            tokens.completion += u64::from(usage.completion_tokens);
        }
    }

    /// From writing the last event until the contacted gateway sent it, by the clock of the first
    /// event's writer.
    fn delivery(&mut self, seen: &Seen) {
        let (Some(first), Some(last), Some(elapsed)) = (seen.events.first(), seen.events.last(), seen.elapsed) else { return };
        let checked = first.timing.map(|timing| duration(timing.own)).unwrap_or_default();
        let sent = elapsed.saturating_sub(checked);
        self.add(Agent::Gateway, Phase::Delivery, sent.saturating_sub(between(Some(first), last)));
    }
}

/// The time between two events; zero if the clocks disagree on their order.
fn between(before: Option<&v1::TrajectoryEvent>, event: &v1::TrajectoryEvent) -> Duration {
    let nanos = |event: &v1::TrajectoryEvent| event.time.map(|time| i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos));
    let (Some(from), Some(to)) = (before.and_then(nanos), nanos(event)) else { return Duration::ZERO };
    Duration::from_nanos(u64::try_from(to - from).unwrap_or_default())
}

pub(crate) fn duration(value: Option<prost_types::Duration>) -> Duration {
    value.and_then(|value| Duration::try_from(value).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ms, task};

    #[tokio::test(start_paused = true)]
    async fn every_part_of_a_task_has_an_owner() {
        let intended = Instant::now();
        let account = Account::of(intended, &task(intended));
        // `testing::task` describes its durations
        let parts: Vec<((Agent, Phase), u128)> =
            account.parts.iter().filter(|(_, took)| !took.is_zero()).map(|(part, took)| (*part, took.as_millis())).collect();
        assert_eq!(
            parts,
            [
                ((Agent::Client, Phase::Wait), 7),
                ((Agent::Client, Phase::Network), 4),
                ((Agent::Gateway, Phase::Lease), 20),
                ((Agent::Gateway, Phase::Bus), 3 + 2 + 1 + 1 + 1),
                ((Agent::Gateway, Phase::Own), 1 + 1 + 1),
                ((Agent::Gateway, Phase::Delivery), 2),
                ((Agent::Plan, Phase::Queue), 2),
                ((Agent::Plan, Phase::Prefill), 10),
                ((Agent::Plan, Phase::Decode), 30),
                ((Agent::Plan, Phase::Call), 3),
                ((Agent::Tool, Phase::Tool), 6),
                ((Agent::Tool, Phase::Call), 2),
                ((Agent::Tool, Phase::Retry), 50),
            ]
        );
        assert_eq!((account.whole, account.unattributed(), account.overlap()), (ms(147), ms(0), ms(0)));
        assert_eq!(account.from_sending, ms(140));
        assert_eq!((account.at(Agent::Plan), account.on(Phase::Call)), (ms(45), ms(5)));
        assert_eq!(account.calls, [(Call::Plan, ms(45)), (Call::Execute, ms(8))]);
        assert_eq!((account.rounds, account.attempts, account.tokens[&Agent::Plan].cached), (1, 1, 80));
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_gateway_does_not_tell_is_not_made_up() {
        let intended = Instant::now();
        let mut seen = task(intended);
        seen.events.iter_mut().for_each(|event| event.timing = None);
        (seen.elapsed, seen.accepted) = (None, None);
        let account = Account::of(intended, &seen);
        assert!(account.unattributed() > ms(60), "{account:?}");
        assert!(account.overlap().is_zero());
    }

    #[tokio::test(start_paused = true)]
    async fn clocks_that_disagree_take_nothing_away() {
        let intended = Instant::now();
        let mut seen = task(intended);
        for event in seen.events.iter_mut().skip(1) {
            event.time.as_mut().unwrap().seconds -= 3600;
        }
        let account = Account::of(intended, &seen);
        assert_eq!(account.parts[&(Agent::Gateway, Phase::Lease)], Duration::ZERO);
        // the lease loses what the delivery gains, and the excess is visible as overlap
        assert_eq!(account.parts[&(Agent::Gateway, Phase::Delivery)], ms(135));
        assert_eq!(account.overlap(), ms(110));
        let mut broken = task(intended);
        broken.events.truncate(1);
        assert!(Account::of(intended, &broken).overlap().is_zero());
    }
}
