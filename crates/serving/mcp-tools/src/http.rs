//! rmcp's HTTP client over checked connections.

use std::collections::HashMap;
use std::sync::Arc;

use autoact_base::lines::one_line;
use autoact_http_tools::{Endpoint, Hidden, HttpClient, HttpFailure, Opened, StatusClass};
use autoact_trajectory::cut;
use bytes::Bytes;
use futures::stream::BoxStream;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse};
use sse_stream::{Error as SseError, Sse};

use crate::events::events;
use crate::message::{Read, read};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const LISTEN: &str = "subscriptions/listen";
/// The beginning of an error's body.
const ERROR_BYTES: usize = 400;
/// How much of such a body is read.
const ERROR_BODY: usize = 64 * 1024;

type Failed = StreamableHttpError<HttpFailure>;

/// Requests to one server.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    pub(crate) client: HttpClient,
    pub(crate) endpoint: Arc<Endpoint>,
    /// The bytes of one answer, and of one event.
    pub(crate) limit: usize,
}

impl Http {
    /// One request; what must not be shown comes with its answer.
    async fn request(
        &self,
        method: Method,
        session: Option<&str>,
        more: HashMap<HeaderName, HeaderValue>,
        body: Bytes,
    ) -> Result<(Opened, Hidden), Failed> {
        let (mut headers, hidden) = self.endpoint.headers(&self.client).map_err(Failed::Client)?;
        headers.extend(more);
        let accepted = if method == Method::POST { "application/json, text/event-stream" } else { EVENTS };
        headers.insert(ACCEPT, HeaderValue::from_static(accepted));
        if method == Method::POST {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        }
        if let Some(session) = session {
            set(&mut headers, SESSION, session)?;
        }
        let opened = self.endpoint.send(&self.client, method, &headers, body).await.map_err(Failed::Client)?;
        Ok((opened, hidden))
    }

    /// The failure that a status says, or the protocol's error in its body.
    async fn refusal(&self, mut opened: Opened, hidden: &Hidden) -> Result<ServerJsonRpcMessage, Failed> {
        let (status, media) = (opened.status(), opened.media());
        let class = StatusClass::of(status).unwrap_or(StatusClass::Unexpected);
        // a body that is too long or breaks off says nothing more
        let body = opened.whole(ERROR_BODY).await.unwrap_or_default();
        if media == JSON
            && class != StatusClass::Auth
            && let Read::Message(message) = read(&body, hidden)
            && matches!(*message, JsonRpcMessage::Error(_))
        {
            return Ok(*message);
        }
        let body = cut(hidden.clean(one_line(&String::from_utf8_lossy(&body))), ERROR_BYTES).0;
        Err(Failed::Client(HttpFailure::Status { status, class, retry_after: None, body }))
    }
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) -> Result<(), Failed> {
    let value = HeaderValue::try_from(value).map_err(|_| Failed::UnexpectedServerResponse("a name that cannot be sent back".into()))?;
    headers.insert(name, value);
    Ok(())
}

impl StreamableHttpClient for Http {
    type Error = HttpFailure;

    async fn post_message(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let body = serde_json::to_vec(&message)?;
        // the answer to who listens is a stream of news
        let listens = matches!(&message, JsonRpcMessage::Request(request) if request.request.method() == LISTEN);
        let asks = match message {
            JsonRpcMessage::Request(request) => Some(request.id),
            _ => None,
        };
        let (mut opened, hidden) = self.request(Method::POST, session_id.as_deref(), custom_headers, body.into()).await?;
        let status = StatusCode::from_u16(opened.status()).unwrap_or_default();
        if status == StatusCode::NOT_FOUND && session_id.is_some() {
            return Err(Failed::SessionExpired);
        }
        let session = opened.header(&SESSION).map(|session| hidden.clean(session.to_owned()));
        if !status.is_success() {
            return self.refusal(opened, &hidden).await.map(|error| StreamableHttpPostResponse::Json(error, session));
        }
        if asks.is_none() || matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        match opened.media().as_str() {
            EVENTS => Ok(StreamableHttpPostResponse::Sse(events(opened, hidden, self.limit, asks.filter(|_| !listens)), session)),
            JSON => {
                let body = opened.whole(self.limit).await.map_err(Failed::Client)?;
                match read(&body, &hidden) {
                    Read::Message(message) => Ok(StreamableHttpPostResponse::Json(*message, session)),
                    Read::Unknown | Read::NoJson => Err(Failed::UnexpectedServerResponse("an answer that is no message".into())),
                }
            }
            // its name could hold anything
            _ => Err(Failed::UnexpectedContentType(None)),
        }
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failed> {
        let (opened, _) = self.request(Method::DELETE, Some(&session_id), custom_headers, Bytes::new()).await?;
        match opened.status() {
            405 => Err(Failed::ServerDoesNotSupportDeleteSession),
            _ => Ok(()),
        }
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        mut custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failed> {
        if let Some(id) = last_event_id {
            let mut headers = HeaderMap::new();
            set(&mut headers, LAST_EVENT, &id)?;
            custom_headers.extend(headers.into_iter().filter_map(|(name, value)| Some((name?, value))));
        }
        let (opened, hidden) = self.request(Method::GET, session_id.as_deref(), custom_headers, Bytes::new()).await?;
        match opened.status() {
            405 => Err(Failed::ServerDoesNotSupportSse),
            200..=299 if opened.media() == EVENTS => Ok(events(opened, hidden, self.limit, None)),
            200..=299 => Err(Failed::ServerDoesNotSupportSse),
            _ => Err(self.refusal(opened, &hidden).await.err().unwrap_or(Failed::ServerDoesNotSupportSse)),
        }
    }
}
