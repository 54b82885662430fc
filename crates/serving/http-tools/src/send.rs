//! One call: the request, its redirects, its repetitions, and the bytes of the answer.

use std::time::Duration;

use autoact_http_client::retry::retry_after;
use autoact_trajectory::Effect;
use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, LOCATION};
use http::{Method as HttpMethod, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use tokio::time::Instant;
use url::Url;

use crate::client::HttpClient;
use crate::connect::{Connection, Reach, check, connect, host_of};
use crate::failure::{HttpFailure, RedirectRefusal};
use crate::operation::{Method, Operation};
use crate::request::Prepared;

/// How often a server that says when is asked again.
const RETRIES: u32 = 2;
/// Headers that say nothing about the caller: another host gets no others.
const PLAIN: [&str; 4] = ["user-agent", "accept", "accept-encoding", "content-type"];

/// What a server answered in the end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// Its media type without parameters, in lower case.
    pub(crate) fn media(&self) -> String {
        let media = self.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }
}

/// Makes the request until there is an answer that counts. `deadline` is that of the call.
pub(crate) async fn send(
    client: &HttpClient,
    operation: &Operation,
    effect: Effect,
    reach: Reach<'_>,
    prepared: &Prepared,
    deadline: Instant,
) -> Result<Answer, HttpFailure> {
    let mut retries = 0;
    loop {
        let answer = follow(client, operation, reach, prepared).await?;
        let busy = matches!(answer.status, 429 | 503);
        let wait = retry_after(&answer.headers).filter(|_| busy && effect != Effect::SideEffect && retries < RETRIES);
        match wait {
            // a sum could overflow: a server may say anything
            Some(wait) if wait < left(deadline) => tokio::time::sleep(wait).await,
            _ => return Ok(answer),
        }
        retries += 1;
    }
}

/// One request and its redirects.
async fn follow(client: &HttpClient, operation: &Operation, reach: Reach<'_>, prepared: &Prepared) -> Result<Answer, HttpFailure> {
    let mut hop =
        Hop { url: prepared.url.clone(), method: method(operation.method), headers: prepared.headers.clone(), body: prepared.body.clone() };
    let mut followed = 0;
    loop {
        let connection = connect(client, &hop.url, reach).await?;
        let (response, _connection) = hop.exchange(connection).await?;
        let Some(place) = location(&response) else { return read(response, &hop.url, operation.limits.response_bytes).await };
        let refused = |reason| HttpFailure::Redirect { host: host_of(&hop.url), reason };
        if followed == operation.limits.redirects {
            return Err(refused(RedirectRefusal::TooMany(followed)));
        }
        followed += 1;
        let next = next(&hop.url, place, reach)?;
        let elsewhere = next.origin() != hop.url.origin();
        if elsewhere && prepared.hidden.in_text(next.as_str()) {
            return Err(refused(RedirectRefusal::Secret));
        }
        hop.go_on(next, response.status(), elsewhere);
    }
}

/// The request as it stands after the redirects until now.
struct Hop {
    url: Url,
    method: HttpMethod,
    headers: HeaderMap,
    body: Bytes,
}

impl Hop {
    async fn exchange(&self, connection: Connection) -> Result<(Response<Incoming>, Connection), HttpFailure> {
        exchange(connection, &self.url, self.method.clone(), &self.headers, self.body.clone()).await
    }

    /// Follows a redirect as browsers do.
    fn go_on(&mut self, next: Url, status: StatusCode, elsewhere: bool) {
        let rewritten = match status {
            StatusCode::SEE_OTHER => self.method != HttpMethod::HEAD,
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => self.method == HttpMethod::POST,
            _ => false,
        };
        if rewritten {
            self.method = HttpMethod::GET;
            self.body = Bytes::new();
            self.headers.remove(CONTENT_TYPE);
        }
        if elsewhere {
            let others: Vec<_> = self.headers.keys().filter(|name| !PLAIN.contains(&name.as_str())).cloned().collect();
            for name in others {
                self.headers.remove(name);
            }
        }
        self.url = next;
    }
}

/// One request over a connection of its own, and the beginning of its answer.
pub(crate) async fn exchange(
    mut connection: Connection,
    url: &Url,
    method: HttpMethod,
    headers: &HeaderMap,
    body: Bytes,
) -> Result<(Response<Incoming>, Connection), HttpFailure> {
    let broken = |error: &dyn std::fmt::Display| HttpFailure::Broken { host: host_of(url), reason: error.to_string() };
    let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let mut request = Request::builder().method(method).uri(target);
    if let Some(all) = request.headers_mut() {
        all.clone_from(headers);
        let authority = &url[url::Position::BeforeHost..url::Position::AfterPort];
        all.insert(HOST, HeaderValue::try_from(authority).map_err(|error| broken(&error))?);
        all.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    let request = request.body(Full::new(body)).map_err(|error| broken(&error))?;
    let response = connection.sender.send_request(request).await.map_err(|error| broken(&error))?;
    Ok((response, connection))
}

/// Refuses what would have to be decompressed.
pub(crate) fn check_encoding(headers: &HeaderMap) -> Result<(), HttpFailure> {
    match headers.get(CONTENT_ENCODING) {
        Some(encoding) if !matches!(encoding.as_bytes().trim_ascii(), b"" | b"identity") => {
            // only known names are repeated: the header may hold anything
            let named = ["gzip", "deflate", "br", "zstd", "compress"].into_iter().find(|name| encoding == name);
            Err(HttpFailure::Encoded { encoding: named.unwrap_or("unknown") })
        }
        _ => Ok(()),
    }
}

/// Where a redirect leads.
pub(crate) fn location(response: &Response<Incoming>) -> Option<&HeaderValue> {
    matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308).then(|| response.headers().get(LOCATION)).flatten()
}

/// Where a redirect leads, if requests may go there.
pub(crate) fn next(url: &Url, place: &HeaderValue, reach: Reach<'_>) -> Result<Url, HttpFailure> {
    let refused = |reason| HttpFailure::Redirect { host: host_of(url), reason };
    let mut next = place.to_str().ok().and_then(|place| url.join(place).ok()).ok_or_else(|| refused(RedirectRefusal::Place))?;
    next.set_fragment(None);
    if url.scheme() == "https" && next.scheme() == "http" {
        return Err(refused(RedirectRefusal::Downgrade));
    }
    check(&next, reach)?;
    Ok(next)
}

/// Reads the body within its bound.
pub(crate) async fn read(response: Response<Incoming>, url: &Url, limit: usize) -> Result<Answer, HttpFailure> {
    let (head, mut body) = response.into_parts();
    check_encoding(&head.headers)?;
    let mut read = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| HttpFailure::Broken { host: host_of(url), reason: error.to_string() })?;
        let Ok(data) = frame.into_data() else { continue };
        if read.len() + data.len() > limit {
            return Err(HttpFailure::TooLarge { limit });
        }
        read.extend_from_slice(&data);
    }
    Ok(Answer { status: head.status.as_u16(), headers: head.headers, body: read.freeze() })
}

/// What is left of the time until `deadline`.
pub(crate) fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

fn method(method: Method) -> HttpMethod {
    match method {
        Method::Get => HttpMethod::GET,
        Method::Head => HttpMethod::HEAD,
        Method::Options => HttpMethod::OPTIONS,
        Method::Post => HttpMethod::POST,
        Method::Put => HttpMethod::PUT,
        Method::Patch => HttpMethod::PATCH,
        Method::Delete => HttpMethod::DELETE,
    }
}
