//! For tests: an OTLP collector in the process that keeps the spans it receives.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

/// A span as it arrived.
#[derive(Debug, Clone)]
pub struct Received {
    /// `service.name` of its resource.
    pub service: String,
    /// The span.
    pub span: Span,
}

impl Received {
    /// An attribute as text; numbers and booleans are written out.
    pub fn attribute(&self, name: &str) -> Option<String> {
        let attribute = self.span.attributes.iter().find(|attribute| attribute.key == name)?;
        text(attribute.value.as_ref()?.value.as_ref()?)
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::StringValue(text) => Some(text.clone()),
        Value::IntValue(number) => Some(number.to_string()),
        Value::DoubleValue(number) => Some(number.to_string()),
        Value::BoolValue(flag) => Some(flag.to_string()),
        _ => None,
    }
}

/// A collector on a free port; it ends with the test's runtime.
#[derive(Debug, Clone)]
pub struct Collector {
    addr: SocketAddr,
    spans: Arc<Mutex<Vec<Received>>>,
}

impl Collector {
    /// Starts one.
    pub async fn start() -> std::io::Result<Collector> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let collector = Collector { addr: listener.local_addr()?, spans: Arc::default() };
        let service = TraceServiceServer::new(collector.clone());
        let serve = tonic::transport::Server::builder().add_service(service).serve_with_incoming(TcpListenerStream::new(listener));
        tokio::spawn(serve);
        Ok(collector)
    }

    /// What to set as `telemetry.otlp_endpoint`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// What has arrived so far.
    pub fn spans(&self) -> Vec<Received> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits up to `limit` until `enough` holds for what has arrived; returns what there is then.
    pub async fn wait(&self, limit: Duration, enough: impl Fn(&[Received]) -> bool) -> Vec<Received> {
        let deadline = tokio::time::Instant::now() + limit;
        loop {
            let spans = self.spans();
            if enough(&spans) || tokio::time::Instant::now() >= deadline {
                return spans;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(&self, request: Request<ExportTraceServiceRequest>) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let mut received = Vec::new();
        for resource_spans in request.into_inner().resource_spans {
            let service = resource_spans
                .resource
                .iter()
                .flat_map(|resource| &resource.attributes)
                .find(|attribute| attribute.key == "service.name")
                .and_then(|attribute| text(attribute.value.as_ref()?.value.as_ref()?))
                .unwrap_or_default();
            let spans = resource_spans.scope_spans.into_iter().flat_map(|scope| scope.spans);
            received.extend(spans.map(|span| Received { service: service.clone(), span }));
        }
        self.spans.lock().unwrap_or_else(PoisonError::into_inner).extend(received);
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}
