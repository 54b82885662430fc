//! Ends every call in time: at the client's deadline (`grpc-timeout`), streamed replies included,
//! and when the grace period is over. Bounds how many there are, what they send and how slowly they
//! read.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use autoact_config::DoorConfig;
use autoact_tls::{Connection, InCall};
use autoact_wire::sizes::request_size;
use autoact_wire::status::to_status;
use http::{HeaderMap, Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::Status;
use tonic::body::Body;
use tower::{Layer, Service};

use crate::refusal::Refusal;
use crate::request_body::{Budget, RequestBody};
use crate::slow_reader::{OnSlowReader, Reply, SlowReaders};

/// When the caller stops waiting. In the extensions of every request that has a `grpc-timeout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline(pub Instant);

/// When the caller of a request stops waiting, if it said so.
pub fn deadline<T>(request: &tonic::Request<T>) -> Option<Instant> {
    request.extensions().get::<Deadline>().map(|deadline| deadline.0)
}

/// When calls have to end, and what they may take until then.
#[derive(Debug, Clone)]
pub(crate) struct LimitsLayer {
    door: Arc<DoorConfig>,
    calls: Arc<Semaphore>,
    budget: Arc<Budget>,
    slow_readers: Arc<SlowReaders>,
    /// The service drains: endless streams of health and reflection end.
    pub(crate) draining: CancellationToken,
    /// The grace period is over: every call ends.
    pub(crate) abort: CancellationToken,
}

impl LimitsLayer {
    pub(crate) fn new(door: &DoorConfig, draining: CancellationToken, abort: CancellationToken) -> LimitsLayer {
        let calls = Arc::new(Semaphore::new(door.max_calls.min(Semaphore::MAX_PERMITS)));
        let (budget, slow_readers) = (Budget::new(door.max_request_bytes), SlowReaders::new(door.slow_reader));
        LimitsLayer { door: Arc::new(door.clone()), calls, budget, slow_readers, draining, abort }
    }

    /// Those who have to look for slow readers.
    pub(crate) fn slow_readers(&self) -> Arc<SlowReaders> {
        Arc::clone(&self.slow_readers)
    }

    /// A place among the calls, and a reason for the connection to stay.
    fn enter(&self, request: &Request<Body>) -> Result<Entered, Refusal> {
        let permit = Arc::clone(&self.calls).try_acquire_owned().map_err(|_| Refusal::Calls { most: self.door.max_calls })?;
        let calls = request.extensions().get::<Connection>().and_then(|connection| connection.calls.as_ref());
        Ok(Entered { _permit: permit, _in_call: calls.map(autoact_tls::Calls::begin) })
    }
}

/// Until the call has ended.
#[derive(Debug)]
struct Entered {
    _permit: OwnedSemaphorePermit,
    _in_call: Option<InCall>,
}

impl<S> Layer<S> for LimitsLayer {
    type Service = LimitsService<S>;

    fn layer(&self, inner: S) -> LimitsService<S> {
        LimitsService { inner, limits: self.clone() }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct LimitsService<S> {
    inner: S,
    limits: LimitsLayer,
}

impl<S> Service<Request<Body>> for LimitsService<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let entered = match self.limits.enter(&request) {
            Ok(entered) => entered,
            Err(refusal) => {
                let response = to_status(&refusal).into_http();
                return Box::pin(async move { Ok(response) });
            }
        };
        let timeout = grpc_timeout(request.headers());
        let now = Instant::now();
        if let Some(deadline) = timeout.and_then(|timeout| now.checked_add(timeout)) {
            request.extensions_mut().insert(Deadline(deadline));
        }
        let endless = request.uri().path().starts_with("/grpc.");
        let stop = if endless { &self.limits.draining } else { &self.limits.abort };
        let mut end = End {
            timer: timeout.map(|timeout| (timeout, Box::pin(tokio::time::sleep(timeout)))),
            stop: Box::pin(stop.clone().cancelled_owned()),
        };
        let (size, budget, limit) = (request_size(request.uri().path()), Arc::clone(&self.limits.budget), self.limits.door.request_time);
        let slow_readers = self.limits.slow_readers();
        let reply = self.inner.call(request.map(|body| Body::new(RequestBody::new(body, size, budget, limit))));
        Box::pin(async move {
            let mut reply = std::pin::pin!(reply);
            let outcome = std::future::poll_fn(|cx| match reply.as_mut().poll(cx) {
                Poll::Ready(response) => Poll::Ready(Ok(response)),
                Poll::Pending => end.poll(cx).map(Err),
            })
            .await;
            match outcome {
                Ok(response) => {
                    let mut response = response?;
                    let told = response.extensions_mut().remove::<OnSlowReader>();
                    Ok(response.map(|body| {
                        // most refusals are headers alone
                        if body.is_end_stream() {
                            return body;
                        }
                        let reply = slow_readers.watch(body, told);
                        Body::new(LimitedBody { reply: Some(reply), end, _entered: entered })
                    }))
                }
                Err(status) => Ok(status.into_http()),
            }
        })
    }
}

/// The two things that end a call early.
struct End {
    timer: Option<(Duration, Pin<Box<Sleep>>)>,
    stop: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl End {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Status> {
        if let Some((timeout, timer)) = &mut self.timer
            && timer.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Status::deadline_exceeded(format!("the call's deadline of {timeout:?} has passed")));
        }
        self.stop.as_mut().poll(cx).map(|()| Status::unavailable("the service is shutting down; call again"))
    }
}

struct LimitedBody {
    /// Dropped as soon as the call ends, and with it the work behind the stream.
    reply: Option<Reply>,
    end: End,
    _entered: Entered,
}

impl HttpBody for LimitedBody {
    type Data = <Body as HttpBody>::Data;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Self::Data>, Status>>> {
        let this = &mut *self;
        let Some(reply) = &mut this.reply else { return Poll::Ready(None) };
        if let Poll::Ready(frame) = reply.poll_frame(cx) {
            if frame.as_ref().is_none_or(|frame| frame.as_ref().map_or(true, Frame::is_trailers)) {
                this.reply = None;
            }
            return Poll::Ready(frame);
        }
        let Poll::Ready(status) = this.end.poll(cx) else { return Poll::Pending };
        this.reply = None;
        let mut trailers = HeaderMap::new();
        Poll::Ready(Some(status.add_header(&mut trailers).map(|()| Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.reply.as_ref().is_none_or(Reply::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

/// Reads `grpc-timeout`: up to eight digits and a unit. One that is not well formed counts as none,
/// as the specification of gRPC asks servers to be lenient here.
fn grpc_timeout(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(number * 3600)),
        "M" => Some(Duration::from_secs(number * 60)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_of_the_wire() {
        let read = |text: &'static str| grpc_timeout(&HeaderMap::from_iter([("grpc-timeout".parse().unwrap(), text.parse().unwrap())]));
        assert_eq!(read("250m"), Some(Duration::from_millis(250)));
        assert_eq!(read("3S"), Some(Duration::from_secs(3)));
        assert_eq!(read("99999999H"), Some(Duration::from_secs(99_999_999 * 3600)));
        for bad in ["", "S", "5", "5x", "123456789S", "-1S", "+1S"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
