//! Runs a list of tasks on worker threads.
//!
//! The assignment of tasks to workers is arbitrary, so results must not depend on it. Threads are
//! scoped and started for each phase. That costs tens of microseconds in a step of hundreds of
//! milliseconds, and borrowed buffers are shared without `unsafe`.

use std::sync::Mutex;

/// Calls `f(worker, task)` for every task. Each thread has its own element of `workers`.
pub(crate) fn run<W: Send, T: Send>(workers: &mut [W], tasks: Vec<T>, f: impl Fn(&mut W, T) + Sync) {
    let queue = Mutex::new(tasks.into_iter());
    let work = |worker: &mut W| {
        loop {
            let task = match queue.lock() {
                Ok(mut queue) => queue.next(),
                Err(_) => None,
            };
            match task {
                Some(task) => f(worker, task),
                None => break,
            }
        }
    };
    let Some((mine, others)) = workers.split_first_mut() else { return };
    std::thread::scope(|scope| {
        for other in others {
            scope.spawn(|| work(other));
        }
        work(mine);
    });
}
