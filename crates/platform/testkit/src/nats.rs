//! A real nats-server with JetStream, one per test.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::poll;

/// Names the binary when it is neither on `PATH` nor where the quickstart puts it.
const VARIABLE: &str = "AUTOACT_NATS_SERVER";
/// A machine that builds on every core is slow to start a process.
const START_LIMIT: Duration = Duration::from_secs(20);
/// The servers of a cluster vote, and one that was away copies what it missed.
const CATCH_UP_LIMIT: Duration = Duration::from_secs(60);
/// A server flushes its files when it is asked to end.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Why there is no server for the test.
#[derive(Debug, thiserror::Error)]
pub enum NatsError {
    /// The binary is nowhere.
    #[error("no `nats-server` in `${VARIABLE}`, `PATH` or `{searched}`; run `./quickstart --fetch-nats` once")]
    NotFound {
        /// The last place looked at.
        searched: String,
    },
    /// The process did not start, or files could not be written.
    #[error("cannot start `{binary}`")]
    Start {
        /// The program.
        binary: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// It started and is not there.
    #[error("`{binary}` was not ready in {limit:?}; its log says:\n{log}")]
    NotReady {
        /// The program.
        binary: String,
        /// How long it was waited for.
        limit: Duration,
        /// Its last words.
        log: String,
    },
}

/// A running nats-server. Dropping it kills the process and removes its data.
#[derive(Debug)]
pub struct NatsServer {
    binary: PathBuf,
    dir: TempDir,
    port: u16,
    /// Where its monitoring listens, if it has one.
    monitoring: Option<u16>,
    /// What its configuration file says beyond the arguments; empty: it has none.
    config: String,
    /// JetStream is in the configuration and not among the arguments: the server forgets these when
    /// it reads the configuration again.
    reloads: bool,
    child: Option<Child>,
}

impl NatsServer {
    /// Starts a server on a free port, with JetStream in a directory of its own.
    pub async fn start() -> Result<NatsServer, NatsError> {
        NatsServer::start_with("").await
    }

    /// Several servers that are one cluster, on free ports. They have voted.
    pub async fn cluster(servers: usize) -> anyhow::Result<Vec<NatsServer>> {
        let ports = crate::ports::distinct(servers)?;
        let routes: Vec<String> = ports.iter().map(|port| format!("\"nats://127.0.0.1:{port}\"")).collect();
        let started = ports.iter().zip(1..).map(|(port, number)| {
            let (name, routes) = (format!("server_name: n{number}"), routes.join(", "));
            let cluster = format!("cluster {{ name: test, listen: \"127.0.0.1:{port}\", routes: [{routes}] }}");
            NatsServer::start_with(format!("{name}\nhttp: \"127.0.0.1:-1\"\n{cluster}\n"))
        });
        let servers = futures::future::try_join_all(started).await?;
        for server in &servers {
            server.caught_up().await?;
        }
        Ok(servers)
    }

    /// Waits until a server of a cluster has what the others have: all its streams and consumers are
    /// current.
    pub async fn caught_up(&self) -> Result<(), NatsError> {
        let healthy = poll::until(CATCH_UP_LIMIT, async || healthy(self.monitoring?).await.then_some(())).await;
        let (binary, limit) = (self.binary.display().to_string(), CATCH_UP_LIMIT);
        healthy.ok_or_else(|| NatsError::NotReady { binary, limit, log: self.log() })
    }

    /// The same with a configuration: `jetstream { sync_interval: always }`, `http: "127.0.0.1:-1"`.
    pub async fn start_with(config: impl Into<String>) -> Result<NatsServer, NatsError> {
        NatsServer::start_in(&std::env::temp_dir(), config).await
    }

    /// The same with its files in a new directory below `parent`, which has to outlive it.
    pub async fn start_in(parent: &Path, config: impl Into<String>) -> Result<NatsServer, NatsError> {
        let mut server = NatsServer::new(parent, config.into(), false)?;
        server.spawn().await?;
        Ok(server)
    }

    /// The same with a configuration that [`NatsServer::reload`] can replace, and that says nothing of
    /// JetStream.
    pub async fn start_reloadable(config: impl Into<String>) -> Result<NatsServer, NatsError> {
        let mut server = NatsServer::new(&std::env::temp_dir(), config.into(), true)?;
        server.spawn().await?;
        Ok(server)
    }

    fn new(parent: &Path, config: String, reloads: bool) -> Result<NatsServer, NatsError> {
        let binary = find()?;
        let dir = TempDir::with_prefix_in("autoact-nats-", parent).map_err(|source| start_error(&binary, source))?;
        Ok(NatsServer { binary, dir, port: 0, monitoring: None, config, reloads, child: None })
    }

    /// `http://127.0.0.1:<port>` of its monitoring, if its configuration has `http`.
    pub fn monitoring(&self) -> Option<String> {
        self.monitoring.map(|port| format!("http://127.0.0.1:{port}"))
    }

    /// What it has written to its log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// Where JetStream keeps its files.
    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Ends the process at once and removes its data; port and name stay for
    /// [`NatsServer::resume`].
    pub fn lose_disk(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(self.data());
    }

