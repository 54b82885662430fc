//! A service being put together: ports bound, nothing served yet but `/livez`, `/readyz` and
//! `/metrics`.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use autoact_config::{Common, Door};
use autoact_tls::Tls;
use autoact_wire::client::Connector;
use http::Request;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::service::Routes;
use tower::Service;

use crate::error::StartError;
use crate::liveness::Liveness;
use crate::readiness::{Condition, Latch, Readiness};
use crate::tasks::Tasks;

/// What a service's `build` works with.
pub struct Setup {
    pub(crate) name: &'static str,
    pub(crate) common: Common,
    pub(crate) listener: TcpListener,
    pub(crate) addr: SocketAddr,
    pub(crate) metrics_addr: SocketAddr,
    pub(crate) routes: Routes,
    pub(crate) services: Vec<&'static str>,
    pub(crate) readiness: Readiness,
    liveness: Liveness,
    pub(crate) tasks: Tasks,
    pub(crate) draining: CancellationToken,
    pub(crate) door: Door,
    pub(crate) tls: Option<Tls>,
    /// Ends the tasks when the setup (or the app made of it) is dropped.
    pub(crate) guard: DropGuard,
}

impl Setup {
    /// Binds both ports and starts to serve `/livez`, `/readyz` and `/metrics`.
    pub async fn bind(name: &'static str, common: Common) -> Result<Setup, StartError> {
        let door = common.tls.door(common.listen).map_err(StartError::new)?;
        let tls = Tls::open(&common.tls).map_err(StartError::new)?;
        let (listener, addr) = bind("gRPC", common.listen).await?;
        let (metrics, metrics_addr) = bind("metrics", common.metrics_listen).await?;
        let recorder = autoact_telemetry::prometheus::recorder().map_err(StartError::new)?;
        let (readiness, liveness) = (Readiness::default(), Liveness::default());
        let tasks = Tasks::default();
        let router = {
            let (readiness, liveness) = (readiness.clone(), liveness.clone());
            let (waiting, stuck) = (Arc::new(move || readiness.waiting()), Arc::new(move || liveness.stuck()));
            autoact_telemetry::prometheus::router(recorder.clone(), waiting, stuck)
        };
        tasks.spawn("metrics upkeep", autoact_telemetry::prometheus::upkeep(recorder));
        tasks.spawn_critical("metrics server", crate::http_port::serve(metrics, router, common.door.clone()));
        if let Some(tls) = &tls {
            tasks.spawn("certificates", tls.clone().watch());
        }
        let guard = tasks.stopping().drop_guard();
        let draining = CancellationToken::new();
        let (routes, services) = (Routes::default(), Vec::new());
        Ok(Setup { name, common, listener, addr, metrics_addr, routes, services, readiness, liveness, tasks, draining, door, tls, guard })
    }

    /// Registers a gRPC service; health and reflection know it then. Set message limits on it with
    /// `autoact_wire::limited!`.
    pub fn serve<S>(&mut self, service: S)
    where
        S: Service<Request<Body>, Error = Infallible> + NamedService + Clone + Send + Sync + 'static,
        S::Response: axum::response::IntoResponse,
        S::Future: Send + 'static,
    {
        self.services.push(S::NAME);
        self.routes = std::mem::take(&mut self.routes).add_service(service);
    }

    /// The settings every service has.
    pub fn common(&self) -> &Common {
        &self.common
    }

    /// Makes connections to other services, with this one's certificate.
    pub fn connector(&self) -> Connector {
        Connector::new(self.tls.clone()).plain_anywhere(self.common.tls.insecure)
    }

    /// The real address of the gRPC listener.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The real address of `/metrics`, `/livez` and `/readyz`, which are served already.
    pub fn metrics_addr(&self) -> SocketAddr {
        self.metrics_addr
    }

    /// What readiness is made of.
    pub fn readiness(&self) -> Readiness {
        self.readiness.clone()
    }

    /// Not ready until this is released.
    pub fn latch(&self, name: &'static str) -> Latch {
        self.readiness.latch(name)
    }

    /// Ready only while this holds.
    pub fn condition(&self, name: &'static str) -> Condition {
        self.readiness.condition(name)
    }

    /// `/livez` fails while this part does not work. It is for what only a new process helps against,
    /// and never for what is away: a restart brings no other service back. Asked at every probe, so
    /// it has to answer at once.
    pub fn alive_while(&self, name: &'static str, works: impl Fn() -> bool + Send + Sync + 'static) {
        self.liveness.add(name, works);
    }

    /// Background tasks, ended after the last call.
    pub fn tasks(&self) -> Tasks {
        self.tasks.clone()
    }

    /// Cancelled when the service begins to shut down: take no new work from elsewhere (a bus), end
    /// streams that have no end.
    pub fn draining(&self) -> CancellationToken {
        self.draining.clone()
    }
}

async fn bind(what: &str, addr: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let listener = TcpListener::bind(addr).await.map_err(|error| StartError::bind(what, addr, &error))?;
    let real = listener.local_addr().map_err(|error| StartError::bind(what, addr, &error))?;
    Ok((listener, real))
}
