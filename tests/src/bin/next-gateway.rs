//! A gateway of a release to come, for tests of mixed fleets. It runs tasks as this release does,
//! but stores events that this release does not know: a body, fields and a value of an enumeration.

use autoact_service::{Flag, Service, Setup, StartError};
use autoact_trajectory::Event;
use autoact_wire::event::EVENT_VERSION;
use autoact_wire::store::{self, EventTooLarge};
use autoact_wire::store_v2::{self as v2, event::Body};
use gateway::{Gateway, GatewayConfig};
use prost::Message;

/// A reason for the end of a task that this release has no name for.
const APPROVED_BY_A_PERSON: i32 = 42;

/// What the release to come adds to every event.
#[derive(Clone, PartialEq, Message)]
struct Added {
    /// A field of the envelope.
    #[prost(string, tag = "900")]
    region: String,
    /// A body.
    #[prost(message, optional, tag = "901")]
    paused: Option<Paused>,
}

/// The body it writes where this release writes `Released`.
#[derive(Clone, PartialEq, Message)]
struct Paused {
    #[prost(string, tag = "1")]
    until: String,
}

struct NextGateway;

impl Service for NextGateway {
    type Config = GatewayConfig;

    const ABOUT: &'static str = "A gateway of a release to come, for tests of mixed fleets.";

    fn flags() -> Vec<Flag> {
        Gateway::flags()
    }

    async fn build(config: GatewayConfig, setup: &mut Setup) -> Result<(), StartError> {
        gateway::build(config, setup, encode).await
    }
}

fn encode(event: &Event) -> Result<Vec<u8>, EventTooLarge> {
    let bytes = store::encode(event)?;
    let Ok(mut message) = v2::Event::decode(bytes.as_slice()) else { return Ok(bytes) };
    let mut added = Added { region: "north".to_owned(), paused: None };
    message.version = EVENT_VERSION + 1;
    match &mut message.body {
        Some(Body::Released(_)) => {
            message.body = None;
            message.ignorable = true;
            added.paused = Some(Paused { until: "noon".to_owned() });
        }
        Some(Body::Finished(finished)) if finished.approved => finished.reason = APPROVED_BY_A_PERSON,
        _ => {}
    }
    // a message is the sum of its parts' bytes
    let mut bytes = message.encode_to_vec();
    bytes.extend(added.encode_to_vec());
    Ok(bytes)
}

fn main() -> std::process::ExitCode {
    autoact_service::main::<NextGateway>()
}
