//! What can go wrong on the bus.

use autoact_trajectory::{Digest, TaskKey};
use autoact_wire::event::EventError;
use autoact_wire::store::EventTooLarge;

/// An error of the bus.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// No server answered.
    #[error("NATS is not reachable at `{url}`; fix: start one with `autoact up`, or set `AUTOACT_NATS__URL`")]
    Unreachable {
        /// The servers, without passwords.
        url: String,
        /// What the last attempt said.
        source: async_nats::ConnectError,
    },
    /// The URL is not one.
    #[error("`{url}` is not a NATS address; expected something like `nats://127.0.0.1:4222`")]
    Address {
        /// What was configured, without passwords.
        url: String,
    },
    /// The server refuses the login.
    #[error(
        "NATS at `{url}` refuses the login; fix: check `nats.nkey_file`, the user and password in `AUTOACT_NATS__URL`, or the credentials file, and the server's users (`autoact nats config`)"
    )]
    Login {
        /// The servers, without passwords.
        url: String,
        /// What the server said.
        source: async_nats::Error,
    },
    /// One side does not believe the other's certificate, or does not speak TLS.
    #[error(
        "no TLS connection to NATS at `{url}`: one side does not accept the other's certificate, or does not speak TLS; \
         fix: check `nats.ca`, `nats.cert` and `nats.key`, and the `tls` block of nats-server"
    )]
    Untrusted {
        /// The servers, without passwords.
        url: String,
        /// What went wrong.
        source: async_nats::Error,
    },
    /// The server does not let this user do what was tried.
    #[error(
        "NATS does not let `{name}` {what} `{subject}`; fix: log in as the user of this service (`nats.nkey_file`), \
         or give it the permissions that `autoact nats users` shows"
    )]
    Forbidden {
        /// The name of the connection, which begins with the service's.
        name: String,
        /// `publish to` or `listen to`.
        what: &'static str,
        /// What it was.
        subject: String,
    },
    /// The settings contradict each other.
    #[error("{0}")]
    Settings(String),
    /// The file of the login cannot be used.
    #[error("cannot use the NATS login in `{path}`")]
    Credentials {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A server without JetStream.
    #[error("NATS at `{url}` has no JetStream; fix: start `nats-server` with `-js`")]
    NoJetStream {
        /// The servers, without passwords.
        url: String,
    },
    /// A stream or consumer cannot be made.
    #[error("cannot create `{name}` on NATS; fix: if it says `insufficient`, lower `bus.max_bytes` or give JetStream more room")]
    Create {
        /// The stream or consumer.
        name: String,
        /// What the server said.
        source: async_nats::Error,
    },
    /// A stream of that name is there and is another one.
    #[error("stream `{stream}` has {field} `{found}`, autoact needs `{expected}`; fix: rename or remove that stream")]
    Mismatch {
        /// The stream.
        stream: String,
        /// What differs.
        field: &'static str,
        /// What we need.
        expected: String,
        /// What is there.
        found: String,
    },
    /// The bus holds trajectories of the release before: they are moved once, while no gateway
    /// runs.
    #[error("the bus holds {events} events of schema version 1; fix: stop every gateway of the release before, then run `autoact migrate`")]
    Version1 {
        /// How many events there are.
        events: u64,
    },
    /// A stream is gone, or was made anew, since the bus was first used: the server lost its disk, or
    /// somebody removed the stream. Nothing is stored in its place.
    #[error(
        "stream `{stream}` is not there any more, or was made anew: what it held is lost; \
         fix: stop the gateways, bring the streams back with `autoact restore`, and start the gateways again"
    )]
    Vanished {
        /// The stream.
        stream: String,
    },
    /// The server acknowledges what is not on its disk yet.
    #[error(
        "nats-server `{server}` acknowledges before it writes to its disk; fix: set `sync_interval: always` in its `jetstream` block, \
         or accept that acknowledged events may be lost with `bus.allow_unsynced = true`"
    )]
    Unsynced {
        /// Its name.
        server: String,
    },
    /// Nobody has said where the server tells whether it does.
    #[error(
        "it is unknown whether NATS writes to its disk before it acknowledges; fix: name its HTTP monitoring with `bus.monitoring`, \
         or accept that acknowledged events may be lost with `bus.allow_unsynced = true`"
    )]
    UnknownDurability,
    /// The server's monitoring does not answer.
    #[error(
        "the monitoring of NATS at `{url}` does not answer; fix: set `http: \"HOST:PORT\"` in its configuration, or correct `bus.monitoring`"
    )]
    Monitoring {
        /// The address.
        url: String,
        /// Why.
        source: async_nats::Error,
    },
    /// Another writer was faster: what the caller knows of the task is out of date.
    #[error("task `{task}` has moved on: expected its last event at sequence `{expected}`, found `{found}`")]
    Conflict {
        /// The task.
        task: TaskKey,
        /// What the caller believed.
        expected: u64,
        /// What the bus holds; 0 for nothing.
        found: u64,
    },
    /// The event is larger than may be stored.
    #[error(transparent)]
    TooLarge(#[from] EventTooLarge),
    /// The server refuses a message for its size: it allows less than autoact stores.
    #[error("NATS refuses a message of {bytes} bytes; fix: set `max_payload` of nats-server to its default of 1MB or more")]
    MessageTooLarge {
        /// Its size without headers.
        bytes: usize,
    },
    /// The server has no room; the same call may succeed once something has expired or the bounds
    /// are raised.
    #[error("the bus cannot {what}: it is full; fix: raise the bound of that stream or bucket with `nats stream edit`")]
    Full {
        /// What was tried.
        what: &'static str,
        /// What the server said.
        source: async_nats::Error,
    },
    /// A tool's specification is not where its task says: the task cannot be read until it is there
    /// again.
    #[error(
        "the bucket `{}` lacks `{digest}`, the specification of tool `{tool}` of task `{task}`; fix: restore the bucket",
        crate::tool_bucket::BUCKET
    )]
    MissingTool {
        /// The task.
        task: TaskKey,
        /// The tool's name.
        tool: String,
        /// SHA-256 of the specification.
        digest: Digest,
    },
    /// An artifact's bytes are gone.
    #[error("the bytes of artifact `{name}` of task `{task}` are not there; they have expired, or were deleted")]
    MissingArtifact {
        /// The task.
        task: TaskKey,
        /// The artifact's name.
        name: String,
    },
    /// The bus does not answer, or not in time; the same call may succeed later.
    #[error("the bus cannot {what} now")]
    Unavailable {
        /// What was tried.
        what: &'static str,
        /// What the last attempt said.
        source: async_nats::Error,
    },
    /// Something on the bus is not an event we can read.
    #[error("message `{sequence}` of task `{task}` cannot be read")]
    Unreadable {
        /// The task.
        task: TaskKey,
        /// Where it lies.
        sequence: u64,
        /// What is wrong with it.
        source: EventError,
    },
    /// Something in the bucket of adapter versions is no announcement.
    #[error("the bucket `{bucket}` holds something that is no announcement of an adapter version; fix: promote a version again")]
    UnreadableAnnouncement {
        /// The bucket.
        bucket: &'static str,
        /// Where the JSON went wrong.
        source: serde_json::Error,
    },
}

impl BusError {
    /// Whether the same call may succeed later.
    pub fn retryable(&self) -> bool {
        matches!(
            self,
            BusError::Unavailable { .. }
                | BusError::Unreachable { .. }
                | BusError::Monitoring { .. }
                | BusError::Full { .. }
                | BusError::MissingTool { .. }
        )
    }

    pub(crate) fn unavailable(what: &'static str, source: impl Into<async_nats::Error>) -> BusError {
        BusError::Unavailable { what, source: source.into() }
    }
}
