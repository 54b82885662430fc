//! The connection.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_nats::connection::State as Connection;
use async_nats::jetstream::object_store::ObjectStore;
use async_nats::jetstream::stream::{State, Stream};
use async_nats::jetstream::{self, ContextBuilder};
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, ServerAddr, rustls};
use autoact_config::NatsTls;
use autoact_trajectory as domain;
use autoact_trajectory::{Digest, Tenant};
use autoact_wire::store::{self, EventTooLarge, Mark};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::clock::Clock;
use crate::config::{BusConfig, redacted};
use crate::error::BusError;
use crate::login;
use crate::patience::{Patience, pause};
use crate::refusal::Refusals;
use crate::streams::Streams;
use crate::streams::configs::{drops, kept};
use crate::tool_bucket::ToolCache;

/// One request to JetStream: a healthy server answers in milliseconds, and requests are repeated
/// until the patience is over.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
/// One attempt to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// The bytes of an event that is to be stored.
pub type Encode = fn(&domain::Event) -> Result<Vec<u8>, EventTooLarge>;

/// The end of the index of tasks as this process knows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tail {
    pub(crate) sequence: u64,
    pub(crate) digest: Option<Digest>,
}

/// A connection to the bus; clones share it. It reconnects by itself.
#[derive(Clone)]
pub struct Bus {
    pub(crate) client: Client,
    pub(crate) context: jetstream::Context,
    /// Behind a pointer: what the server says of each is kilobytes, and a bus is in every future.
    pub(crate) streams: Arc<Streams>,
    pub(crate) config: BusConfig,
    pub(crate) tail: Arc<Mutex<Option<Tail>>>,
    pub(crate) encode: Encode,
    pub(crate) tools: Arc<ToolCache>,
    /// Where the artifacts are of the tenants that this process has met.
    pub(crate) stores: Arc<Mutex<HashMap<Tenant, ObjectStore>>>,
    /// A stream that has vanished since the connection was made: nothing works any more.
    pub(crate) vanished: Arc<OnceLock<String>>,
    /// What the server does not let us do.
    pub(crate) refusals: Refusals,
    /// What time it is for the server.
    pub(crate) clock: Arc<Clock>,
}

impl std::fmt::Debug for Bus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bus").field("url", &redacted(&self.config.nats.url)).finish_non_exhaustive()
    }
}

impl Bus {
    /// Connects, trying for as long as the configuration says, and makes the streams that are
    /// missing.
    pub async fn connect(config: BusConfig) -> Result<Bus, BusError> {
        let deadline = Instant::now() + config.connect_limit;
        let (client, refusals) = connect_client(&config, deadline).await?;
        let context = ContextBuilder::new().timeout(REQUEST_TIMEOUT).build(client.clone());
        let made = async {
            let streams = Box::pin(Streams::ensure(&context, &config, deadline)).await?;
            tracing::info!(url = %redacted(&config.nats.url), server = %client.server_info().version, "connected to NATS");
            let mut bus = Bus::over(client, context.clone(), streams, config, refusals.clone());
            Box::pin(bus.adopt(deadline)).await?;
            bus.time().await?;
            Ok(bus)
        };
        refusals.guard(made).await
    }

    /// Connects to a bus that is in use, and makes nothing.
    ///
    /// # Errors
    /// Like [`Bus::connect`]; [`BusError::Vanished`] if a stream is not there.
    pub async fn attach(config: BusConfig) -> Result<Bus, BusError> {
        let deadline = Instant::now() + config.connect_limit;
        let (client, refusals) = connect_client(&config, deadline).await?;
        let context = ContextBuilder::new().timeout(REQUEST_TIMEOUT).build(client.clone());
        let streams = refusals.guard(Box::pin(Streams::open(&context, &config, deadline))).await?;
        Ok(Bus::over(client, context, streams, config, refusals))
    }

