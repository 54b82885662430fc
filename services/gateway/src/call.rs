//! One call of an agent: its span, its metrics, where its time went, and the signals that end it early.

use std::time::Duration;

use autoact_trajectory::{TaskId, Usage};
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::Instrument;
use tracing::field::Empty;

use crate::agents::AgentError;
use crate::retry::Patience;
use crate::run::Signal;

/// The call that runs an action, beside the one that fills in its parameters.
pub(crate) const EXECUTE: &str = "execute";

/// What came of asking an agent.
pub(crate) enum Answer<T> {
    Here(T),
    Failed(AgentError),
    /// A signal came first.
    Interrupted,
}

impl<T> Answer<T> {
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Answer<U> {
        match self {
            Answer::Here(answer) => Answer::Here(change(answer)),
            Answer::Failed(error) => Answer::Failed(error),
            Answer::Interrupted => Answer::Interrupted,
        }
    }
}

/// An agent's answer, and how long it took to get to the attempt that gave it; for an error, to give up.
pub(crate) struct Asked<T> {
    pub(crate) answer: Result<(T, Usage), AgentError>,
    pub(crate) retry: Duration,
}

/// Waits for a call, or for a signal; the call is dropped then, and with it the work behind it.
pub(crate) async fn interruptible<T>(signals: &mut watch::Receiver<Signal>, call: impl Future<Output = T>) -> Option<T> {
    // also true for one that came before, while an event was stored
    let signal = async {
        if signals.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        biased;
        () = signal => None,
        answer = call => Some(answer),
    }
}

/// Asks an agent, again while it is away or busy. The usage's `total` is the attempt that worked, as we saw it.
pub(crate) async fn ask<T, F>(agent: &'static str, task: &TaskId, patience: Patience, call: impl FnMut(Duration) -> F) -> Asked<T>
where
    F: Future<Output = Result<(T, Usage), AgentError>>,
{
    let name = if agent == EXECUTE { "tool" } else { agent };
    let span = tracing::info_span!(
        "invoke_agent",
        otel.name = format!("invoke_agent {name}"),
        otel.kind = "client",
        otel.status_code = Empty,
        gen_ai.operation.name = "invoke_agent",
        gen_ai.agent.name = name,
        gen_ai.conversation.id = task.as_str(),
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        "error.type" = Empty,
    );
    let started = Instant::now();
    let (answer, last) = patience.attempts(call).instrument(span.clone()).await;
    match answer {
        Ok((answer, mut usage)) => {
            usage.total = last.elapsed();
            span.record("gen_ai.usage.input_tokens", usage.prompt_tokens);
            span.record("gen_ai.usage.output_tokens", usage.completion_tokens);
            measure(name, agent, &usage);
            Asked { answer: Ok((answer, usage)), retry: last - started }
        }
        Err(error) => {
            span.record("otel.status_code", "ERROR");
            span.record("error.type", if error.unreachable() { "unavailable" } else { "failed" });
            metrics::counter!("autoact_agent_failures_total", "agent" => name).increment(1);
            Asked { answer: Err(error), retry: started.elapsed() }
        }
    }
}

fn measure(name: &'static str, call: &'static str, usage: &Usage) {
    let record = |phase: &'static str, took: Duration| {
        metrics::histogram!("autoact_agent_call_seconds", "agent" => name, "phase" => phase).record(took.as_secs_f64());
    };
    if call == EXECUTE {
        record("tool", if usage.tool.is_zero() { usage.total } else { usage.tool });
        return;
    }
    for (phase, took) in [("queue", usage.queue), ("prefill", usage.prefill), ("decode", usage.decode), ("total", usage.total)] {
        record(phase, took);
    }
}
