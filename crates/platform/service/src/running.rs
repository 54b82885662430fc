//! A service running in the background of this process.

use std::net::SocketAddr;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::app::App;
use crate::error::RunError;
use crate::readiness::Readiness;

impl App {
    /// Runs in the background: for tests, and for programs that hold a service in themselves.
    pub fn start(self) -> Running {
        let (addr, metrics_addr, readiness) = (self.addr(), self.metrics_addr(), self.readiness());
        let (shutdown, told) = oneshot::channel::<()>();
        let task = tokio::spawn(self.run(async move {
            // an error means that `Running` was dropped: the same thing
            let _ = told.await;
        }));
        Running { addr, metrics_addr, readiness, shutdown: Some(shutdown), task: Some(task) }
    }
}

/// A running [`App`]. Dropping it begins the shutdown; [`Running::stop`] also waits for its end.
#[derive(Debug)]
pub struct Running {
    addr: SocketAddr,
    metrics_addr: SocketAddr,
    readiness: Readiness,
    shutdown: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<Result<(), RunError>>>,
}

impl Running {
    /// Where gRPC is served.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Where `/metrics`, `/livez` and `/readyz` are served.
    pub fn metrics_addr(&self) -> SocketAddr {
        self.metrics_addr
    }

    /// What readiness is made of.
    pub fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// Begins the shutdown and returns at once.
    pub fn begin_shutdown(&mut self) {
        if let Some(shutdown) = self.shutdown.take() {
            let _ = shutdown.send(());
        }
    }

    /// Waits until the service has ended by itself or after [`Running::begin_shutdown`].
    pub async fn ended(mut self) -> Result<(), RunError> {
        match self.task.take() {
            Some(task) => task.await.unwrap_or_else(|panic| Err(RunError::Task { name: "service", cause: panic.to_string() })),
            None => Ok(()),
        }
    }

    /// Shuts down and waits for the end.
    pub async fn stop(mut self) -> Result<(), RunError> {
        self.begin_shutdown();
        self.ended().await
    }
}
