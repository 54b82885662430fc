//! Runs one task: decide, act, append, and again until it has ended.
//!
//! Plain async code that reads from top to bottom. It knows no transport, no runtime and no actor.

mod acting;
mod recall;
mod room;
mod storing;

use std::future::Future;
use std::pin::pin;
use std::time::{Duration, SystemTime};

use autoact_trajectory::{
    Action, Artifact, Decision, Event, EventBody, FinishReason, FoldError, MAX_DETAIL_BYTES, ReleaseReason, Released, Role, Started,
    Submitted, Task, TaskKey, ToolSpec, Trajectory, Usage, Verdict, cut, decide,
};

use crate::agents::{Agents, Call, Reply};
use crate::clock::{Clock, Wall};
use crate::contexts::bytes_beside;
use crate::driver::room::Known;
use crate::driver::storing::{Storing, Unstored, beside};
use crate::failure::{Failure, FailureClass};
use crate::log::{Appended, EventLog};

/// How a driver runs its task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DriverOptions {
    /// Who writes the events.
    pub writer: String,
    /// After how many verdicts "wrong" Reflect-Agent is no longer asked: the next answer stays the
    /// last step of an unfinished task. 0: the first one does. `None`: every answer is judged.
    pub judgements: Option<u32>,
}

/// What a step of the driver came to.
#[derive(Debug)]
pub enum Progress {
    /// There is another event, and more to do. The event is stored beside the call of a model that
    /// comes next, or is stored already.
    Advanced,
    /// The task has ended.
    Ended,
    /// There is an answer, and by the options Reflect-Agent is not asked, or no longer.
    Answered,
    /// The interrupt came before the call's answer; nothing was stored.
    Interrupted,
    /// The task waits for a person: it is paused, or asks. Nothing is to be done until somebody says
    /// something.
    Held,
    /// Somebody the task needs is away, busy or slow; nothing was stored. The same step may be
    /// tried again.
    Waiting(Failure),
}

/// Why the driver cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Stop<E: std::error::Error + 'static> {
    /// The event was not stored.
    #[error(transparent)]
    Log(E),
    /// An event does not continue the task: a mistake in the program, or somebody else's event.
    #[error("an event does not continue its task")]
    Fold(#[from] FoldError),
}

/// A task, the group that works at it, and the log of what happened.
///
/// While an event is being stored, the next model can already be asked: what it says changes
/// nothing in the world. Nothing else happens before the event is stored, tools least of all.
pub struct Driver<L> {
    agents: Agents,
    log: L,
    options: DriverOptions,
    task: Task,
    /// The task's last event, if it has yet to be stored.
    unstored: Option<Unstored>,
    clock: Clock,
    wall: Wall,
    /// The most bytes of a prompt that are not of its transcript.
    beside: usize,
    /// What is known of the length of its prompts.
    known: Option<Known>,
}

/// What an event is made of.
struct Said {
    body: EventBody,
    /// What the call cost that led to it.
    usage: Option<Usage>,
    /// What comes with it for people; stored.
    artifacts: Vec<Artifact>,
}

impl From<EventBody> for Said {
    fn from(body: EventBody) -> Self {
        Said { body, usage: None, artifacts: Vec::new() }
    }
}

/// What came of a call.
#[expect(clippy::large_enum_variant, reason = "one at a time, and most are of the large variant")]
enum Called {
    Said(Said),
    Failed(Failure),
    Interrupted,
}

impl<L: EventLog> Driver<L> {
    /// Accepts a task and takes it up: stores its first two events.
    ///
    /// # Errors
    /// An event was not stored.
    pub async fn begin(
        agents: Agents,
        mut log: L,
        options: DriverOptions,
        key: &TaskKey,
        submitted: Submitted,
    ) -> Result<Driver<L>, Stop<L::Error>> {
        let mut event = Event::new(key, 1, SystemTime::now(), options.writer.clone(), EventBody::Submitted(submitted));
        let stored = log.append(&event, 0).await.map_err(Stop::Log)?;
        (event.sequence, event.digest) = (stored.sequence, stored.digest);
        Driver::take_up(agents, log, options, Task::begin(&event)?).await
    }

    /// Goes on with a task as its events say it is, and stores that it does.
    ///
    /// # Errors
    /// The event was not stored.
    pub async fn take_up(agents: Agents, log: L, options: DriverOptions, task: Task) -> Result<Driver<L>, Stop<L::Error>> {
        Driver::take_up_at(agents, log, options, task, Duration::ZERO, SystemTime::now()).await
    }