    /// Streams of a release before, whose oldest messages the server dropped by itself: from now on
    /// removals are recorded, and the server drops nothing. First the record: what is missing then
    /// was dropped before it.
    async fn adopt(&mut self, deadline: Instant) -> Result<(), BusError> {
        let dropping = |stream: &Stream| drops(&stream.cached_info().config);
        if ![&self.streams.trajectories, &self.streams.index].into_iter().any(dropping) {
            return Ok(());
        }
        self.record_mark(Mark::RetentionRecorded).await?;
        for stream in [&self.streams.trajectories, &self.streams.index] {
            let config = &stream.cached_info().config;
            let updated = self.context.update_stream(kept(config)).await;
            updated.map_err(|error| BusError::Create { name: config.name.clone(), source: error.into() })?;
            tracing::info!(stream = config.name, "the server drops nothing of the stream by itself any more; what is removed is recorded");
        }
        self.streams = Arc::new(Box::pin(Streams::open(&self.context, &self.config, deadline)).await?);
        Ok(())
    }

    /// A bus over a connection and its streams.
    pub(crate) fn over(client: Client, context: jetstream::Context, streams: Streams, config: BusConfig, refusals: Refusals) -> Bus {
        Bus {
            client,
            context,
            streams: Arc::new(streams),
            config,
            tail: Arc::default(),
            tools: Arc::default(),
            stores: Arc::default(),
            vanished: Arc::default(),
            refusals,
            clock: Arc::default(),
            encode: store::encode,
        }
    }

    /// Writes events in another form than this release's: what another release would write, for
    /// tests of mixed fleets.
    #[must_use]
    pub fn writing(self, encode: Encode) -> Bus {
        Bus { encode, ..self }
    }

    /// Whether the connection is up now.
    pub fn is_connected(&self) -> bool {
        self.client.connection_state() == Connection::Connected
    }

    /// Whether JetStream answers, with the streams that were there at the start: one attempt, no
    /// retry.
    ///
    /// # Errors
    /// [`BusError::Vanished`] for ever once a stream was seen to be gone or made anew: what it held
    /// is lost to this process.
    pub async fn answers(&self) -> Result<(), BusError> {
        self.check_streams().await?;
        let unavailable = |source: async_nats::Error| BusError::unavailable("answer", source);
        if !self.is_connected() {
            return Err(unavailable("the connection is down".into()));
        }
        self.streams.queue.get_info().await.map(|_| ()).map_err(|error| unavailable(error.into()))
    }

    /// Looks whether the streams are those that were there at the start.
    pub(crate) async fn check_streams(&self) -> Result<(), BusError> {
        if self.vanished.get().is_none()
            && self.is_connected()
            && let Some(stream) = self.streams.vanished(&self.context).await
        {
            tracing::error!(stream, "a stream has vanished, or was made anew; nothing is stored in its place");
            let _ = self.vanished.set(stream);
        }
        self.known_streams()
    }

    /// An error if a stream was seen to have vanished.
    pub(crate) fn known_streams(&self) -> Result<(), BusError> {
        self.vanished.get().map_or(Ok(()), |stream| Err(BusError::Vanished { stream: stream.clone() }))
    }

    /// What a stream holds now.
    pub(crate) async fn state(&self, stream: &Stream) -> Result<State, BusError> {
        let mut patience = self.patience("say what it holds");
        loop {
            match stream.get_info().await {
                Ok(info) => return Ok(info.state),
                Err(error) => patience.after(error).await?,
            }
        }
    }

