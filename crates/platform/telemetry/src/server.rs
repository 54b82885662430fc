//! A span and a latency sample for every gRPC call a server answers, its streamed reply included.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use http::{HeaderMap, Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tonic::body::Body;
use tower::{Layer, Service};
use tracing::Instrument;
use tracing::field::Empty;

use crate::methods::{Methods, UNKNOWN};
use crate::propagate;

/// What a call that its client gave up is counted as.
const CANCELLED: i64 = tonic::Code::Cancelled as i64;

/// Packages of gRPC's own services, health and reflection: their calls are not counted.
const INFRASTRUCTURE: &str = "grpc.";

/// Wraps a gRPC server. Calls are counted and traced under the names of known methods, all others
/// as `unknown`; health and reflection calls are left alone.
#[derive(Debug, Clone)]
pub struct ServerTraceLayer {
    methods: Methods,
}

impl ServerTraceLayer {
    /// With the methods that the server has, those of health and reflection among them.
    pub fn new(methods: Methods) -> ServerTraceLayer {
        ServerTraceLayer { methods }
    }
}

impl<S> Layer<S> for ServerTraceLayer {
    type Service = ServerTraceService<S>;

    fn layer(&self, inner: S) -> ServerTraceService<S> {
        ServerTraceService { inner, methods: self.methods.clone() }
    }
}

/// What [`ServerTraceLayer`] makes of a server.
#[derive(Debug, Clone)]
pub struct ServerTraceService<S> {
    inner: S,
    methods: Methods,
}

impl<S> Service<Request<Body>> for ServerTraceService<S>
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

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (service, method) = self.methods.find(request.uri().path()).unwrap_or((UNKNOWN, UNKNOWN));
        if service.starts_with(INFRASTRUCTURE) {
            return Box::pin(self.inner.call(request));
        }
        let call = Call::begin(service, method, request.headers());
        let span = call.span.clone();
        let reply = span.in_scope(|| self.inner.call(request));
        Box::pin(
            async move {
                let mut call = call;
                let response = reply.await?;
                call.note(response.headers());
                Ok(response.map(|body| Body::new(TracedBody { body, call })))
            }
            .instrument(span),
        )
    }
}

/// One call from its first byte to its last; counted when dropped.
struct Call {
    span: tracing::Span,
    service: String,
    method: String,
    started: Instant,
    code: Option<i64>,
}

impl Call {
    fn begin(service: &str, method: &str, headers: &HeaderMap) -> Call {
        let span = tracing::info_span!(
            "call",
            otel.name = format!("{service}/{method}"),
            otel.kind = "server",
            otel.status_code = Empty,
            rpc.system = "grpc",
            rpc.service = service,
            rpc.method = method,
            rpc.grpc.status_code = Empty,
        );
        propagate::adopt(&span, |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned));
        let call = Call { span, service: service.to_owned(), method: method.to_owned(), started: Instant::now(), code: None };
        call.in_flight().increment(1.0);
        call
    }

    fn in_flight(&self) -> metrics::Gauge {
        metrics::gauge!("autoact_grpc_in_flight", "service" => self.service.clone(), "method" => self.method.clone())
    }

    /// Takes the status from headers or trailers that have one.
    fn note(&mut self, headers: &HeaderMap) {
        if let Some(code) = headers.get("grpc-status").and_then(|code| code.to_str().ok()).and_then(|code| code.parse().ok()) {
            self.code = Some(code);
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let code = self.code.unwrap_or(CANCELLED);
        self.span.record("rpc.grpc.status_code", code);
        if code != 0 {
            self.span.record("otel.status_code", "ERROR");
        }
        self.in_flight().decrement(1.0);
        let name = i32::try_from(code).map_or(tonic::Code::Unknown, tonic::Code::from_i32);
        metrics::histogram!("autoact_grpc_seconds",
            "service" => self.service.clone(), "method" => self.method.clone(), "code" => format!("{name:?}"))
        .record(self.started.elapsed().as_secs_f64());
        let millis = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.span.in_scope(|| tracing::debug!(code = ?name, millis, "call answered"));
    }
}

struct TracedBody {
    body: Body,
    call: Call,
}

impl HttpBody for TracedBody {
    type Data = <Body as HttpBody>::Data;
    type Error = <Body as HttpBody>::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let span = self.call.span.clone();
        let frame = span.in_scope(|| Pin::new(&mut self.body).poll_frame(cx));
        if let Poll::Ready(Some(Ok(frame))) = &frame
            && let Some(trailers) = frame.trailers_ref()
        {
            self.call.note(trailers);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
