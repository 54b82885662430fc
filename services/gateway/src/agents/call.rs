//! One call of an agent: its span, its metrics, and where its time went.

use std::time::Duration;

use autoact_planning::{Failure, Reply};
use autoact_trajectory::{CallKind, TaskKey, Usage};
use tokio::time::Instant;
use tracing::Instrument;
use tracing::field::Empty;

use crate::agents::patience::{Attempt, Patience};
use crate::agents::route::Route;

/// Makes a call, again while that may help. The usage's `total` is the attempt that worked, as we
/// saw it.
pub(crate) async fn ask<T, F>(
    kind: CallKind,
    task: &TaskKey,
    patience: Patience,
    route: &Route,
    call: impl FnMut(Attempt) -> F,
) -> Result<Reply<T>, Failure>
where
    F: Future<Output = Result<(T, Usage), Failure>>,
{
    let name = match kind {
        CallKind::Speak(role) => role.as_str(),
        CallKind::Execute => "tool",
    };
    let span = tracing::info_span!(
        "invoke_agent",
        otel.name = format!("invoke_agent {name}"),
        otel.kind = "client",
        otel.status_code = Empty,
        gen_ai.operation.name = "invoke_agent",
        gen_ai.agent.name = name,
        gen_ai.conversation.id = task.id.as_str(),
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        "error.type" = Empty,
    );
    let started = Instant::now();
    let (answer, last) = patience.attempts(Some(route), call).instrument(span.clone()).await;
    match answer {
        Ok((value, mut usage)) => {
            usage.total = last.elapsed();
            span.record("gen_ai.usage.input_tokens", usage.prompt_tokens);
            span.record("gen_ai.usage.output_tokens", usage.completion_tokens);
            measure(name, kind, &usage);
            Ok(Reply { value, usage, retry: last - started })
        }
        Err(failure) => {
            span.record("otel.status_code", "ERROR");
            span.record("error.type", failure.class.as_str());
            metrics::counter!("autoact_agent_failures_total", "agent" => name, "class" => failure.class.as_str()).increment(1);
            tracing::warn!(%task, failure = failure.chain(), class = failure.class.as_str(), "an agent gave no answer");
            Err(failure)
        }
    }
}

fn measure(name: &'static str, kind: CallKind, usage: &Usage) {
    let record = |phase: &'static str, took: Duration| {
        metrics::histogram!("autoact_agent_call_seconds", "agent" => name, "phase" => phase).record(took.as_secs_f64());
    };
    if kind == CallKind::Execute {
        record("tool", if usage.tool.is_zero() { usage.total } else { usage.tool });
        return;
    }
    for (phase, took) in [("queue", usage.queue), ("prefill", usage.prefill), ("decode", usage.decode), ("total", usage.total)] {
        record(phase, took);
    }
}
