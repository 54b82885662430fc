//! A GET of a URL that is known only when it is made, such as one that a model wrote. Redirects are
//! handed to the caller, who may have rules of its own for each place.

use bytes::Bytes;
use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use http_body_util::BodyExt as _;
use url::Url;

use crate::client::HttpClient;
use crate::connect::{Reach, check, connect, host_of};
use crate::failure::HttpFailure;
use crate::hosts::HostRule;
use crate::observe::observation;
use crate::request::plain;
use crate::secret::Hidden;
use crate::send::{Answer, check_encoding, exchange, location, next, read};

/// The beginning of an error's body that is told.
const ERROR_BYTES: usize = 300;

/// What such requests may do.
#[derive(Debug, Clone)]
pub struct Visit {
    /// Where requests and redirects may go; none: nowhere.
    pub hosts: Vec<HostRule>,
    /// Whether the private addresses of hosts that a rule names are open.
    pub allow_private: bool,
    /// The bytes of an answer's body.
    pub response_bytes: usize,
    /// Whether a longer body is cut there; otherwise it is [`HttpFailure::TooLarge`].
    pub cut: bool,
    /// The header `Accept`.
    pub accept: &'static str,
}

/// What a server said.
#[derive(Debug, Clone)]
pub enum Visited {
    /// An answer, whatever its status.
    Seen(Seen),
    /// It is elsewhere. Requests may go there, as far as the URL says.
    Moved(Url),
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Seen {
    /// The media type with its parameters, as it was sent.
    pub fn content_type(&self) -> &str {
        self.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The media type without parameters, in lower case.
    pub fn media(&self) -> String {
        self.content_type().split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// The failure that the status says; none: success.
    pub fn failure(&self) -> Option<HttpFailure> {
        let answer = Answer { status: self.status, headers: self.headers.clone(), body: self.body.clone() };
        observation(&answer, ERROR_BYTES, &Hidden::default()).err()
    }
}

impl Visit {
    fn reach(&self) -> Reach<'_> {
        Reach { hosts: &self.hosts, allow_private: self.allow_private }
    }

    /// Whether requests to this URL may be made, as far as it says. Its addresses are checked when
    /// it is asked.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, url: &Url) -> Result<(), HttpFailure> {
        check(url, self.reach())
    }

    /// Makes one request.
    ///
    /// # Errors
    /// It must not be made, has no answer, leads where no request may go, or is answered with too
    /// much.
    pub async fn get(&self, client: &HttpClient, url: &Url) -> Result<Visited, HttpFailure> {
        let connection = connect(client, url, self.reach()).await?;
        let mut headers = plain();
        headers.insert(ACCEPT, HeaderValue::from_static(self.accept));
        let (response, _connection) = exchange(connection, url, Method::GET, &headers, Bytes::new()).await?;
        if let Some(place) = location(&response) {
            return next(url, place, self.reach()).map(Visited::Moved);
        }
        if !self.cut {
            let answer = read(response, url, self.response_bytes).await?;
            return Ok(Visited::Seen(Seen { status: answer.status, headers: answer.headers, body: answer.body }));
        }
        let (head, mut body) = response.into_parts();
        check_encoding(&head.headers)?;
        let mut all = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| HttpFailure::Broken { host: host_of(url), reason: error.to_string() })?;
            let Ok(data) = frame.into_data() else { continue };
            all.extend_from_slice(&data[..data.len().min(self.response_bytes - all.len())]);
            if all.len() == self.response_bytes {
                break;
            }
        }
        Ok(Visited::Seen(Seen { status: head.status.as_u16(), headers: head.headers, body: all.into() }))
    }
}
