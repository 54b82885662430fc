//! A thread pool for the kernels.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use crate::simd::Chunks;

/// How long a thread that has to wait looks for the end of it before it sleeps: longer than the pauses between the
/// products of a token, so that only the first one has to wake the others.
const PATIENCE: Duration = Duration::from_micros(50);

/// A fixed number of threads, the caller's being one of them.
///
/// A thread takes part in a job if it is there in time; the caller never waits for one that sleeps. Without work, the
/// threads sleep.
#[derive(Debug)]
pub struct Team {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// Held during a job: jobs of several callers come one after the other.
    turn: Mutex<()>,
}

/// The state word: the number of threads in the job, whether more may join, whether the caller sleeps until they have
/// left, whether all is over, the job's number.
const JOINED: u64 = 0xffff;
const OPEN: u64 = 1 << 16;
const WAITED: u64 = 1 << 17;
const STOP: u64 = 1 << 18;
const JOB: u32 = 32;

#[derive(Debug)]
struct Shared {
    state: Line<AtomicU64>,
    next: Line<AtomicUsize>,
    job: Mutex<Option<Job>>,
    panic: Mutex<Option<Panic>>,
    asleep: Vec<AtomicBool>,
    /// Whoever sleeps until the last thread leaves the job.
    caller: Mutex<Option<Thread>>,
}

/// On a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line<T>(T);

/// A job borrows nothing that ends before `run` returns, though its type cannot say so.
#[derive(Clone, Copy)]
struct Job {
    f: &'static (dyn Fn(usize) + Sync),
    tasks: usize,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Job({} tasks)", self.tasks)
    }
}

struct Panic(Box<dyn Any + Send>);

impl std::fmt::Debug for Panic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Panic")
    }
}

thread_local! {
    /// Whether this thread is in a task.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Team {
    /// Starts `threads - 1` threads (0 counts as 1).
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn new(threads: usize) -> std::io::Result<Self> {
        let others = threads.saturating_sub(1).min(JOINED as usize);
        let shared = Arc::new(Shared {
            state: Line::default(),
            next: Line::default(),
            job: Mutex::default(),
            panic: Mutex::default(),
            asleep: (0..others).map(|_| AtomicBool::new(false)).collect(),
            caller: Mutex::default(),
        });
        let mut team = Self { shared, workers: Vec::with_capacity(others), turn: Mutex::default() };
        for i in 0..others {
            let shared = team.shared.clone();
            team.workers.push(std::thread::Builder::new().name(format!("kernels-{}", i + 1)).spawn(move || shared.work(i))?);
        }
        Ok(team)
    }

    /// The number of threads, the caller's included.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Calls `f` once with every number below `tasks`, on all threads; a job within a task runs on its thread alone.
    ///
    /// # Panics
    /// As a task panics, after all have stopped.
    pub fn run(&self, tasks: usize, f: &(dyn Fn(usize) + Sync)) {
        if tasks <= 1 || self.workers.is_empty() || BUSY.get() {
            return (0..tasks).for_each(f);
        }
        let turn = lock(&self.turn);
        let shared = &*self.shared;
        let job = Job { f: forget_lifetime(f), tasks };
        *lock(&shared.job) = Some(job);
        shared.next.0.store(0, Ordering::Relaxed);
        // Nobody is in a job now, nor can join one, so that nobody else changes the word (only dropping the team does).
        let number = (shared.state.0.load(Ordering::Relaxed) >> JOB).wrapping_add(1);
        shared.state.0.store(number << JOB | OPEN, Ordering::SeqCst);
        for (worker, asleep) in self.workers.iter().zip(&shared.asleep).take(tasks - 1) {
            if asleep.load(Ordering::SeqCst) && asleep.swap(false, Ordering::SeqCst) {
                worker.thread().unpark();
            }
        }
        shared.tasks(job);
        shared.state.0.fetch_and(!OPEN, Ordering::Relaxed);
        shared.all_left();
        *lock(&shared.job) = None;
        let panic = lock(&shared.panic).take();
        drop(turn);
        if let Some(Panic(payload)) = panic {
            resume_unwind(payload);
        }
    }

    /// Cuts rows of `width` numbers into pieces and calls `f` with the number of the first row and the rows of each, on
    /// all threads if it is worth it: for what is done row by row, such as [`rms_norm`](crate::rms_norm).
    ///
    /// # Panics
    /// If `y` is not whole rows; as `f` panics.
    pub fn rows(&self, y: &mut [f32], width: usize, f: &(dyn Fn(usize, &mut [f32]) + Sync)) {
        assert!(width > 0 && y.len().is_multiple_of(width), "{} numbers are no whole rows of {width}", y.len());
        self.pieces(y, width, f);
    }

    /// As [`Team::rows`], for rows of anything.
    pub(crate) fn pieces<T: Send>(&self, y: &mut [T], width: usize, f: &(dyn Fn(usize, &mut [T]) + Sync)) {
        if size_of_val(y) < SMALL || self.workers.is_empty() {
            return f(0, y);
        }
        let rows = (y.len() / width.max(1)).div_ceil(4 * self.threads()).max(1);
        let pieces = Chunks::new(y, rows * width);
        self.run(pieces.count(), &|i| f(i * rows, pieces.take(i)));
    }
}

