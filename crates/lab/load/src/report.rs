//! `report.json`: the figures of a load.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use autoact_kernels::Machine;
use serde::{Deserialize, Serialize};

use crate::account::Tokens;
use crate::collect::Collected;
use crate::distribution::{Distribution, Durations, tidy};
use crate::error::LoadError;
use crate::phase::{Agent, Phase};

/// The schema that is written and read. Fields may be added; a change of meaning needs a new
/// number.
pub const SCHEMA: &str = "autoact.load/1";

/// The settings of a load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Asked {
    /// The gateway's address.
    pub gateway: String,
    /// The source of the questions.
    pub questions: String,
    /// How many distinct questions there are. With more arrivals they repeat, and their prefixes
    /// are cached.
    pub distinct_questions: usize,
    /// `poisson`, `constant`, or `closed`.
    pub arrivals: String,
    /// Arrivals per second; open loop only.
    pub rate: Option<f64>,
    /// Tasks in flight; closed loop only.
    pub in_flight: Option<usize>,
    /// Maximum number of tasks in flight; open loop only.
    pub limit: usize,
    /// Duration of the warm-up, whose tasks are not counted.
    pub warmup_seconds: f64,
    /// Duration of arrivals after the warm-up.
    pub duration_seconds: f64,
    /// Maximum duration of a task.
    pub timeout_seconds: f64,
    /// Seed of the arrivals, of the questions' order and of the sampling.
    pub seed: u64,
    /// Sampling temperature.
    pub temperature: f32,
}

/// Tasks by outcome; the warm-up is separate.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Tasks {
    /// Counted tasks that finished, approved or not.
    pub finished: u64,
    /// Counted tasks that did not finish: refused, broken, timed out.
    pub failed: u64,
    /// Tasks in flight when the load was aborted.
    pub dropped: u64,
    /// Tasks of the warm-up.
    pub warmup: u64,
    /// Tasks with more than one attempt: a gateway died or lost its lease.
    pub taken_over: u64,
    /// Tasks whose stream broke because a gateway stopped, and was resumed. Each is also counted
    /// above.
    #[serde(default)]
    pub resumed: u64,
    /// Number of times that streams were resumed.
    #[serde(default)]
    pub reconnects: u64,
    /// Counted arrivals per second.
    pub arrived_per_second: f64,
    /// Finished counted tasks per second, until the last one finished.
    pub finished_per_second: f64,
}

/// The fraction of the client's latency that is attributed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Coverage {
    /// The total latency of all finished tasks, as measured by the client.
    pub client_seconds: f64,
    /// The sum of its parts.
    pub attributed_seconds: f64,
    /// Time in no part.
    pub unattributed_seconds: f64,
    /// Time in two parts.
    pub overlap_seconds: f64,
    /// 1 minus the fraction of unattributed and overlapping time.
    pub part: f64,
    /// The lowest coverage of a single task.
    pub least: f64,
}

/// A part of the latency: one phase at one agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// The agent's name.
    pub agent: String,
    /// The phase's name.
    pub phase: String,
    /// Sum over all finished tasks, in seconds.
    pub seconds: f64,
    /// Fraction of the client's latency.
    pub share: f64,
    /// Mean over all finished tasks in milliseconds, including those without this part.
    pub mean_ms: f64,
    /// Distribution over the tasks that have it.
    pub distribution: Distribution,
}

/// Scored answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Score {
    /// Finished tasks whose right answer is known.
    pub scored: u64,
    /// Number of right answers among them.
    pub right: u64,
}

/// A time slice of the load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Moment {
    /// Its beginning, in seconds since the start.
    pub from_seconds: f64,
    /// Tasks with their intended arrival in it.
    pub arrived: u64,
    /// Tasks that finished.
    pub finished: u64,
    /// Tasks that failed.
    pub failed: u64,
    /// Maximum number of tasks in flight.
    pub in_flight: usize,
    /// Maximum number of arrivals that were due and not started.
    pub behind: usize,
    /// Median latency of the tasks with their intended arrival in it.
    pub p50_ms: f64,
    /// 99th percentile of the same latency.
    pub p99_ms: f64,
}