    /// The same, for a caller that has read the task from a log for `reading`, and whose time is
    /// `now`: all who share a log should mean the same, since a task's time goes on from one holder
    /// to the next.
    ///
    /// # Errors
    /// The event was not stored.
    pub async fn take_up_at(
        agents: Agents,
        log: L,
        options: DriverOptions,
        task: Task,
        reading: Duration,
        now: SystemTime,
    ) -> Result<Driver<L>, Stop<L::Error>> {
        let mut clock = Clock::start();
        clock.read(reading);
        let started = Started { gateway: options.writer.clone(), attempt: task.attempt().saturating_add(1) };
        let beside = bytes_beside(task.trajectory());
        let mut driver = Driver { agents, log, options, task, unstored: None, clock, wall: Wall::at(now), beside, known: None };
        driver.append(EventBody::Started(started)).await?;
        Ok(driver)
    }

    /// The task as it stands.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// The task and the log. An event that has yet to be stored is not in the log; see
    /// [`settle`](Self::settle).
    pub fn into_parts(self) -> (Task, L) {
        (self.task, self.log)
    }

    /// Does the next thing. `interrupt` ends a call that is being waited for; it is dropped then,
    /// and with it the work behind it. An event that is being stored is never interrupted. After
    /// [`Progress::Advanced`], the last event may have yet to be stored; after any other progress it
    /// is.
    ///
    /// # Errors
    /// An event was not stored, or does not continue the task.
    pub async fn step(&mut self, interrupt: impl Future<Output = ()>) -> Result<Progress, Stop<L::Error>> {
        let decision = decide(&self.task, self.wall.now());
        let mut interrupt = pin!(interrupt);
        let role = match decision {
            Decision::Plan => Some(Role::Plan),
            Decision::Parameterize => Some(Role::Tool),
            Decision::Reflect if self.judges() => Some(Role::Reflect),
            _ => None,
        };
        if role.is_none() {
            self.settle().await?;
        }
        if let Some(role) = role
            && let Some(progress) = self.make_room(role, interrupt.as_mut()).await?
        {
            return Ok(progress);
        }
        let called = match decision {
            Decision::Done => return Ok(Progress::Ended),
            Decision::Hold => return Ok(Progress::Held),
            Decision::Request(asked) => return self.store(EventBody::InputRequested(asked)).await,
            Decision::Observe(seen) => return self.store(EventBody::Observation(self.task.observe(seen))).await,
            Decision::Finish(finished) => return self.store(EventBody::Finished(finished)).await,
            Decision::Reflect if !self.judges() => return Ok(Progress::Answered),
            // boxed: it happens once, and its state would be part of every step
            Decision::Recall => return Box::pin(self.recall(interrupt)).await,
            Decision::Plan => self.plan(interrupt.as_mut()).await?,
            Decision::Parameterize => self.parameterize(interrupt.as_mut()).await?,
            Decision::Execute { action, may_have_run, .. } => self.execute(&action, may_have_run, interrupt.as_mut()).await,
            Decision::Reflect => self.reflect(interrupt.as_mut()).await?,
        };
        match called {
            Called::Said(said) => match said.body.check_bounds() {
                Ok(()) => {
                    let told = role.and(said.usage.clone());
                    let progress = self.store(said).await?;
                    if let Some(usage) = told {
                        self.told(&usage);
                    }
                    Ok(progress)
                }
                Err(error) => self.failed(Failure::new(FailureClass::Broken, "the reply", error)).await,
            },
            Called::Interrupted => Ok(Progress::Interrupted),
            Called::Failed(failure) => {
                // a prompt that was refused as too long is made shorter, if anything can be left
                // out
                if let (Some(role), Some(size)) = (role, failure.too_long)
                    && let Some(progress) = self.shorten(role, Some(size), interrupt).await?
                {
                    return Ok(progress);
                }
                self.failed(failure).await
            }
        }
    }

    /// Runs the task to its end. Whoever is away is not waited for: the task ends as failed.
    ///
    /// # Errors
    /// An event was not stored.
    pub async fn run(&mut self) -> Result<(), Stop<L::Error>> {
        loop {
            match self.step(std::future::pending()).await? {
                Progress::Advanced | Progress::Interrupted => {}
                Progress::Ended | Progress::Answered => return Ok(()),
                Progress::Held => return self.fail("it waits for a person, and nobody can answer here").await,
                Progress::Waiting(failure) => return self.fail(&failure.chain()).await,
            }
        }
    }