    /// The patience for one operation: `what` completes the sentence "the bus cannot … now".
    pub(crate) fn patience(&self, what: &'static str) -> Patience<'_> {
        Patience::of(self, what)
    }

    /// Sends what is still buffered and ends the connection.
    pub async fn close(&self) {
        if let Err(error) = self.client.drain().await {
            tracing::debug!(%error, "the connection to NATS was gone already");
        }
    }
}

/// Connects, trying until `deadline`; and what the server refuses from then on.
pub(crate) async fn connect_client(config: &BusConfig, deadline: Instant) -> Result<(Client, Refusals), BusError> {
    let url = redacted(&config.nats.url);
    let refusals = Refusals::new(&config.name, &url);
    let addrs = addresses(&config.nats.url)?;
    let mut attempt: u32 = 0;
    loop {
        attempt += 1;
        let error = match options(config, &refusals)?.connect(addrs.as_slice()).await {
            Ok(client) => return Ok((client, refusals)),
            Err(error) => error,
        };
        match error.kind() {
            ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                return Err(BusError::Login { url, source: error.into() });
            }
            ConnectErrorKind::Tls => return Err(BusError::Untrusted { url, source: error.into() }),
            // a certificate that we do not accept; with TLS 1.3 the server says after the handshake
            // what it thinks of ours
            _ if is_of_tls(&error) => return Err(BusError::Untrusted { url, source: error.into() }),
            _ => {}
        }
        let pause = pause(attempt);
        if Instant::now() + pause >= deadline {
            return Err(BusError::Unreachable { url, source: error });
        }
        tracing::warn!(%url, attempt, %error, "NATS is not there yet; trying again");
        tokio::time::sleep(pause).await;
    }
}

/// A client that connects in the background, for as long as it takes.
pub(crate) async fn connect_later(config: &BusConfig) -> Result<(Client, Refusals), BusError> {
    let addrs = addresses(&config.nats.url)?;
    let refusals = Refusals::new(&config.name, &redacted(&config.nats.url));
    let connected = options(config, &refusals)?.retry_on_initial_connect().connect(addrs.as_slice()).await;
    let client = connected.map_err(|source| BusError::Unreachable { url: redacted(&config.nats.url), source })?;
    Ok((client, refusals))
}

fn options(config: &BusConfig, refusals: &Refusals) -> Result<ConnectOptions, BusError> {
    let refusals = refusals.clone();
    let options = login::options(config)?
        .name(&config.name)
        .connection_timeout(CONNECT_TIMEOUT)
        .max_reconnects(None)
        .reconnect_delay_callback(|attempt| pause(u32::try_from(attempt).unwrap_or(u32::MAX)))
        .event_callback(move |event| {
            refusals.hear(&event);
            async move {
                match event {
                    Event::Disconnected => tracing::warn!("lost the connection to NATS; reconnecting"),
                    Event::Connected => tracing::info!("the connection to NATS is up"),
                    Event::LameDuckMode => tracing::info!("the NATS server is about to stop"),
                    other => tracing::debug!(event = %other, "NATS"),
                }
            }
        });
    encrypted(options, config)
}

/// With TLS, if it is configured. The files are read at every connection, so that new ones are used
/// from the next on.
fn encrypted(options: ConnectOptions, config: &BusConfig) -> Result<ConnectOptions, BusError> {
    let Some(NatsTls { ca, own }) = config.nats.tls().map_err(BusError::Settings)? else { return Ok(options) };
    // servers of a cluster tell clients their bare addresses, which are in no certificate
    let options = options.require_tls(true).add_root_certificates(ca).ignore_discovered_servers();
    Ok(match own {
        Some((cert, key)) => options.add_client_certificate(cert, key),
        None => options,
    })
}

/// Whether TLS has ended the connection, on either side.
fn is_of_tls(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if inner.is_some_and(|inner| inner.is::<rustls::Error>()) {
            return true;
        }
        cause = error.source();
    }
    false
}

fn addresses(url: &str) -> Result<Vec<ServerAddr>, BusError> {
    let parsed: Result<Vec<ServerAddr>, _> = url.split(',').map(|one| one.trim().parse()).collect();
    parsed.ok().filter(|addrs| !addrs.is_empty()).ok_or_else(|| BusError::Address { url: redacted(url) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_none_is_an_error() {
        assert!(matches!(addresses("nats://a b"), Err(BusError::Address { .. })));
        assert!(matches!(addresses("http://bus:4222"), Err(BusError::Address { .. })));
        assert_eq!(addresses("nats://a:1, b:2").unwrap().len(), 2);
    }
}
