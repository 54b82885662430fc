//! A thread pool for the kernels.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use crate::simd::Chunks;

/// How long a waiting thread spins before it sleeps. It is longer than the pauses between the
/// products of one token, so that only the first product has to wake the threads.
const PATIENCE: Duration = Duration::from_micros(50);

/// A thread pool of fixed size; the calling thread is one of its threads.
///
/// A thread joins a job if it is awake in time. The caller never waits for a sleeping thread.
/// Without work, the threads sleep.
#[derive(Debug)]
pub struct Team {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// Jobs run on the caller's thread alone.
    alone: AtomicBool,
    /// Held during a job, so that jobs of several callers run one after the other.
    turn: Mutex<()>,
}

/// Bits of the state word: the number of threads in the job, whether more may join, whether the
/// caller sleeps until they have left, whether the pool stops, and the job's number.
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
    /// The caller, if it sleeps until the last thread leaves the job.
    caller: Mutex<Option<Thread>>,
}

/// A value on its own cache line, against false sharing.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line<T>(T);

/// A job. Its borrow ends before `run` returns, although the type says `'static`.
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
    /// Whether this thread runs a task.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Team {
    /// Starts `threads - 1` threads; 0 counts as 1.
    ///
    /// # Errors
    /// If the system cannot start a thread.
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
        let mut team = Self { shared, workers: Vec::with_capacity(others), alone: AtomicBool::new(false), turn: Mutex::default() };
        for i in 0..others {
            let shared = team.shared.clone();
            team.workers.push(std::thread::Builder::new().name(format!("kernels-{}", i + 1)).spawn(move || shared.work(i))?);
        }
        Ok(team)
    }

    /// Number of threads that take part in a job, including the caller's.
    pub fn threads(&self) -> usize {
        if self.is_alone() { 1 } else { self.workers.len() + 1 }
    }

    /// With `true`, jobs run on the caller's thread alone from now on: where other programs need the
    /// cores, a job would wait for a thread that was interrupted.
    pub fn set_alone(&self, alone: bool) {
        self.alone.store(alone, Ordering::Relaxed);
    }

    fn is_alone(&self) -> bool {
        self.workers.is_empty() || self.alone.load(Ordering::Relaxed)
    }

    /// Calls `f` once with every number below `tasks`, on all threads. A job inside a task runs on
    /// the task's thread alone.
    ///
    /// # Panics
    /// If a task panics, with its payload, after all threads have stopped.
    pub fn run(&self, tasks: usize, f: &(dyn Fn(usize) + Sync)) {
        if tasks <= 1 || self.is_alone() || BUSY.get() {
            return (0..tasks).for_each(f);
        }
        let turn = lock(&self.turn);
        let shared = &*self.shared;
        let job = Job { f: forget_lifetime(f), tasks };
        *lock(&shared.job) = Some(job);
        shared.next.0.store(0, Ordering::Relaxed);
        // No thread is in a job or can join one, so no other thread changes the word (only `drop`
        // does).
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

    /// Splits rows of `width` elements into pieces and calls `f` with each piece and the number of
    /// its first row. All threads take part if `y` is large enough. For operations on rows, such as
    /// [`rms_norm`](crate::rms_norm).
    ///
    /// # Panics
    /// If `y` is not a whole number of rows, or `f` panics.
    pub fn rows(&self, y: &mut [f32], width: usize, f: &(dyn Fn(usize, &mut [f32]) + Sync)) {
        assert!(width > 0 && y.len().is_multiple_of(width), "{} numbers are no whole rows of {width}", y.len());
        self.pieces(y, width, f);
    }

    /// [`Team::rows`] for elements of any type.
    pub(crate) fn pieces<T: Send>(&self, y: &mut [T], width: usize, f: &(dyn Fn(usize, &mut [T]) + Sync)) {
        if size_of_val(y) < SMALL || self.is_alone() {
            return f(0, y);
        }
        let rows = (y.len() / width.max(1)).div_ceil(4 * self.threads()).max(1);
        let pieces = Chunks::new(y, rows * width);
        self.run(pieces.count(), &|i| f(i * rows, pieces.take(i)));
    }
}

/// Minimum size in bytes for which another thread is worth its cost.
const SMALL: usize = 64 << 10;

/// Extends the lifetime of the reference for the threads of a team.
#[allow(unsafe_code)]
fn forget_lifetime(f: &(dyn Fn(usize) + Sync)) -> &'static (dyn Fn(usize) + Sync) {
    // SAFETY: only `Team::run` calls this. A thread reads the reference from `Shared::job` only
    // after it has joined the job, which is possible only while the job is open. `run` closes the
    // job, waits until all joined threads have left (panics of tasks are caught), and removes the
    // reference from `Shared::job` before it returns.
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
    /// The main loop of a worker.
    fn work(&self, index: usize) {
        let mut last = 0;
        while let Some(number) = self.join(index, last) {
            last = number;
            // not in the condition of `if`, where the lock would be held while tasks run
            let job = *lock(&self.job);
            if let Some(job) = job {
                self.tasks(job);
            }
            self.leave();
        }
    }

    /// Leaves a job. The last thread to leave wakes the caller if it sleeps.
    fn leave(&self) {
        // SeqCst here and in `all_left`: either the caller sees that this thread has left, or this
        // thread sees the caller's flag.
        let before = self.state.0.fetch_sub(1, Ordering::SeqCst);
        if before & (JOINED | WAITED) == 1 | WAITED
            && let Some(caller) = lock(&self.caller).take()
        {
            caller.unpark();
        }
    }

    /// Waits until all threads have left the job, which is closed.
    fn all_left(&self) {
        let busy = || self.state.0.load(Ordering::SeqCst) & JOINED != 0;
        let mut since = None;
        let mut spins = 0u32;
        while busy() {
            std::hint::spin_loop();
            spins += 1;
            if spins.is_multiple_of(64) && since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                while busy() {
                    // set again after every wake-up, which may come from a thread that was slow to
                    // leave an earlier job and has taken the handle
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

    /// Waits for a job after `last` and joins it; `None` if the pool stops.
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

    /// Sleeps until woken, unless there is a job after `last` or the pool stops.
    fn sleep(&self, index: usize, last: u64) {
        self.asleep[index].store(true, Ordering::SeqCst);
        let state = self.state.0.load(Ordering::SeqCst);
        if state & STOP == 0 && (state & OPEN == 0 || state >> JOB == last) {
            // Whoever opens a job after this flag is set sees the flag. A spurious wake-up is
            // harmless.
            std::thread::park();
        }
        self.asleep[index].store(false, Ordering::SeqCst);
    }

    /// Runs tasks until there are no more.
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
            // the other threads begin no further tasks
            self.next.0.store(job.tasks, Ordering::Relaxed);
            lock(&self.panic).get_or_insert(Panic(payload));
        }
    }
}
