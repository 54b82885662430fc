//! Sends load to a target.
//!
//! Open loop: tasks arrive on schedule, whether or not earlier ones have ended. A task's latency
//! counts from its *intended* arrival. If the client or the group is late, the wait is part of the
//! latency, so there is no coordinated omission. Closed loop: a fixed number of tasks is in flight,
//! and the next one waits for the group. The time that users would have waited is not measured.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::account::Account;
use crate::collect::{Collected, Record};
use crate::question::Question;
use crate::target::Target;

/// Interval of progress reports.
const SHOW_EVERY: Duration = Duration::from_millis(250);

/// When tasks start.
#[derive(Debug, Clone, PartialEq)]
pub enum Pace {
    /// At these offsets from the start, independent of the target.
    Open(Vec<Duration>),
    /// As soon as fewer than this number are in flight.
    Closed(usize),
    /// So many tasks, however long they take: the same work for every target.
    Count {
        /// Number of tasks.
        tasks: usize,
        /// Number in flight at once.
        at_once: usize,
    },
}

/// A load.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// When tasks start.
    pub pace: Pace,
    /// Tasks that arrive in this time are not counted.
    pub warmup: Duration,
    /// Duration of arrivals after the warm-up.
    pub duration: Duration,
    /// Maximum number of tasks in flight. Further arrivals wait, and the wait counts.
    pub limit: usize,
}

/// Signals that end a load early.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    /// No further arrivals; tasks in flight finish.
    pub arrivals: CancellationToken,
    /// Tasks in flight are dropped.
    pub tasks: CancellationToken,
}

/// The progress of a load.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Progress {
    /// Since the start.
    pub elapsed: Duration,
    /// Warm-up plus duration.
    pub planned: Duration,
    /// Whether arrivals are counted, after the warm-up.
    pub warm: bool,
    /// Whether arrivals have ended.
    pub ending: bool,
    /// Number of scheduled arrivals so far.
    pub due: u64,
    /// Number of started tasks.
    pub begun: u64,
    /// Number of counted tasks that finished.
    pub finished: u64,
    /// Number of counted tasks that failed.
    pub failed: u64,
    /// Number of tasks in flight now.
    pub in_flight: usize,
    /// Median latency of counted tasks.
    pub p50: Duration,
    /// 99th percentile of the latency of counted tasks.
    pub p99: Duration,
}