/// Minimum size of rows, in bytes, for which another thread is worth its cost.
const SMALL: usize = 64 << 10;

/// The same reference, for the threads of a team.
#[allow(unsafe_code)]
fn forget_lifetime(f: &(dyn Fn(usize) + Sync)) -> &'static (dyn Fn(usize) + Sync) {
    // SAFETY: only `Team::run` calls this. A thread gets the reference from `Shared::job` only after it has joined the
    // job, which it can only while the job is open; `run` closes the job and waits until all who joined have left before
    // it returns (tasks that panic are caught), and takes the reference out of `Shared::job`.
    unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(f) }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.state.0.fetch_or(STOP, Ordering::SeqCst);
        for worker in self.workers.drain(..) {
            worker.thread().unpark();
            // a worker catches the panics of tasks and has no others
            let _ = worker.join();
        }
    }
}

impl Shared {
    /// The life of a worker.
    fn work(&self, index: usize) {
        let mut last = 0;
        while let Some(number) = self.join(index, last) {
            last = number;
            // not in the condition, where the lock would be held for all of the tasks
            let job = *lock(&self.job);
            if let Some(job) = job {
                self.tasks(job);
            }
            self.leave();
        }
    }

    /// Leaves a job. The last one to leave wakes the caller, if it sleeps.
    fn leave(&self) {
        // SeqCst here and in `all_left`: either the caller sees that this thread has left, or this thread sees the
        // caller's mark.
        let before = self.state.0.fetch_sub(1, Ordering::SeqCst);
        if before & (JOINED | WAITED) == 1 | WAITED
            && let Some(caller) = lock(&self.caller).take()
        {
            caller.unpark();
        }
    }

    /// Waits until everybody has left the job, which is closed.
    fn all_left(&self) {
        let busy = || self.state.0.load(Ordering::SeqCst) & JOINED != 0;
        let mut since = None;
        let mut spins = 0u32;
        while busy() {
            std::hint::spin_loop();
            spins += 1;
            if spins.is_multiple_of(64) && since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                while busy() {
                    // again after every wake-up: it may come from a thread that was slow to leave an earlier job, and
                    // has taken the handle
                    *lock(&self.caller) = Some(std::thread::current());
                    self.state.0.fetch_or(WAITED, Ordering::SeqCst);
                    if busy() {
                        std::thread::park();
                    }
                }
                *lock(&self.caller) = None;
            }
        }
    }

    /// Waits for a job after `last` and joins it; `None` at the end.
    fn join(&self, index: usize, last: u64) -> Option<u64> {
        let mut since = Instant::now();
        let mut spins = 0u32;
        loop {
            let state = self.state.0.load(Ordering::SeqCst);
            if state & STOP != 0 {
                return None;
            }
            if state & OPEN != 0 && state >> JOB != last {
                if self.state.0.compare_exchange_weak(state, state + 1, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                    return Some(state >> JOB);
                }
                continue;
            }
            std::hint::spin_loop();
            spins += 1;
            if spins.is_multiple_of(64) && since.elapsed() > PATIENCE {
                self.sleep(index, last);
                since = Instant::now();
            }
        }
    }

    /// Sleeps until woken, unless there is a job after `last` or the end has come.
    fn sleep(&self, index: usize, last: u64) {
        self.asleep[index].store(true, Ordering::SeqCst);
        let state = self.state.0.load(Ordering::SeqCst);
        if state & STOP == 0 && (state & OPEN == 0 || state >> JOB == last) {
            // Whoever opens a job after this flag is set sees it; waking up for nothing does no harm.
            std::thread::park();
        }
        self.asleep[index].store(false, Ordering::SeqCst);
    }

    /// Takes tasks until there are none.
    fn tasks(&self, job: Job) {
        BUSY.set(true);
        let done = catch_unwind(AssertUnwindSafe(|| {
            loop {
                let task = self.next.0.fetch_add(1, Ordering::Relaxed);
                if task >= job.tasks {
                    break;
                }
                (job.f)(task);
            }
        }));
        BUSY.set(false);
        if let Err(payload) = done {
            // the others need not begin anything more
            self.next.0.store(job.tasks, Ordering::Relaxed);
            lock(&self.panic).get_or_insert(Panic(payload));
        }
    }
}