    /// Ends the task as failed.
    ///
    /// # Errors
    /// The event was not stored.
    pub async fn fail(&mut self, detail: &str) -> Result<(), Stop<L::Error>> {
        let finished = self.task.finish(FinishReason::Failed, detail);
        self.append(EventBody::Finished(finished)).await
    }

    /// Stores that the holder gives the task back on purpose, so that the next one knows that
    /// nobody crashed.
    ///
    /// # Errors
    /// The event was not stored.
    pub async fn release(&mut self, reason: ReleaseReason, detail: &str, may_have_run: bool) -> Result<(), Stop<L::Error>> {
        let (detail, _) = cut(detail.to_owned(), MAX_DETAIL_BYTES);
        self.append(EventBody::Released(Released { reason, detail, may_have_run })).await
    }

    /// Whether Reflect-Agent is asked about the next answer.
    fn judges(&self) -> bool {
        self.options.judgements.is_none_or(|most| self.task.wrong_verdicts() < most)
    }

    async fn plan(&mut self, interrupt: impl Future<Output = ()>) -> Result<Called, Stop<L::Error>> {
        let shown = self.task.shown();
        let Some(call) = call(&self.task, &shown, self.time_left()) else { return Ok(Called::Interrupted) };
        let unstored = self.unstored.take();
        let asked = unless(interrupt, self.agents.plan.plan(call));
        let (asked, stored) = beside(&mut self.log, unstored, asked).await;
        drop(shown);
        self.stored(stored)?;
        Ok(self.said(asked, EventBody::Thought))
    }

    async fn parameterize(&mut self, interrupt: impl Future<Output = ()>) -> Result<Called, Stop<L::Error>> {
        let shown = self.task.shown();
        let Some(call) = call(&self.task, &shown, self.time_left()) else { return Ok(Called::Interrupted) };
        let unstored = self.unstored.take();
        let tool = self.task.trajectory().open_step().map(|step| step.tool.clone()).unwrap_or_default();
        let asked = unless(interrupt, self.agents.tool.parameterize(call));
        let (asked, stored) = beside(&mut self.log, unstored, asked).await;
        drop(shown);
        self.stored(stored)?;
        Ok(self.said(asked, |params| EventBody::Action(Action { tool, params })))
    }

    async fn reflect(&mut self, interrupt: impl Future<Output = ()>) -> Result<Called, Stop<L::Error>> {
        let shown = self.task.shown();
        let Some(call) = call(&self.task, &shown, self.time_left()) else { return Ok(Called::Interrupted) };
        let unstored = self.unstored.take();
        let asked = unless(interrupt, self.agents.reflect.reflect(call));
        let (asked, stored) = beside(&mut self.log, unstored, asked).await;
        drop(shown);
        self.stored(stored)?;
        let judge = |reply: Reply<_>| Reply { value: self.task.judge(reply.value, &reply.usage), usage: reply.usage, retry: reply.retry };
        let judged = asked.map(|reply| reply.map(judge));
        Ok(self.said(judged, EventBody::Reflection))
    }

    /// An agent's answer as an event's body, its time counted.
    fn said<T>(&mut self, asked: Option<Result<Reply<T>, Failure>>, body: impl FnOnce(T) -> EventBody) -> Called {
        match asked {
            None => Called::Interrupted,
            Some(Err(failure)) => Called::Failed(failure),
            Some(Ok(reply)) => {
                self.clock.called(reply.usage.total, reply.retry);
                Called::Said(Said { usage: Some(reply.usage), ..body(reply.value).into() })
            }
        }
    }

    /// Somebody gave no answer: what passes by itself is waited for while the task has time;
    /// anything else ends the task.
    async fn failed(&mut self, failure: Failure) -> Result<Progress, Stop<L::Error>> {
        self.settle().await?;
        let mut finished = match decide(&self.task, self.wall.now()) {
            Decision::Finish(mut end) => {
                (end.detail, _) = cut(format!("{}; {}", end.detail, failure.chain()), MAX_DETAIL_BYTES);
                end
            }
            _ if failure.class.passes() => return Ok(Progress::Waiting(failure)),
            _ => self.task.finish(FinishReason::Failed, failure.chain()),
        };
        if failure.class.may_have_run() {
            finished.open_effect = finished.open_effect.or(self.task.side_effect());
        }
        self.store(EventBody::Finished(finished)).await
    }

