//! What all tools share: the runtime, name resolution, TLS settings and the environment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use autoact_http_client::ClientError;
use rustls::ClientConfig;
use tokio::runtime::Handle;

use crate::failure::HttpFailure;
use crate::secret::Secret;

/// The addresses of a host, some time later.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Finds the addresses of hosts. It is asked once per connection; the addresses that it returns are
/// checked, and one of them is connected to.
pub trait Resolve: Send + Sync {
    /// The addresses of `host`.
    fn resolve<'a>(&'a self, host: &'a str) -> Resolving<'a>;
}

/// The system's resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> Resolving<'a> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect()) })
    }
}

/// What a client of tools is made of.
pub struct HttpClientOptions {
    /// The environment: where [`crate::Secret::Env`] is looked up.
    pub variables: BTreeMap<String, String>,
    /// PEM file of certificate authorities to trust beside the system's.
    pub ca_file: Option<PathBuf>,
    /// The time limit of one connection, TLS included.
    pub connect_timeout: Duration,
    /// Finds addresses.
    pub resolver: Arc<dyn Resolve>,
}

impl HttpClientOptions {
    /// The usual client of a program: secrets are variables of its own environment.
    pub fn from_environment() -> HttpClientOptions {
        let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        HttpClientOptions { variables: std::env::vars_os().filter_map(text).collect(), ..HttpClientOptions::default() }
    }
}

impl Default for HttpClientOptions {
    fn default() -> HttpClientOptions {
        HttpClientOptions {
            variables: BTreeMap::new(),
            ca_file: None,
            connect_timeout: Duration::from_secs(5),
            resolver: Arc::new(SystemResolver),
        }
    }
}

/// What all tools share. Cheap to clone.
#[derive(Clone)]
pub struct HttpClient {
    pub(crate) handle: Handle,
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) connect_timeout: Duration,
    pub(crate) resolver: Arc<dyn Resolve>,
    /// `None` where the system has no certificate authorities: https then fails.
    pub(crate) tls: Option<Arc<ClientConfig>>,
}

impl std::fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpClient").field("connect_timeout", &self.inner.connect_timeout).finish_non_exhaustive()
    }
}

impl HttpClient {
    /// A client whose requests are made on `handle`'s runtime. Tools wait for them on other
    /// threads, so the runtime must have threads of its own.
    ///
    /// # Errors
    /// The file of certificates cannot be used.
    pub fn new(handle: Handle, options: HttpClientOptions) -> Result<HttpClient, ClientError> {
        let HttpClientOptions { variables, ca_file, connect_timeout, resolver } = options;
        let tls = match autoact_http_client::tls_config("https tools", true, ca_file.as_deref()) {
            Ok(mut config) => {
                config.alpn_protocols = vec![b"http/1.1".to_vec()];
                Some(Arc::new(config))
            }
            Err(ClientError::NoAuthorities { .. }) => None,
            Err(error) => return Err(error),
        };
        Ok(HttpClient { handle, inner: Arc::new(Inner { variables, connect_timeout, resolver, tls }) })
    }

    /// The runtime that requests are made on.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The text of a secret.
    ///
    /// # Errors
    /// There is none.
    pub fn secret(&self, secret: &Secret) -> Result<String, HttpFailure> {
        secret.read(&self.inner.variables)
    }
}
