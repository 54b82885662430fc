//! Requests with a connection pool, and response bodies.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use autoact_config::Secret;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use http::{Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_rustls::{DefaultServerNameResolver, HttpsConnector};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::error::ClientError;
use crate::tls;

/// Unused connections are closed after this time, because servers close them at some time too.
const IDLE: Duration = Duration::from_secs(30);

/// Where a server's API is, and what it wants.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The base URL of the API: `http://vllm:8000/v1`.
    pub url: String,
    /// API key, sent as a bearer token; empty: none.
    pub api_key: Secret,
    /// PEM file of certificate authorities to trust, in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// Time limit of a connection.
    pub connect_timeout: Duration,
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct HttpError {
    /// The address, and the errors below each other in one line.
    pub reason: String,
    /// Whether a retry would fail as well, as for TLS errors.
    pub lasting: bool,
}

impl HttpError {
    fn new(what: &str, error: &(dyn Error + 'static)) -> HttpError {
        let mut reason = format!("{what}: {error}");
        let mut lasting = false;
        let mut next = Some(error);
        while let Some(cause) = next {
            let said = cause.to_string();
            if !reason.contains(&said) {
                reason.push_str(": ");
                reason.push_str(&said);
            }
            lasting |= of_tls(cause);
            next = cause.source();
        }
        HttpError { reason, lasting }
    }
}

/// Whether TLS failed. An error inside an `io::Error` is not among its sources, so it is looked up.
fn of_tls(error: &(dyn Error + 'static)) -> bool {
    let within = |io: &std::io::Error| io.get_ref().is_some_and(|inner| of_tls(inner));
    error.is::<rustls::Error>() || error.downcast_ref::<std::io::Error>().is_some_and(within)
}

/// A client of one server's API.
#[derive(Debug, Clone)]
pub struct Client {
    client: hyper_util::client::legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    /// The base URL, without a slash at its end.
    base: String,
    authorization: Option<HeaderValue>,
}

impl Client {
    /// Creates a client; it connects with the first request.
    ///
    /// # Errors
    /// An option cannot be used: the address, the key or the file of certificates.
    pub fn new(options: &ClientOptions) -> Result<Client, ClientError> {
        let wrong = |reason: &str| ClientError::Url { url: options.url.clone(), reason: reason.to_owned() };
        let uri: Uri = options.url.parse().map_err(|error: http::uri::InvalidUri| wrong(&error.to_string()))?;
        let https = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            Some(_) => return Err(wrong("its scheme is neither http nor https")),
            None => return Err(wrong("it has no scheme")),
        };
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(wrong("it holds a user; a key belongs into `api_key`"));
        }
        if uri.query().is_some() {
            return Err(wrong("it has a query"));
        }
        let authorization = match options.api_key.expose() {
            "" => None,
            key => {
                let mut value = HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| ClientError::Key)?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(options.connect_timeout));
        let tls = tls::config(&options.url, https, options.ca_file.as_deref())?;
        let connector = HttpsConnector::new(connector, tls, https, Arc::new(DefaultServerNameResolver::default()));
        let client = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE)
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .build(connector);
        Ok(Client { client, base: options.url.trim_end_matches('/').to_owned(), authorization })
    }

    /// The URL of a path: `http://vllm:8000/v1` and `/models` give `http://vllm:8000/v1/models`.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// The URL of a path that vLLM serves outside of the API: `http://vllm:8000/tokenize`.
    pub fn url_beside(&self, path: &str) -> String {
        format!("{}{path}", self.base.strip_suffix("/v1").unwrap_or(&self.base))
    }

    /// Sends a GET request.
    ///
    /// # Errors
    /// The server cannot be reached, or ends the connection before it answers.
    pub async fn get(&self, url: &str) -> Result<Response<Incoming>, HttpError> {
        self.send(Method::GET, url, Full::default()).await
    }

    /// Sends a POST request. Dropping the future or the response's body closes the connection, by
    /// which the server notices the cancellation.
    ///
    /// # Errors
    /// As for [`Client::get`].
    pub async fn post(&self, url: &str, json: Vec<u8>) -> Result<Response<Incoming>, HttpError> {
        self.send(Method::POST, url, Full::from(json)).await
    }

    async fn send(&self, method: Method, url: &str, body: Full<Bytes>) -> Result<Response<Incoming>, HttpError> {
        let mut request = Request::builder().method(method).uri(url);
        if let Some(headers) = request.headers_mut() {
            headers.insert(USER_AGENT, HeaderValue::from_static(concat!("autoact/", env!("CARGO_PKG_VERSION"))));
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
            if let Some(authorization) = &self.authorization {
                headers.insert(AUTHORIZATION, authorization.clone());
            }
            autoact_telemetry::propagate::inject(|name, value| {
                if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                    headers.insert(name, value);
                }
            });
        }
        let request = request.body(body).map_err(|error| HttpError::new(&format!("cannot ask `{url}`"), &error))?;
        self.client.request(request).await.map_err(|error| HttpError::new(&format!("cannot reach `{url}`"), &error))
    }
}

/// Reads a whole body of at most `limit` bytes.
///
/// # Errors
/// The body is longer, or breaks off.
pub async fn whole(body: Incoming, limit: usize) -> Result<Bytes, HttpError> {
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        // as long the next time
        Err(error) if error.is::<LengthLimitError>() => {
            Err(HttpError { reason: format!("the answer has more than {limit} bytes"), lasting: true })
        }
        Err(error) => Err(HttpError::new("the answer broke off", error.as_ref())),
    }
}

/// The next bytes of a body; `None` at its end.
///
/// # Errors
/// The body breaks off.
pub async fn more(body: &mut Incoming) -> Result<Option<Bytes>, HttpError> {
    loop {
        match body.frame().await {
            None => return Ok(None),
            Some(Err(error)) => return Err(HttpError::new("the answer broke off", &error)),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}
