//! Requests over HTTP/1.1 with a pool of connections, and the bodies that come back.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use http::{Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_rustls::{DefaultServerNameResolver, HttpsConnector};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::error::RemoteError;
use crate::options::RemoteOptions;
use crate::tls;

/// Unused connections are closed after this long; servers close theirs sooner or later too.
const IDLE: Duration = Duration::from_secs(30);
/// The largest body that is read whole: a list of models, an error, a completion that was not streamed.
const MAX_BODY: usize = 4 << 20;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct HttpError {
    pub(crate) reason: String,
    /// Another attempt will fail as well: TLS does not come about.
    pub(crate) lasting: bool,
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

/// Whether TLS failed: the certificate, or what speaks there. An error within an `io::Error` is not among its sources.
fn of_tls(error: &(dyn Error + 'static)) -> bool {
    let within = |io: &std::io::Error| io.get_ref().is_some_and(|inner| of_tls(inner));
    error.is::<rustls::Error>() || error.downcast_ref::<std::io::Error>().is_some_and(within)
}

/// A server's API.
#[derive(Clone)]
pub(crate) struct Client {
    client: hyper_util::client::legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    /// Without a slash at its end.
    base: String,
    authorization: Option<HeaderValue>,
}

impl Client {
    /// Connects to nothing yet.
    pub(crate) fn new(options: &RemoteOptions) -> Result<Client, RemoteError> {
        let wrong = |reason: &str| RemoteError::Url { url: options.url.clone(), reason: reason.to_owned() };
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
                let mut value = HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| RemoteError::Key)?;
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

    /// `http://vllm:8000/v1` and `/models`: `http://vllm:8000/v1/models`.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// The same for what vLLM serves beside the API: `http://vllm:8000/tokenize`.
    pub(crate) fn url_beside(&self, path: &str) -> String {
        format!("{}{path}", self.base.strip_suffix("/v1").unwrap_or(&self.base))
    }

    pub(crate) async fn get(&self, url: &str) -> Result<Response<Incoming>, HttpError> {
        self.send(Method::GET, url, Full::default()).await
    }

    /// Dropping the future, or the body of its response, closes the connection: the server sees that nobody waits any more.
    pub(crate) async fn post(&self, url: &str, json: Vec<u8>) -> Result<Response<Incoming>, HttpError> {
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

/// Reads a body to its end, up to a bound.
pub(crate) async fn whole(body: Incoming) -> Result<Bytes, HttpError> {
    match Limited::new(body, MAX_BODY).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) => Err(HttpError::new("the answer broke off", error.as_ref())),
    }
}

/// The next bytes of a body; `None` at its end.
pub(crate) async fn more(body: &mut Incoming) -> Result<Option<Bytes>, HttpError> {
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
