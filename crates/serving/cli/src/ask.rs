//! `autoact ask` and `autoact watch`: a task's events as they arrive, across gateways that stop and
//! start.

use std::time::Duration;

use anyhow::Context as _;
use autoact_client::{Following, Update};
use autoact_wire::v1::{self, trajectory_event::Body};
use tonic::{Code, Status};

use crate::args::{Approvals, AskOptions, WatchOptions, next_attempt};
use crate::client::{self, Gateway, Service};
use crate::context;
use crate::exit;
use crate::json;
use crate::out::{self, Live, Passing};
use crate::person::Person;
use crate::text::plain;
use crate::view::View;
use crate::words::{self, Words};

/// How long a cancellation may take: whoever pressed Ctrl-C wants to leave.
const CANCEL_LIMIT: Duration = Duration::from_secs(5);

/// How events are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Show {
    Lines,
    /// With the agents' words while they are written, or without.
    Json {
        deltas: bool,
    },
    AnswerOnly,
}

impl Show {
    /// Whether the agents' words are shown while they are written. As lines only where they can be
    /// taken away again: the event that follows has the whole reply.
    fn words(self) -> bool {
        match self {
            Show::Lines => out::is_live(),
            Show::Json { deltas } => deltas,
            Show::AnswerOnly => false,
        }
    }
}

/// Asks and watches until the task has finished; Ctrl-C cancels the task.
pub(crate) async fn run(gateway: &str, options: AskOptions) -> anyhow::Result<u8> {
    let show = if options.json {
        Show::Json { deltas: options.deltas }
    } else if options.quiet {
        Show::AnswerOnly
    } else {
        Show::Lines
    };
    ask(gateway, request(&options)?, show, options.reconnect).await
}

/// Sends a task to the gateway and shows its events; the exit code says whether the answer was
/// approved, or that there is none.
pub(crate) async fn ask(gateway: &str, task: v1::SubmitTaskRequest, show: Show, reconnect: Duration) -> anyhow::Result<u8> {
    let mut client = client::gateway(gateway)?;
    let mut following = Following::ask(client.clone(), gateway, task, reconnect).with_words(show.words());
    let mut answering = client.clone();
    let told = tokio::select! {
        told = follow(&mut answering, &mut following, show, 0) => Some(told),
        _ = tokio::signal::ctrl_c() => None,
    };
    match told {
        Some(Ok(code)) => Ok(code),
        Some(Err(error)) => Err(lost(error, &following, gateway).await),
        None => {
            cancel(&mut client, following.task_id()).await;
            Ok(exit::INTERRUPTED)
        }
    }
}

/// Watches a task that was submitted before; Ctrl-C only stops watching.
pub(crate) async fn watch(gateway: &str, options: WatchOptions) -> anyhow::Result<u8> {
    let mut client = client::gateway(gateway)?;
    // from the beginning, whatever is shown: steps are counted, and the end is known, from the
    // events
    let show = if options.json { Show::Json { deltas: options.deltas } } else { Show::Lines };
    let mut following = Following::watch(client.clone(), gateway, options.id, 0, options.reconnect).with_words(show.words());
    let told = tokio::select! {
        told = follow(&mut client, &mut following, show, options.after) => Some(told),
        _ = tokio::signal::ctrl_c() => None,
    };
    match told {
        Some(Ok(code)) => Ok(code),
        Some(Err(error)) => Err(lost(error, &following, gateway).await),
        None => {
            out::note(format_args!("the task goes on; {}", again(&following)));
            Ok(exit::INTERRUPTED)
        }
    }
}

/// What brings a task back to the screen.
fn again(following: &Following) -> String {
    format!("watch it again with `autoact watch {} --after {}`", following.task_id(), following.sequence())
}

/// Ends a task, within bounds; a second Ctrl-C does not wait for that.
async fn cancel(client: &mut Gateway, task_id: &str) {
    let request = client.cancel_task(v1::CancelTaskRequest { task_id: task_id.to_owned() });
    let cancelled = tokio::select! {
        cancelled = tokio::time::timeout(CANCEL_LIMIT, request) => cancelled,
        _ = tokio::signal::ctrl_c() => return,
    };
    match cancelled {
        Ok(Ok(_)) => out::note(format_args!("cancelled task {task_id}")),
        // it was not submitted yet
        Ok(Err(status)) if status.code() == Code::NotFound => {}
        _ => out::note(format_args!(
            "task {task_id} may still run: the gateway does not answer; cancel it with `autoact tasks cancel {task_id}`"
        )),
    }
}