    async fn store(&mut self, said: impl Into<Said>) -> Result<Progress, Stop<L::Error>> {
        match self.append(said).await {
            Ok(()) => {}
            // a reply that cannot follow, such as a tool that the task does not have: the task's
            // failure, not the program's
            Err(Stop::Fold(error)) if self.task.finished().is_none() => self.fail(&error.to_string()).await?,
            Err(stop) => return Err(stop),
        }
        Ok(if self.task.finished().is_some() { Progress::Ended } else { Progress::Advanced })
    }

    /// Makes the next event, and applies it to the task. Whether it can follow is checked before: a
    /// trajectory that does not fold is of no use. The event is stored here, unless a model is asked
    /// next: then it is stored beside that call.
    async fn append(&mut self, said: impl Into<Said>) -> Result<(), Stop<L::Error>> {
        self.settle().await?;
        let Said { body, usage, artifacts } = said.into();
        let call = usage.as_ref().and(self.task.call());
        let (usage, timing) = (usage.map(Usage::bounded), Some(self.clock.lap()));
        let mut event = Event { call, usage, timing, artifacts, ..self.task.next_event(self.wall.now(), &self.options.writer, body) };
        self.task.check(&event)?;
        if self.asks_next(&event.body) {
            let before = self.task.clone();
            self.task.apply(&event)?;
            self.unstored = Some(Unstored { event, before });
            return Ok(());
        }
        let stored = self.clock.bus(self.log.append(&event, self.task.last_sequence())).await.map_err(Stop::Log)?;
        (event.sequence, event.digest) = (stored.sequence, stored.digest);
        self.task.apply(&event)?;
        Ok(())
    }

    /// Whether a model is asked after such an event, if no bound ends the task.
    fn asks_next(&self, body: &EventBody) -> bool {
        match body {
            EventBody::Thought(_) | EventBody::Observation(_) => true,
            EventBody::Action(action) => self.task.trajectory().tool(&action.tool).is_some_and(ToolSpec::is_terminal),
            EventBody::Reflection(reflection) => reflection.verdict == Verdict::Wrong,
            _ => false,
        }
    }

    /// Stores the last event, if it has yet to be stored: for a holder that stops between two steps.
    ///
    /// # Errors
    /// The event was not stored. The task is as it was before it.
    pub async fn settle(&mut self) -> Result<(), Stop<L::Error>> {
        let unstored = self.unstored.take();
        let (_, stored) = beside(&mut self.log, unstored, std::future::ready(None::<()>)).await;
        self.stored(stored)
    }

    /// How much of its own time the task has left.
    fn time_left(&self) -> Duration {
        let (task, now) = (&self.task, self.wall.now());
        let used = task.started_at().and_then(|started| now.duration_since(started).ok()).unwrap_or_default();
        task.limits().max_time.saturating_sub(used.saturating_sub(task.waited(now)))
    }

    /// Takes in what came of storing the last event: one that was not stored has not happened.
    fn stored(&mut self, stored: Option<Storing<L::Error>>) -> Result<(), Stop<L::Error>> {
        let Some(Storing { before, result, longer }) = stored else { return Ok(()) };
        match result {
            Ok(Appended { sequence, digest }) => {
                self.task.stored(sequence, digest);
                self.clock.waited(longer);
                Ok(())
            }
            Err(error) => {
                self.task = before;
                Err(Stop::Log(error))
            }
        }
    }
}

/// The task's next call, with the history that its receiver is given.
fn call<'a>(task: &'a Task, trajectory: &'a Trajectory, time_left: Duration) -> Option<Call<'a>> {
    let id = task.call()?;
    Some(Call { task: task.key(), id, epoch: task.epoch(), trajectory, sampling: task.sampling_of(id), time_left })
}

/// Waits for a call, or for the interrupt.
async fn unless<T>(interrupt: impl Future<Output = ()>, call: impl Future<Output = T>) -> Option<T> {
    let mut interrupt = std::pin::pin!(interrupt);
    let mut call = std::pin::pin!(call);
    std::future::poll_fn(|context| {
        // also true for one that came before, while an event was stored
        if interrupt.as_mut().poll(context).is_ready() {
            return std::task::Poll::Ready(None);
        }
        call.as_mut().poll(context).map(Some)
    })
    .await
}
