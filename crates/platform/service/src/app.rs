//! A service that is put together: serves until told to stop, then drains.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use autoact_config::{Door, Loaded, Section};
use autoact_telemetry::{Methods, ServerTraceLayer};
use autoact_tls::{Doors, Handshakes, SeatBounds, Seats};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use crate::error::{RunError, StartError};
use crate::limits::LimitsLayer;
use crate::peers::PeersLayer;
use crate::readiness::Readiness;
use crate::setup::Setup;
use crate::{Service, descriptors, readiness};

/// How long calls that were told to end may take to say so.
const ABORT_LIMIT: Duration = Duration::from_secs(1);
/// How long background tasks may take to end, however little of the grace period is left.
const TASKS_LIMIT: Duration = Duration::from_secs(2);

impl Setup {
    /// The finished service, ready to run.
    pub async fn finish(self) -> Result<App, StartError> {
        App::new(self).await
    }
}

/// A service, bound and built.
pub struct App {
    setup: Setup,
    health: Health,
    methods: Methods,
}

impl App {
    /// Binds the ports and builds the service.
    pub async fn build<S: Service>(config: Loaded<S::Config>) -> Result<App, StartError> {
        let mut setup = Setup::bind(S::Config::NAME, config.common).await?;
        S::build(config.service, &mut setup).await?;
        setup.finish().await
    }

    async fn new(mut setup: Setup) -> Result<App, StartError> {
        let (reporter, server) = tonic_health::server::health_reporter();
        let health = Health { reporter, services: setup.services.clone(), readiness: setup.readiness.clone() };
        health.update().await;
        setup.routes = setup.routes.add_service(server);
        let reflection = || {
            tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(autoact_wire::FILE_DESCRIPTOR_SET)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        };
        setup.routes = setup.routes.add_service(reflection().build_v1().map_err(StartError::new)?);
        setup.routes = setup.routes.add_service(reflection().build_v1alpha().map_err(StartError::new)?);
        let methods = Methods::of([
            autoact_wire::FILE_DESCRIPTOR_SET,
            tonic_health::pb::FILE_DESCRIPTOR_SET,
            tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
            tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
        ])
        .map_err(StartError::new)?;
        Ok(App { setup, health, methods })
    }

    /// Where gRPC is served, the real port if 0 was asked for.
    pub fn addr(&self) -> SocketAddr {
        self.setup.addr
    }

    /// Where `/metrics`, `/livez` and `/readyz` are served.
    pub fn metrics_addr(&self) -> SocketAddr {
        self.setup.metrics_addr
    }

    /// What readiness is made of.
    pub fn readiness(&self) -> Readiness {
        self.setup.readiness.clone()
    }

    /// Serves until `shutdown` completes, the server fails or a critical task fails; then drains
    /// and returns.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
        let App { setup, health, methods } = self;
        let Setup { name, common, listener, addr, metrics_addr, routes, tasks, readiness, draining, door, tls, guard, .. } = setup;
        let abort = CancellationToken::new();
        let bounds = &common.door;
        let limits = LimitsLayer::new(bounds, draining.clone(), abort.clone());
        tasks.spawn("slow readers", limits.slow_readers().keep());
        let peers = PeersLayer::new(name, &common.tls);
        let handshakes = Handshakes { limit: bounds.handshake, most: bounds.max_handshakes };
        let (most, per_address) = (descriptors::connections(bounds.max_connections), bounds.max_connections_per_address);
        let seats = Seats::new("grpc", SeatBounds { most, per_address, first_call: bounds.first_call });
        let incoming = match (door, tls) {
            (Door::Tls, Some(tls)) => Doors::tls(listener, tls, handshakes, seats),
            _ => Doors::plain(listener, handshakes, seats),
        };
        let server = Server::builder()
            .max_concurrent_streams(bounds.max_streams)
            .http2_max_header_list_size(bounds.max_header_bytes)
            .http2_keepalive_interval(Some(bounds.keepalive))
            .http2_keepalive_timeout(Some(bounds.keepalive_timeout))
            .layer(ServerTraceLayer::new(methods))
            .layer(peers)
            .layer(limits)
            .add_routes(routes)
            .serve_with_incoming_shutdown(incoming, draining.clone().cancelled_owned());
        // its own task: calls go on while the shutdown is being worked through
        let mut server = tokio::spawn(server);
        let mut changes = readiness.changes();
        health.update().await;
        if door == Door::Plain && !addr.ip().is_loopback() {
            tracing::warn!(service = name, grpc = %addr, "plain text on the network (`tls.insecure`): anybody may call, read and change");
        }
        tracing::info!(service = name, grpc = %addr, tls = door == Door::Tls, metrics = %metrics_addr, waiting = ?readiness.waiting(), "serving");

        let mut shutdown = std::pin::pin!(shutdown);
        let ended = loop {
            tokio::select! {
                () = &mut shutdown => break None,
                () = tasks.failed() => break None,
                ended = &mut server => break Some(ended),
                () = changes.next() => health.update().await,
            }
        };

        // The order matters: first nobody sends new work here, then what is in flight ends, then
        // what it needed ends.
        let deadline = Instant::now() + common.grace_period;
        tracing::info!(service = name, grace = ?common.grace_period, "draining");
        readiness.drain();
        health.update().await;
        draining.cancel();
        let ended = match ended {
            Some(ended) => Some(ended),
            None => match tokio::time::timeout_at(deadline, &mut server).await {
                Ok(ended) => Some(ended),
                Err(_) => {
                    tracing::warn!(service = name, "the grace period is over; ending the calls that are still in flight");
                    abort.cancel();
                    tokio::time::timeout(ABORT_LIMIT, &mut server).await.ok()
                }
            },
        };
        server.abort();
        if !tasks.stop(deadline.max(Instant::now() + TASKS_LIMIT)).await {
            tracing::warn!(service = name, "some background tasks did not end in time");
        }
        drop(guard);
        tracing::info!(service = name, "stopped");
        match (tasks.take_failure(), ended) {
            (Some(failure), _) => Err(failure),
            (None, Some(Ok(Err(error)))) => Err(RunError::Serve(error)),
            (None, Some(Err(panic))) => Err(RunError::Task { name: "gRPC server", cause: panic.to_string() }),
            (None, Some(Ok(Ok(()))) | None) => Ok(()),
        }
    }
}

/// Says over `grpc.health.v1` what readiness is: for every service and for the whole (the empty
/// name).
struct Health {
    reporter: HealthReporter,
    services: Vec<&'static str>,
    readiness: readiness::Readiness,
}

impl Health {
    async fn update(&self) {
        let status = if self.readiness.is_ready() { ServingStatus::Serving } else { ServingStatus::NotServing };
        for service in self.services.iter().copied().chain([""]) {
            self.reporter.set_service_status(service, status).await;
        }
    }
}
