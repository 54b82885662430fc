//! The log of a task on JetStream.

use async_trait::async_trait;
use autoact_bus::{Bus, BusError};
use autoact_planning::{Appended, EventLog, Failure, FailureClass};
use autoact_trajectory::{Artifact, Event, EventBody, NewArtifact, Reflection, TaskKey};
use tracing::Instrument;

/// Appends to a task's subject.
pub(crate) struct JetStreamLog {
    pub(crate) bus: Bus,
}

#[async_trait]
impl EventLog for JetStreamLog {
    type Error = BusError;

    async fn append(&mut self, event: &Event, after: u64) -> Result<Appended, BusError> {
        append(&self.bus, event, after).await
    }

    async fn keep(&mut self, task: &TaskKey, artifact: &NewArtifact) -> Result<Artifact, Failure> {
        let span = tracing::info_span!(
            "keep_artifact",
            otel.name = "put autoact.artifacts",
            otel.kind = "producer",
            messaging.system = "nats",
            messaging.message.body.size = artifact.data.len(),
            gen_ai.conversation.id = task.id.as_str(),
        );
        match self.bus.keep_artifact(task, artifact).instrument(span).await {
            Ok(kept) => {
                metrics::counter!("autoact_artifacts_total").increment(1);
                metrics::counter!("autoact_artifact_bytes_total").increment(kept.bytes);
                Ok(kept)
            }
            // room comes back, and so does the bus: the task waits for both
            Err(error) => Err(Failure::new(FailureClass::Busy, "the store of artifacts", error)),
        }
    }
}

/// Appends an event in a span of its own.
pub(crate) async fn append(bus: &Bus, event: &Event, after: u64) -> Result<Appended, BusError> {
    let span = tracing::info_span!(
        "append",
        otel.name = "publish autoact.trajectory",
        otel.kind = "producer",
        messaging.system = "nats",
        messaging.operation.name = "publish",
        messaging.destination.name = "autoact.trajectory",
        gen_ai.conversation.id = event.task_id.as_str(),
        autoact.event = event.body.name(),
        autoact.index = event.index,
    );
    let stored = bus.append(event, after).instrument(span).await?;
    match &event.body {
        EventBody::Thought(_) => metrics::counter!("autoact_steps_total").increment(1),
        EventBody::Shortened(shortened) => {
            let kind = if shortened.shortening.left_out > 0 { "steps" } else { "observations" };
            metrics::counter!("autoact_histories_shortened_total", "kind" => kind).increment(1);
        }
        EventBody::Reflection(reflection) => count_verdict(reflection),
        _ => {}
    }
    Ok(Appended { sequence: stored.sequence, digest: Some(stored.digest) })
}

/// Counts a verdict with its confidence, where it has one.
fn count_verdict(reflection: &Reflection) {
    let verdict = reflection.verdict.as_str();
    let calibrated = if reflection.confidence.is_some() { "true" } else { "false" };
    metrics::counter!("autoact_verdicts_total", "verdict" => verdict, "calibrated" => calibrated).increment(1);
    if let Some(confidence) = reflection.confidence {
        metrics::histogram!("autoact_verdict_confidence", "verdict" => verdict).record(confidence);
    }
}
