//! The thread pool through its public interface.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use autoact_kernels::Team;

fn counts(n: usize) -> Vec<AtomicUsize> {
    (0..n).map(|_| AtomicUsize::new(0)).collect()
}

fn all_once(counts: &[AtomicUsize]) -> bool {
    counts.iter().all(|c| c.load(Ordering::Relaxed) == 1)
}

#[test]
fn every_task_runs_once() {
    for threads in [0, 1, 2, 5] {
        let team = Team::new(threads).unwrap();
        assert_eq!(team.threads(), threads.max(1));
        for tasks in [0, 1, 2, 3, 100, 1000].into_iter().cycle().take(300) {
            let done = counts(tasks);
            team.run(tasks, &|i| {
                done[i].fetch_add(1, Ordering::Relaxed);
            });
            assert!(all_once(&done));
        }
    }
}

/// Waits until `f` holds, for at most 20 seconds.
fn eventually(f: impl Fn() -> bool) -> bool {
    let begin = Instant::now();
    while !f() {
        if begin.elapsed() > Duration::from_secs(20) {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

#[test]
fn tasks_run_at_the_same_time_also_after_a_pause() {
    let team = Team::new(3).unwrap();
    for pause in [0, 1, 20] {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(pause) {
            std::thread::yield_now();
        }
        let inside = AtomicUsize::new(0);
        let met = AtomicUsize::new(0);
        team.run(3, &|_| {
            inside.fetch_add(1, Ordering::SeqCst);
            met.fetch_add(usize::from(eventually(|| inside.load(Ordering::SeqCst) == 3)), Ordering::SeqCst);
        });
        assert_eq!(met.into_inner(), 3, "after {pause} ms");
    }
}

#[test]
fn the_caller_waits_for_a_slow_task() {
    let team = Team::new(2).unwrap();
    for _ in 0..20 {
        let (caller, done, both) = (std::thread::current().id(), AtomicBool::new(false), AtomicUsize::new(0));
        team.run(2, &|_| {
            both.fetch_add(1, Ordering::SeqCst);
            eventually(|| both.load(Ordering::SeqCst) == 2);
            if std::thread::current().id() != caller {
                let begin = Instant::now();
                eventually(|| begin.elapsed() > Duration::from_millis(3));
                done.store(true, Ordering::SeqCst);
            }
        });
        assert!(done.into_inner());
    }
}

#[test]
fn a_panic_comes_to_the_caller_and_the_team_goes_on() {
    let team = Team::new(3).unwrap();
    for bad in [0, 7, 99] {
        let payload = catch_unwind(AssertUnwindSafe(|| team.run(100, &|i| assert!(i != bad, "task {i}")))).unwrap_err();
        assert_eq!(*payload.downcast::<String>().unwrap(), format!("task {bad}"));
        let done = counts(50);
        team.run(50, &|i| {
            done[i].fetch_add(1, Ordering::Relaxed);
        });
        assert!(all_once(&done));
    }
}

#[test]
fn several_callers_take_turns() {
    let team = Team::new(3).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for tasks in 0..200 {
                    let done = counts(tasks);
                    team.run(tasks, &|i| {
                        done[i].fetch_add(1, Ordering::Relaxed);
                    });
                    assert!(all_once(&done));
                }
            });
        }
    });
}

#[test]
fn a_job_within_a_task_runs_there() {
    let (team, other) = (Team::new(3).unwrap(), Team::new(2).unwrap());
    let total = AtomicUsize::new(0);
    team.run(10, &|_| {
        let here = std::thread::current().id();
        for team in [&team, &other] {
            team.run(10, &|_| {
                assert_eq!(std::thread::current().id(), here);
                total.fetch_add(1, Ordering::Relaxed);
            });
        }
    });
    assert_eq!(total.into_inner(), 200);
}

#[test]
fn dropping_a_team_ends_its_threads() {
    let marks = counts(1);
    for _ in 0..20 {
        let team = Team::new(8).unwrap();
        team.run(8, &|_| {
            marks[0].fetch_add(1, Ordering::Relaxed);
        });
        // `drop` joins, so it would hang if a thread did not end
        drop(team);
    }
    assert_eq!(marks[0].load(Ordering::Relaxed), 160);
    // also for a pool that never worked, and for one whose threads sleep
    drop(Team::new(4).unwrap());
    let team = Team::new(4).unwrap();
    let begin = Instant::now();
    eventually(|| begin.elapsed() > Duration::from_millis(20));
    drop(team);
}