/// The report of a load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// The program's version.
    pub version: String,
    /// The start of the load.
    pub started: String,
    /// The machine that this program ran on, and the group if it was the same one; absent in reports
    /// of earlier versions.
    #[serde(default)]
    pub machine: Option<Machine>,
    /// The settings of the load.
    pub asked: Asked,
    /// How to read the latencies.
    pub note: String,
    /// Whether arrivals were stopped early.
    pub interrupted: bool,
    /// From the first arrival to the end of the last task.
    pub seconds: f64,
    /// Tasks by outcome.
    pub tasks: Tasks,
    /// Number of tasks by outcome: `approved`, `max_steps`, `refused`, …
    pub outcomes: BTreeMap<String, u64>,
    /// Number of tasks by gRPC code.
    pub codes: BTreeMap<String, u64>,
    /// Some error messages by code.
    pub messages: BTreeMap<String, Vec<String>>,
    /// Number of right answers, where known.
    pub score: Score,
    /// Latency of finished tasks, from the intended arrival.
    pub latency: Distribution,
    /// Latency from sending the request: what a closed-loop client would have measured.
    pub from_sending: Distribution,
    /// Duration of tasks that did not finish.
    pub failures: Distribution,
    /// The fraction of the time that is attributed.
    pub coverage: Coverage,
    /// Time of a task by agent.
    pub agents: BTreeMap<String, Distribution>,
    /// Time of a task by phase.
    pub phases: BTreeMap<String, Distribution>,
    /// Time by agent and phase, the longest first.
    pub parts: Vec<Part>,
    /// Durations of single calls, as the gateway measured them.
    pub calls: BTreeMap<String, Distribution>,
    /// Number of failed queries of the memory service.
    pub recalls_failed: u64,
    /// Tokens by agent.
    pub tokens: BTreeMap<String, Tokens>,
    /// Number of tasks by number of steps.
    pub rounds: BTreeMap<u32, u64>,
    /// Number of verdicts.
    pub reflections: u64,
    /// The slices of the load, in order.
    pub timeline: Vec<Moment>,
}

const OPEN: &str = "Latency counts from the intended arrival of a task, on a schedule made before the load: what a task waited because \
                    the group or this client was behind is in it (no coordinated omission).";
const CLOSED: &str = "Closed load: a task is begun when one before has ended, so a slow group is asked less. What people who arrive in the \
                      meantime would wait is left out (coordinated omission); for latencies that people see, ask for a rate.";

impl Report {
    /// The report of a load that began at `started`. Where it was made is the caller's to add.
    pub fn new(asked: Asked, started: SystemTime, collected: &Collected) -> Report {
        let (finished, failed) = collected.counts();
        let counted = finished + failed;
        let window = collected.stopped_after.unwrap_or(Duration::MAX).as_secs_f64().min(asked.warmup_seconds + asked.duration_seconds);
        let per = |count: u64, seconds: f64| if seconds > 0.0 { tidy(count as f64 / seconds) } else { 0.0 };
        let note = if asked.in_flight.is_some() { CLOSED } else { OPEN };
        Report {
            schema: SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: prost_types::Timestamp::from(started).to_string(),
            machine: None,
            note: note.to_owned(),
            interrupted: collected.stopped_after.is_some(),
            seconds: tidy(collected.took.as_secs_f64()),
            tasks: Tasks {
                finished,
                failed,
                dropped: collected.dropped,
                warmup: collected.warmup_tasks,
                taken_over: collected.taken_over,
                resumed: collected.resumed,
                reconnects: collected.reconnects,
                arrived_per_second: per(counted, window - asked.warmup_seconds),
                finished_per_second: per(finished, collected.last_end.as_secs_f64() - asked.warmup_seconds),
            },
            asked,
            outcomes: collected.outcomes.clone(),
            codes: collected.codes.clone(),
            messages: collected.messages.clone(),
            score: Score { scored: collected.scored.0, right: collected.scored.1 },
            latency: collected.latency.distribution(),
            from_sending: collected.from_sending.distribution(),
            failures: collected.failures.distribution(),
            coverage: coverage(collected),
            agents: named(&collected.agents),
            phases: named(&collected.phases),
            parts: parts(collected),
            calls: named(&collected.calls),
            recalls_failed: collected.recalls_failed,
            tokens: collected.tokens.iter().map(|(agent, tokens)| (agent.name().to_owned(), *tokens)).collect(),
            rounds: collected.rounds.clone(),
            reflections: collected.reflections,
            timeline: timeline(collected),
        }
    }

