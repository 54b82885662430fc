//! Ends every call in time: at the client's deadline (`grpc-timeout`), streamed replies included,
//! and when the grace period is over.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http::{HeaderMap, Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::Sleep;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::Status;
use tonic::body::Body;
use tower::{Layer, Service};

/// When the caller stops waiting. In the extensions of every request that has a `grpc-timeout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline(pub Instant);

/// When the caller of a request stops waiting, if it said so.
pub fn deadline<T>(request: &tonic::Request<T>) -> Option<Instant> {
    request.extensions().get::<Deadline>().map(|deadline| deadline.0)
}

/// When calls have to end.
#[derive(Debug, Clone)]
pub(crate) struct LimitsLayer {
    /// The service drains: endless streams of health and reflection end.
    pub(crate) draining: CancellationToken,
    /// The grace period is over: every call ends.
    pub(crate) abort: CancellationToken,
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
        let reply = self.inner.call(request);
        Box::pin(async move {
            let mut reply = std::pin::pin!(reply);
            let outcome = std::future::poll_fn(|cx| match reply.as_mut().poll(cx) {
                Poll::Ready(response) => Poll::Ready(Ok(response)),
                Poll::Pending => end.poll(cx).map(Err),
            })
            .await;
            match outcome {
                Ok(response) => Ok(response?.map(|body| Body::new(LimitedBody { body: Some(body), end }))),
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
    body: Option<Body>,
    end: End,
}

impl HttpBody for LimitedBody {
    type Data = <Body as HttpBody>::Data;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Self::Data>, Status>>> {
        let this = &mut *self;
        let Some(body) = &mut this.body else { return Poll::Ready(None) };
        if let Poll::Ready(frame) = Pin::new(body).poll_frame(cx) {
            return Poll::Ready(frame);
        }
        let Poll::Ready(status) = this.end.poll(cx) else { return Poll::Pending };
        this.body = None;
        let mut trailers = HeaderMap::new();
        Poll::Ready(Some(status.add_header(&mut trailers).map(|()| Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
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
