//! Threads that compute together.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a thread without work looks for some before it sleeps: longer than the pauses between the products of a
/// token, so that only the first one has to wake it.
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

/// The state word: the number of threads in the job, whether more may join, whether all is over, the job's number.
const JOINED: u64 = 0xffff;
const OPEN: u64 = 1 << 16;
const STOP: u64 = 1 << 17;
const JOB: u32 = 32;

#[derive(Debug)]
struct Shared {
    state: Line<AtomicU64>,
    next: Line<AtomicUsize>,
    job: Mutex<Option<Job>>,
    panic: Mutex<Option<Panic>>,
    asleep: Vec<AtomicBool>,
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
        let mut spins = 0u32;
        while shared.state.0.load(Ordering::Acquire) & JOINED != 0 {
            std::hint::spin_loop();
            spins += 1;
            if spins > 1000 {
                std::thread::yield_now();
            }
        }
        *lock(&shared.job) = None;
        let panic = lock(&shared.panic).take();
        drop(turn);
        if let Some(Panic(payload)) = panic {
            resume_unwind(payload);
        }
    }
}

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
            if let Some(job) = *lock(&self.job) {
                self.tasks(job);
            }
            self.state.0.fetch_sub(1, Ordering::Release);
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