/// Runs a load to its end; `show` is called a few times per second.
pub async fn run<T: Target>(
    target: Arc<T>,
    load: &Load,
    questions: Arc<[Question]>,
    stop: &Stop,
    mut show: impl FnMut(&Progress),
) -> Collected {
    let begin = Instant::now();
    let planned = load.warmup + load.duration;
    let mut collected = Collected::new(load.warmup, planned);
    let mut tasks: JoinSet<Record> = JoinSet::new();
    let mut ticks = tokio::time::interval(SHOW_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let (mut begun, mut stopped) = (0usize, false);
    loop {
        let next = if stopped { None } else { next(&load.pace, begun, begin, planned) };
        if next.is_none() && tasks.is_empty() {
            break;
        }
        let room = tasks.len() < load.limit.max(1)
            && match load.pace {
                Pace::Open(_) => true,
                Pace::Closed(in_flight) => tasks.len() < in_flight,
                Pace::Count { at_once, .. } => tasks.len() < at_once.max(1),
            };
        tokio::select! {
            biased;
            () = stop.tasks.cancelled() => {
                collected.dropped += tasks.len() as u64;
                tasks.shutdown().await;
                break;
            }
            () = stop.arrivals.cancelled(), if !stopped => {
                stopped = true;
                collected.stopped_after = Some(begin.elapsed());
            }
            () = tokio::time::sleep_until(next.unwrap_or(begin)), if room && next.is_some() => {
                let intended = next.unwrap_or(begin);
                let (target, questions) = (Arc::clone(&target), Arc::clone(&questions));
                tasks.spawn(async move { one(&*target, &questions, begun, begin, intended).await });
                begun += 1;
            }
            _ = ticks.tick() => show(&progress(load, begin, planned, begun, stopped, tasks.len(), &mut collected)),
            Some(done) = tasks.join_next(), if !tasks.is_empty() => match done {
                Ok(record) => collected.add(record),
                // a panic in one task does not end the load
                Err(_) => collected.dropped += 1,
            },
        }
    }
    show(&progress(load, begin, planned, begun, true, tasks.len(), &mut collected));
    target.settle().await;
    collected.begun = begun as u64;
    collected.took = begin.elapsed();
    collected
}

/// When the next task starts.
fn next(pace: &Pace, begun: usize, begin: Instant, planned: Duration) -> Option<Instant> {
    match pace {
        Pace::Open(times) => times.get(begun).map(|at| begin + *at),
        Pace::Closed(_) => Some(Instant::now()).filter(|now| *now < begin + planned),
        Pace::Count { tasks, .. } => (begun < *tasks).then(Instant::now),
    }
}

async fn one<T: Target>(target: &T, questions: &[Question], number: usize, begin: Instant, intended: Instant) -> Record {
    // in a closed loop, a task's intended arrival is its start
    let question = questions.get(number % questions.len().max(1)).cloned().unwrap_or_else(|| Question::new("?"));
    let seen = target.ask(&question).await;
    let account = Account::of(intended, &seen);
    let right = seen.end.finished().and_then(|finished| question.is_right(&finished.answer));
    let recall_failed = matches!(seen.recall, Some(Err(_)));
    Record { arrived: intended - begin, ended: seen.done - begin, account, end: seen.end, right, recall_failed }
}

fn progress(
    load: &Load,
    begin: Instant,
    planned: Duration,
    begun: usize,
    ending: bool,
    in_flight: usize,
    collected: &mut Collected,
) -> Progress {
    let elapsed = begin.elapsed();
    let due = match &load.pace {
        Pace::Open(times) if !ending => times.partition_point(|at| *at <= elapsed),
        _ => begun,
    };
    collected.in_flight(elapsed, in_flight, due.saturating_sub(begun));
    let (finished, failed) = collected.counts();
    Progress {
        elapsed,
        planned,
        warm: elapsed >= load.warmup,
        ending: ending || elapsed >= planned,
        due: due as u64,
        begun: begun as u64,
        finished,
        failed,
        in_flight,
        p50: collected.latency.quantile(0.5),
        p99: collected.latency.quantile(0.99),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::phase::Phase;
    use crate::schedule::{Arrivals, schedule};
    use crate::seen::{End, Seen};
    use crate::testing::ms;

    /// Takes a second for every task, and records the number of concurrent ones.
    #[derive(Default)]
    struct Slow {
        now: AtomicUsize,
        most: AtomicUsize,
    }

    impl Target for Slow {
        async fn ask(&self, _: &Question) -> Seen {
            let sent = Instant::now();
            self.most.fetch_max(1 + self.now.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.now.fetch_sub(1, Ordering::SeqCst);
            let end = End::Finished(autoact_wire::v1::Finished { answer: "Paris".into(), ..Default::default() });
            Seen { sent, done: Instant::now(), end, events: Vec::new(), elapsed: None, accepted: None, recall: None, reconnects: 0 }
        }
    }

    fn open(rate: f64, seconds: u64, limit: usize) -> Load {
        let duration = Duration::from_secs(seconds);
        Load { pace: Pace::Open(schedule(Arrivals::Constant, rate, duration, 0).unwrap()), warmup: Duration::ZERO, duration, limit }
    }

    async fn run_on(target: &Arc<Slow>, load: &Load) -> Collected {
        run(Arc::clone(target), load, Arc::from([Question::new("?")]), &Stop::default(), |_| {}).await
    }

    #[tokio::test(start_paused = true)]
    async fn latency_counts_from_the_intended_arrival() {
        // ten per second for one second, one at a time, one second each: the last one is due at 0.9
        // s and ends at 10 s
        let target = Arc::new(Slow::default());
        let collected = run_on(&target, &open(10.0, 1, 1)).await;
        assert_eq!((collected.begun, target.most.load(Ordering::SeqCst)), (10, 1));
        let near = |found: Duration, expected: u64| assert!(found.abs_diff(ms(expected)) < ms(20), "{found:?} for {expected} ms");
        near(collected.latency.quantile(0.0), 1000);
        near(collected.latency.quantile(0.5), 4600);
        near(collected.latency.quantile(1.0), 9100);
        // what a client that counts from sending would have measured
        near(collected.from_sending.quantile(1.0), 1000);
        near(collected.phases[&Phase::Wait].quantile(1.0), 8100);
    }

    #[tokio::test(start_paused = true)]
    async fn arrivals_do_not_wait_for_the_target() {
        let target = Arc::new(Slow::default());
        let collected = run_on(&target, &open(50.0, 4, 1000)).await;
        assert_eq!(collected.begun, 200);
        assert!((49..=51).contains(&target.most.load(Ordering::SeqCst)), "{:?}", target.most);
        assert!(collected.latency.quantile(1.0) < ms(1020));
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_load_keeps_its_number_in_flight() {
        let target = Arc::new(Slow::default());
        let load = Load { pace: Pace::Closed(8), warmup: Duration::from_secs(2), duration: Duration::from_secs(10), limit: 1000 };
        let collected = run_on(&target, &load).await;
        assert_eq!((target.most.load(Ordering::SeqCst), collected.begun), (8, 96));
        assert_eq!((collected.counts(), collected.warmup_tasks), ((80, 0), 16));
    }

    #[tokio::test(start_paused = true)]
    async fn a_counted_load_has_so_many_tasks() {
        let target = Arc::new(Slow::default());
        let load = Load { pace: Pace::Count { tasks: 10, at_once: 4 }, warmup: Duration::ZERO, duration: Duration::ZERO, limit: 1000 };
        let collected = run_on(&target, &load).await;
        assert_eq!((target.most.load(Ordering::SeqCst), collected.begun, collected.counts()), (4, 10, (10, 0)));
        assert!(collected.last_end.abs_diff(Duration::from_secs(3)) < ms(50), "{:?}", collected.last_end);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_ends_arrivals_and_a_second_one_the_tasks() {
        let target = Arc::new(Slow::default());
        let stop = Stop::default();
        let load = open(10.0, 100, 1000);
        let after = |seconds, token: CancellationToken| async move {
            tokio::time::sleep(Duration::from_millis(seconds)).await;
            token.cancel();
        };
        let running = run(Arc::clone(&target), &load, Arc::from([Question::new("?")]), &stop, |_| {});
        let (collected, ()) = tokio::join!(running, after(2050, stop.arrivals.clone()));
        assert_eq!((collected.begun, collected.dropped, collected.counts()), (21, 0, (21, 0)));
        assert!(collected.took < Duration::from_secs(4) && collected.stopped_after.is_some());

        let stop = Stop::default();
        let running = run(Arc::clone(&target), &load, Arc::from([Question::new("?")]), &stop, |_| {});
        let (collected, (), ()) = tokio::join!(running, after(2050, stop.arrivals.clone()), after(2250, stop.tasks.clone()));
        assert!(collected.dropped > 5 && collected.counts().0 + collected.dropped == 21, "{collected:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_view_is_told_of_what_is_behind() {
        let target = Arc::new(Slow::default());
        let mut told: Vec<Progress> = Vec::new();
        run(target, &open(10.0, 5, 1), Arc::from([Question::new("?")]), &Stop::default(), |progress| told.push(progress.clone())).await;
        let middle = &told[told.len() / 10];
        assert!(middle.due > middle.begun && middle.in_flight == 1, "{middle:?}");
        assert!(told.last().is_some_and(|last| last.ending && last.finished == 50 && last.in_flight == 0));
    }
}
