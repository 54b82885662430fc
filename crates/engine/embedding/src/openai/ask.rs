//! Requests with their retries.

use std::time::Duration;

use autoact_http_client::said::shown;
use autoact_http_client::{Client, HttpError, retry, whole};
use http::{HeaderMap, StatusCode};
use tokio::time::Instant;

use super::{OpenAiEmbedderOptions, wire};
use crate::EmbedError;

/// Maximum size in bytes of a reply, without its vectors.
const MAX_FRAME: usize = 64 << 10;
/// Maximum size in bytes of a vector: 8,192 numbers of 32 characters.
const MAX_VECTOR: usize = 256 << 10;

/// A request, and what its reply must have.
pub(super) struct Asked {
    pub(super) body: Vec<u8>,
    /// Number of texts.
    pub(super) count: usize,
    /// Dimension of the vectors, if it is known.
    pub(super) dimension: Option<usize>,
}

/// A server and how it is asked.
pub(super) struct Server {
    client: Client,
    pub(super) options: OpenAiEmbedderOptions,
    url: String,
}

impl Server {
    pub(super) fn new(options: OpenAiEmbedderOptions) -> Result<Server, EmbedError> {
        let client = Client::new(&options.client())?;
        let url = client.url("/embeddings");
        Ok(Server { client, options, url })
    }

    /// The vector of one text, from a server that may be starting.
    pub(super) async fn first(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        let asked = Asked { body: wire::body(&self.options.model, &[text]), count: 1, dimension: None };
        let mut vectors = self.patiently(&asked, None, self.options.start_timeout).await?;
        Ok(vectors.pop().unwrap_or_default())
    }

    /// The vectors of a request.
    pub(super) async fn vectors(&self, asked: &Asked) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.patiently(asked, Some(self.options.retries), self.options.timeout).await
    }

    /// Asks again after failures that may pass: within `limit`, and at most `retries` times with the
    /// pauses that the server asks for. Without a number of retries, at its own pace.
    async fn patiently(&self, asked: &Asked, retries: Option<u32>, limit: Duration) -> Result<Vec<Vec<f32>>, EmbedError> {
        let end = Instant::now() + limit;
        let mut attempt = 0;
        loop {
            let error = match tokio::time::timeout_at(end, self.attempt(asked)).await {
                Ok(Err(error)) if error.is_transient() => error,
                Ok(done) => return done,
                Err(_) => return Err(self.unavailable(format!("no answer within `{limit:?}`"))),
            };
            let after = if let EmbedError::Busy { retry_after, .. } = &error { *retry_after } else { None };
            let pause = retry::pause(attempt, after.filter(|_| retries.is_some()));
            if retries.is_some_and(|retries| attempt >= retries) || pause > retry::LONGEST || Instant::now() + pause >= end {
                return Err(error);
            }
            match retries {
                None if attempt == 0 => tracing::warn!(%error, ?limit, "waiting for the embedding server"),
                _ => tracing::debug!(%error, ?pause, attempt, "asking the embedding server again"),
            }
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }

    async fn attempt(&self, asked: &Asked) -> Result<Vec<Vec<f32>>, EmbedError> {
        let response = self.client.post(&self.url, asked.body.clone()).await.map_err(|error| self.failed(error))?;
        let (parts, body) = response.into_parts();
        let body = match whole(body, MAX_FRAME + asked.count * MAX_VECTOR).await {
            Ok(body) => body,
            Err(HttpError { reason, lasting: true }) => return Err(EmbedError::Reply { url: self.url.clone(), reason }),
            Err(error) => return Err(self.failed(error)),
        };
        if parts.status != StatusCode::OK {
            return Err(self.of_status(parts.status, &parts.headers, &body));
        }
        wire::read(&body, asked.count, asked.dimension).map_err(|reason| EmbedError::Reply { url: self.url.clone(), reason })
    }

    /// The error of a status other than 200.
    fn of_status(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> EmbedError {
        let url = self.url.clone();
        let reason = format!("it answered {}: {}", status.as_u16(), shown(body));
        let retry_after = retry::retry_after(headers);
        match status.as_u16() {
            429 => EmbedError::Busy { url, reason, retry_after },
            // with `Retry-After` the server is busy; without it, it is broken
            503 if retry_after.is_some() => EmbedError::Busy { url, reason, retry_after },
            408 | 500 | 502..=504 => EmbedError::Unavailable { url, reason },
            401 | 403 => EmbedError::Refused { url, reason: format!("{reason}; is the API key right?") },
            404 => EmbedError::Refused {
                url,
                reason: format!("{reason}; is it the base of the API, and does it serve `{}`?", self.options.model),
            },
            _ => EmbedError::Refused { url, reason },
        }
    }

    fn failed(&self, HttpError { reason, lasting }: HttpError) -> EmbedError {
        if lasting { EmbedError::Refused { url: self.url.clone(), reason } } else { self.unavailable(reason) }
    }

    pub(super) fn unavailable(&self, reason: String) -> EmbedError {
        EmbedError::Unavailable { url: self.url.clone(), reason }
    }
}
