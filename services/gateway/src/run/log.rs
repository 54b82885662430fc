//! The log of a task on JetStream.

use async_trait::async_trait;
use autoact_bus::{Bus, BusError};
use autoact_planning::{Appended, EventLog};
use autoact_trajectory::{Event, EventBody};
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
        _ => {}
    }
    Ok(Appended { sequence: stored.sequence, digest: Some(stored.digest) })
}