fn request(options: &AskOptions) -> anyhow::Result<v1::SubmitTaskRequest> {
    Ok(v1::SubmitTaskRequest {
        context: context::message(&options.context)?,
        task_id: options.id.clone().unwrap_or_default(),
        question: options.question.clone(),
        conversation_id: options.conversation.clone().unwrap_or_default(),
        tools: options.tools.clone(),
        multiline_answer: options.multiline,
        min_confidence: options.min_confidence,
        may_ask: options.may_ask,
        next_attempt: next_attempt(options.next_attempt),
        approval: options.approval.map_or(v1::ApprovalPolicy::Unspecified, |approval| match approval {
            Approvals::Tools => v1::ApprovalPolicy::Tools,
            Approvals::Untrusted => v1::ApprovalPolicy::Untrusted,
            Approvals::Effects => v1::ApprovalPolicy::Effects,
        }) as i32,
        limits: Some(v1::Limits {
            max_steps: options.max_steps,
            max_time: options.timeout.and_then(|time| time.try_into().ok()),
            ..v1::Limits::default()
        }),
        sampling: Some(v1::SamplingParams { temperature: options.temperature, seed: options.seed, ..v1::SamplingParams::default() }),
        ..v1::SubmitTaskRequest::default()
    })
}

/// Shows the events after the sequence `after`, until the task's end. What stands on the terminal
/// only for a while is gone when this returns or is dropped.
async fn follow(client: &mut Gateway, following: &mut Following, show: Show, after: u64) -> anyhow::Result<u8> {
    let mut view = View::new();
    let mut waiting = Passing::default();
    let (mut words, mut live) = (Words::default(), Live::default());
    let mut finished = None;
    let mut person = Person::default();
    let task_id = following.task_id().to_owned();
    loop {
        let update = tokio::select! {
            update = following.next() => update,
            line = person.line() => {
                person.said(client, &task_id, &line).await;
                continue;
            }
        };
        let Some(update) = update else { break };
        let event = match update? {
            Update::Event { event, .. } => event,
            Update::Words(delta) => {
                match show {
                    Show::Json { .. } => out::line(json::delta(following.task_id(), &delta))?,
                    Show::Lines if words.add(&delta) => {
                        live.show(|columns| words::rows(&view.beginning(words.call()), words.text(), columns))?;
                    }
                    Show::Lines | Show::AnswerOnly => {}
                }
                continue;
            }
            Update::Interrupted { .. } => {
                live.clear()?;
                waiting.show("the connection to the gateway is gone; looking for it again …");
                continue;
            }
            Update::Resumed => {
                waiting.clear();
                continue;
            }
        };
        words.end(&event.call_id);
        live.clear()?;
        let line = view.line(&event);
        if event.sequence > after {
            match show {
                Show::Json { .. } => out::line(json::event(&event))?,
                Show::Lines => line.map_or(Ok(()), out::line)?,
                Show::AnswerOnly => {}
            }
        }
        match event.body {
            Some(Body::InputRequested(asked)) => person.ask(&task_id, &asked, show == Show::Lines),
            Some(Body::InputGiven(_)) => person.settled(),
            Some(Body::Finished(body)) => {
                person.settled();
                finished = Some(body);
            }
            _ => {}
        }
    }
    let finished = finished.context("the events ended before the task did")?;
    match show {
        Show::Lines => out::text(format_args!("\n{}", view.table()))?,
        Show::AnswerOnly => out::line(plain(&finished.answer))?,
        Show::Json { .. } => {}
    }
    Ok(match finished.reason() {
        _ if finished.approved => exit::OK,
        v1::FinishReason::NoAnswer => exit::NO_ANSWER,
        _ => exit::UNAPPROVED,
    })
}

/// Why a task was left before its end, and how to come back to it.
async fn lost(error: anyhow::Error, following: &Following, gateway: &str) -> anyhow::Error {
    match error.downcast::<Status>() {
        Ok(status) => {
            if following.has_begun() {
                out::note(format_args!("task {} may still run; {}", following.task_id(), again(following)));
            }
            client::explain(status, Service::Gateway, gateway).await
        }
        Err(error) => error,
    }
}