    /// `nats://127.0.0.1:<port>`
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Where it listens; the same after a restart.
    pub fn addr(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// Ends the process at once, as a crash would; data and port stay for [`NatsServer::resume`].
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Starts it again after [`NatsServer::kill`] with the same data on the same port.
    pub async fn resume(&mut self) -> Result<(), NatsError> {
        self.spawn().await
    }

    /// Asks the process to end, waits until it has, and starts it again with the same data on the
    /// same port.
    pub async fn restart(&mut self) -> Result<(), NatsError> {
        if let Some(child) = &mut self.child {
            let _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM);
            poll::until(STOP_LIMIT, async || child.try_wait().ok().flatten()).await;
        }
        self.kill();
        self.spawn().await
    }

    /// Gives a server of [`NatsServer::start_reloadable`] another configuration while it runs. It
    /// takes a moment to take it over.
    pub fn reload(&mut self, config: impl Into<String>) -> Result<(), NatsError> {
        self.config = config.into();
        self.config_file().map_err(|source| start_error(&self.binary, source))?;
        if let Some(child) = &self.child {
            let told = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGHUP);
            told.map_err(|error| start_error(&self.binary, error.into()))?;
        }
        Ok(())
    }

    async fn spawn(&mut self) -> Result<(), NatsError> {
        let failed = |source| start_error(&self.binary, source);
        let log = self.dir.path().join("log");
        let out = std::fs::File::options().create(true).append(true).open(&log).map_err(failed)?;
        let port = if self.port == 0 { "-1".to_owned() } else { self.port.to_string() };
        let mut child = Command::new(&self.binary)
            .args(["-a", "127.0.0.1", "-p", &port])
            .arg("--ports_file_dir")
            .arg(self.dir.path())
            .args(self.config_file().map_err(failed)?)
            .stdin(Stdio::null())
            .stdout(out.try_clone().map_err(failed)?)
            .stderr(out)
            .spawn()
            .map_err(failed)?;
        let ports = self.ports_file(child.id());
        let ready = poll::until(START_LIMIT, async || {
            if let Ok(Some(_)) = child.try_wait() {
                return Some(None); // it gave up
            }
            let port = read_port(&ports, "nats")?;
            greets(port).await.then_some(Some(port))
        })
        .await;
        self.child = Some(child);
        match ready.flatten() {
            Some(port) => {
                self.port = port;
                self.monitoring = read_port(&ports, "monitoring");
                Ok(())
            }
            None => {
                self.kill();
                let log = std::fs::read_to_string(&log).unwrap_or_default();
                Err(NatsError::NotReady { binary: self.binary.display().to_string(), limit: START_LIMIT, log })
            }
        }
    }

    /// The arguments that turn JetStream on, and name the configuration.
    fn config_file(&self) -> std::io::Result<Vec<PathBuf>> {
        let (data, path) = (self.data(), self.dir.path().join("nats.conf"));
        if self.reloads {
            std::fs::write(&path, format!("jetstream {{ store_dir: {data:?} }}\n{}", self.config))?;
            return Ok(vec!["-c".into(), path]);
        }
        let mut arguments = vec!["-js".into(), "-sd".into(), data];
        if !self.config.is_empty() {
            std::fs::write(&path, &self.config)?;
            arguments.extend(["-c".into(), path]);
        }
        Ok(arguments)
    }

    fn ports_file(&self, pid: u32) -> PathBuf {
        let name = self.binary.file_name().unwrap_or_default().to_string_lossy();
        self.dir.path().join(format!("{name}_{pid}.ports"))
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn start_error(binary: &Path, source: std::io::Error) -> NatsError {
    NatsError::Start { binary: binary.display().to_string(), source }
}

fn find() -> Result<PathBuf, NatsError> {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        return Ok(PathBuf::from(named));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|dir| dir.join("nats-server"));
    let bundled = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../.quickstart/bin/nats-server");
    let searched = bundled.display().to_string();
    on_path.chain([bundled]).find(|candidate| candidate.is_file()).ok_or(NatsError::NotFound { searched })
}

/// A port from the file in which the server says where it listens.
fn read_port(path: &Path, of: &str) -> Option<u16> {
    let text = std::fs::read_to_string(path).ok()?;
    let ports: serde_json::Value = serde_json::from_str(&text).ok()?;
    ports[of][0].as_str()?.rsplit(':').next()?.parse().ok()
}

/// A ready server greets with its facts; JetStream is among them once it has recovered its streams.
async fn greets(port: u16) -> bool {
    let Ok(stream) = TcpStream::connect(("127.0.0.1", port)).await else { return false };
    let mut line = String::new();
    let read = tokio::time::timeout(Duration::from_secs(1), BufReader::new(stream).read_line(&mut line)).await;
    matches!(read, Ok(Ok(_))) && line.starts_with("INFO ") && line.contains("\"jetstream\":true")
}

/// Whether a server's monitoring says that nothing is amiss.
async fn healthy(port: u16) -> bool {
    let asked = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n").await?;
        let mut status = String::new();
        BufReader::new(stream).read_line(&mut status).await?;
        std::io::Result::Ok(status.contains(" 200 "))
    };
    matches!(tokio::time::timeout(Duration::from_secs(1), asked).await, Ok(Ok(true)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_starts_and_comes_back_on_its_port() {
        let mut server = NatsServer::start().await.unwrap();
        let addr = server.addr();
        server.restart().await.unwrap();
        assert_eq!(server.addr(), addr);
        assert!(TcpStream::connect(addr).await.is_ok());
        server.kill();
        assert!(TcpStream::connect(addr).await.is_err());
        server.resume().await.unwrap();
        assert!(TcpStream::connect(addr).await.is_ok());
        drop(server);
        assert!(TcpStream::connect(addr).await.is_err());
    }
}
