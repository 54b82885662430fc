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
        let body = wire::body(&self.options.model, &[text]);
        let mut vectors = self.patiently(body, 1, None, u32::MAX, self.options.start_timeout).await?;
        Ok(vectors.pop().unwrap_or_default())
    }

    /// The vectors of a request with `count` texts.
    pub(super) async fn vectors(&self, body: Vec<u8>, count: usize, dimension: Option<usize>) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.patiently(body, count, dimension, self.options.retries, self.options.timeout).await
    }

    /// Asks again after failures that may pass, at most `retries` times and within `limit`.
    async fn patiently(
        &self,
        body: Vec<u8>,
        count: usize,
        dimension: Option<usize>,
        retries: u32,
        limit: Duration,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let end = Instant::now() + limit;
        for attempt in 0.. {
            let error = match tokio::time::timeout_at(end, self.attempt(body.clone(), count, dimension)).await {
                Ok(Err(error)) if error.is_transient() => error,
                Ok(done) => return done,
                Err(_) => return Err(self.unavailable(format!("no answer within `{limit:?}`"))),
            };
            let after = if let EmbedError::Busy { retry_after, .. } = &error { *retry_after } else { None };
            let pause = retry::pause(attempt, after);
            if attempt >= retries || pause > retry::LONGEST || Instant::now() + pause >= end {
                return Err(error);
            }
            tracing::debug!(%error, ?pause, attempt, "asking the embedding server again");
            tokio::time::sleep(pause).await;
        }
        Err(self.unavailable("no attempt was made".to_owned()))
    }

    async fn attempt(&self, body: Vec<u8>, count: usize, dimension: Option<usize>) -> Result<Vec<Vec<f32>>, EmbedError> {
        let response = self.client.post(&self.url, body).await.map_err(|error| self.failed(error))?;
        let (parts, body) = response.into_parts();
        let body = match whole(body, MAX_FRAME + count * MAX_VECTOR).await {
            Ok(body) => body,
            Err(HttpError { reason, lasting: true }) => return Err(EmbedError::Reply { url: self.url.clone(), reason }),
            Err(error) => return Err(self.failed(error)),
        };
        if parts.status != StatusCode::OK {
            return Err(self.of_status(parts.status, &parts.headers, &body));
        }
        wire::read(&body, count, dimension).map_err(|reason| EmbedError::Reply { url: self.url.clone(), reason })
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