    /// The report as JSON.
    pub fn json(&self) -> String {
        // a report has only strings, numbers, and maps with string keys, so encoding cannot fail
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Reads a `report.json`, given as the file or its directory.
    ///
    /// # Errors
    /// The file cannot be read, is not a report, or has another schema.
    pub fn read(path: &Path) -> Result<Report, LoadError> {
        #[derive(Deserialize)]
        struct Head {
            schema: String,
        }
        let path = if path.is_dir() { path.join("report.json") } else { path.to_path_buf() };
        // bytes: what is no text is no report, and the reading has not failed
        let bytes = std::fs::read(&path).map_err(LoadError::file("read", &path))?;
        let not_a_report = |source| LoadError::NotAReport { path: path.clone(), source };
        let Head { schema } = serde_json::from_slice(&bytes).map_err(not_a_report)?;
        if schema != SCHEMA {
            return Err(LoadError::Schema { path, found: schema, expected: SCHEMA });
        }
        serde_json::from_slice(&bytes).map_err(not_a_report)
    }
}

fn named<K: ToString>(all: &BTreeMap<K, Durations>) -> BTreeMap<String, Distribution> {
    all.iter().map(|(key, durations)| (key.to_string(), durations.distribution())).collect()
}

fn coverage(collected: &Collected) -> Coverage {
    let client = collected.latency.sum().as_secs_f64();
    let [attributed, unattributed, overlap] = collected.attributed.map(|sum| sum.as_secs_f64());
    let part = if client > 0.0 { 1.0 - (unattributed + overlap) / client } else { 0.0 };
    Coverage {
        client_seconds: tidy(client),
        attributed_seconds: tidy(attributed),
        unattributed_seconds: tidy(unattributed),
        overlap_seconds: tidy(overlap),
        part: tidy(part),
        least: tidy(collected.least_coverage.unwrap_or_default()),
    }
}

fn parts(collected: &Collected) -> Vec<Part> {
    let client = collected.latency.sum().as_secs_f64();
    let tasks = collected.latency.count().max(1) as f64;
    let part = |((agent, phase), durations): (&(Agent, Phase), &Durations)| {
        let seconds = durations.sum().as_secs_f64();
        Part {
            agent: agent.name().to_owned(),
            phase: phase.name().to_owned(),
            seconds: tidy(seconds),
            share: if client > 0.0 { tidy(seconds / client) } else { 0.0 },
            mean_ms: tidy(1e3 * seconds / tasks),
            distribution: durations.distribution(),
        }
    };
    let mut parts: Vec<Part> = collected.parts.iter().filter(|(_, durations)| !durations.sum().is_zero()).map(part).collect();
    parts.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    parts
}

fn timeline(collected: &Collected) -> Vec<Moment> {
    let moment = |(at, slice): (usize, &crate::collect::Slice)| Moment {
        from_seconds: collected.slice.as_secs_f64() * at as f64,
        arrived: slice.arrived,
        finished: slice.finished,
        failed: slice.failed,
        in_flight: slice.in_flight,
        behind: slice.behind,
        p50_ms: tidy(slice.latency.quantile(0.5).as_secs_f64() * 1e3),
        p99_ms: tidy(slice.latency.quantile(0.99).as_secs_f64() * 1e3),
    };
    collected.slices.iter().enumerate().map(moment).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Account;
    use crate::collect::Record;
    use crate::seen::End;
    use crate::testing::{collected, ms, report};

    #[test]
    fn what_is_no_report_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        assert!(matches!(Report::read(&path), Err(LoadError::File { .. })));
        for other in [&b"{}"[..], b"a text", b"\x7fELF\xff"] {
            std::fs::write(&path, other).unwrap();
            assert!(matches!(Report::read(&path), Err(LoadError::NotAReport { .. })));
        }
        std::fs::write(&path, "{\"schema\": \"autoact.load/99\"}").unwrap();
        assert!(matches!(Report::read(&path), Err(LoadError::Schema { .. })));
    }

    #[test]
    fn a_resumed_task_counts_once() {
        let mut collected = collected(3);
        let account = Account { reconnects: 2, ..Account::default() };
        let end = End::Finished(Default::default());
        collected.add(Record { arrived: ms(1500), ended: ms(1600), account, end, right: None, recall_failed: false });
        let report = Report::new(Asked::default(), SystemTime::UNIX_EPOCH, &collected);
        assert_eq!((report.tasks.finished, report.tasks.resumed, report.tasks.reconnects), (4, 1, 2));
        assert!(report.summary().contains("resumed after a gateway stopped: 1 tasks, 2 times"), "{}", report.summary());
        // reports of earlier versions lack these fields
        let mut before: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
        for field in ["resumed", "reconnects"] {
            before["tasks"].as_object_mut().unwrap().remove(field).unwrap();
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("report.json"), before.to_string()).unwrap();
        assert_eq!(Report::read(dir.path()).unwrap().tasks.reconnects, 0);
    }

    #[test]
    fn every_task_is_counted_once() {
        let report = report(40);
        assert_eq!((report.tasks.finished, report.tasks.failed, report.tasks.warmup), (40, 2, 1));
        assert_eq!(
            (report.outcomes["approved"], report.outcomes["refused"], report.codes["OK"], report.codes["RESOURCE_EXHAUSTED"]),
            (40, 2, 40, 2)
        );
        assert_eq!((report.score.scored, report.score.right, report.rounds[&1]), (40, 20, 40));
        assert_eq!((report.tokens["plan"].prompt, report.tokens["plan"].cached), (4000, 3200));
        assert_eq!(report.messages["RESOURCE_EXHAUSTED"], ["full"]);
        assert!((report.coverage.part - 1.0).abs() < 1e-9 && (report.coverage.client_seconds - 40.0 * 0.147).abs() < 1e-9);
        let shares: f64 = report.parts.iter().map(|part| part.share).sum();
        assert!((shares - 1.0).abs() < 1e-6, "{shares}");
        assert_eq!((report.parts[0].agent.as_str(), report.parts[0].phase.as_str()), ("tool", "retry"));
        assert!((report.phases["bus"].percentile("p50") - 8.0).abs() < 0.02);
        assert_eq!(report.timeline.iter().map(|moment| moment.arrived).sum::<u64>(), 43);
    }

    #[test]
    fn a_load_without_tasks_has_a_report() {
        let report = Report::new(Asked::default(), SystemTime::UNIX_EPOCH, &Collected::new(ms(0), ms(0)));
        assert_eq!((report.tasks.finished, report.coverage.part), (0, 0.0));
        assert!(!report.json().contains("null,\n  \"schema\""));
        assert!(collected(3).counts().0 == 3);
    }
}
