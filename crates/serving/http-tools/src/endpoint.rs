//! A URL that another protocol speaks over: the same checks as for tools, and an answer that is read
//! piece by piece. Redirects are not followed.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, COOKIE, HeaderMap, HeaderValue};
use http::{HeaderName, Method, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use url::Url;

use crate::client::HttpClient;
use crate::connect::{Connection, Reach, connect, host_of};
use crate::failure::{HttpFailure, RedirectRefusal};
use crate::hosts::HostRule;
use crate::operation::{OperationError, header_name};
use crate::request::{add_fixed, plain};
use crate::secret::{Credential, Hidden, SecretPlace};
use crate::send::{check_encoding, exchange};

/// A URL with what every request to it carries.
#[derive(Debug, Clone)]
pub struct Endpoint {
    url: Url,
    headers: Vec<(String, String)>,
    credentials: Vec<Credential>,
    hosts: Vec<HostRule>,
    allow_private: bool,
}

impl Endpoint {
    /// Where requests go, their fixed headers, and secrets for headers and cookies. Without `hosts`
    /// they may go to the URL's own host.
    ///
    /// # Errors
    /// The URL is none of http or https, holds a user or a fragment; a header cannot be set; or a
    /// secret would go into the query, where servers log it.
    pub fn new(
        url: &str,
        headers: Vec<(String, String)>,
        credentials: Vec<Credential>,
        hosts: Vec<HostRule>,
        allow_private: bool,
    ) -> Result<Endpoint, OperationError> {
        let wrong = |reason: &'static str| OperationError::Url { url: url.to_owned(), reason };
        let parsed = Url::parse(url).map_err(|_| wrong("expected an absolute URL"))?;
        if !matches!(parsed.scheme(), "http" | "https") || parsed.host().is_none() {
            return Err(wrong("expected an absolute URL of http or https"));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() || parsed.fragment().is_some() {
            return Err(wrong("it holds a user or a fragment"));
        }
        for (name, value) in &headers {
            if header_name(name).is_none() || HeaderValue::try_from(value).is_err() {
                return Err(OperationError::Header(name.clone()));
            }
        }
        for credential in &credentials {
            match &credential.place {
                SecretPlace::Header(name) if header_name(name).is_none() => return Err(OperationError::Header(name.clone())),
                SecretPlace::Query(name) => return Err(OperationError::Argument(name.clone())),
                _ => {}
            }
        }
        let hosts = if hosts.is_empty() { HostRule::of(&parsed) } else { hosts };
        Ok(Endpoint { url: parsed, headers, credentials, hosts, allow_private })
    }

    /// The host that requests go to.
    pub fn host(&self) -> String {
        host_of(&self.url)
    }

    /// The headers of a request, with the secrets as they are now, and what must not be shown.
    ///
    /// # Errors
    /// A secret is missing, or a header cannot carry it.
    pub fn headers(&self, client: &HttpClient) -> Result<(HeaderMap, Hidden), HttpFailure> {
        let (mut headers, mut hidden, mut cookies) = (plain(), Hidden::default(), Vec::new());
        add_fixed(&mut headers, &self.headers)?;
        for credential in &self.credentials {
            let secret = client.secret(&credential.secret)?;
            hidden.add(&secret);
            match (credential.header(&secret, &mut hidden)?, &credential.place) {
                (Some((name, value)), _) => drop(headers.insert(name, value)),
                (None, SecretPlace::Cookie(name)) => cookies.push(format!("{name}={}", crate::encode::encoded(&secret))),
                (None, _) => {}
            }
        }
        if !cookies.is_empty() {
            let mut value =
                HeaderValue::try_from(cookies.join("; ")).map_err(|_| HttpFailure::Internal("cookies that cannot be sent".to_owned()))?;
            value.set_sensitive(true);
            headers.insert(COOKIE, value);
        }
        Ok((headers, hidden))
    }

    /// Makes one request. Any status is an answer, but a redirect and a compressed answer are
    /// failures.
    ///
    /// # Errors
    /// The request must not be made, or has no answer. Only after [`HttpFailure::Broken`] may the
    /// server have got it.
    pub async fn send(&self, client: &HttpClient, method: Method, headers: &HeaderMap, body: Bytes) -> Result<Opened, HttpFailure> {
        let reach = Reach { hosts: &self.hosts, allow_private: self.allow_private };
        let connection = connect(client, &self.url, reach).await?;
        let (response, connection) = exchange(connection, &self.url, method, headers, body).await?;
        let (status, host) = (response.status(), self.host());
        if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
            return Err(HttpFailure::Redirect { host, reason: RedirectRefusal::Never });
        }
        check_encoding(response.headers())?;
        Ok(Opened { response, host, _connection: connection })
    }
}

/// An answer whose body is read piece by piece. Dropping it closes the connection.
pub struct Opened {
    response: Response<Incoming>,
    host: String,
    _connection: Connection,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened").field("host", &self.host).field("status", &self.status()).finish_non_exhaustive()
    }
}

impl Opened {
    /// The status.
    pub fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// A header's text.
    pub fn header(&self, name: &HeaderName) -> Option<&str> {
        self.headers().get(name)?.to_str().ok()
    }

    /// The media type without parameters, in lower case.
    pub fn media(&self) -> String {
        self.header(&CONTENT_TYPE).and_then(|media| media.split(';').next()).unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// The next bytes of the body; none at its end.
    ///
    /// # Errors
    /// It broke off.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpFailure> {
        while let Some(frame) = self.response.body_mut().frame().await {
            let frame = frame.map_err(|error| HttpFailure::Broken { host: self.host.clone(), reason: error.to_string() })?;
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// The whole body, if it has at most `limit` bytes.
    ///
    /// # Errors
    /// It broke off, or is longer.
    pub async fn whole(&mut self, limit: usize) -> Result<Vec<u8>, HttpFailure> {
        let mut all = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            if all.len() + chunk.len() > limit {
                return Err(HttpFailure::TooLarge { limit });
            }
            all.extend_from_slice(&chunk);
        }
        Ok(all)
    }
}
