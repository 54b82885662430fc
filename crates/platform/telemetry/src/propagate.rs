//! The trace context (W3C `traceparent`, `tracestate`) over gRPC metadata and over any map of
//! strings.
//!
//! A gRPC client: `PlanAgentClient::with_interceptor(channel, TraceInterceptor)`. A gRPC server:
//! [`crate::ServerTraceLayer`], which `autoact-service` installs. A message on the bus: [`inject`]
//! its headers when sending, [`adopt`] them on the receiver's span.

use opentelemetry::Context;
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator};
use opentelemetry::trace::TraceContextExt;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tonic::metadata::{MetadataKey, MetadataMap, MetadataValue};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// The names under which the context travels.
const FIELDS: [&str; 2] = ["traceparent", "tracestate"];

/// Hands the current span's context to `set` as (name, value) pairs; nothing when traces are off.
pub fn inject(set: impl FnMut(&str, String)) {
    struct Set<F>(F);
    impl<F: FnMut(&str, String)> Injector for Set<F> {
        fn set(&mut self, key: &str, value: String) {
            if !value.is_empty() {
                (self.0)(key, value);
            }
        }
    }
    TraceContextPropagator::new().inject_context(&Span::current().context(), &mut Set(set));
}

/// The context that `get` has under the names of the convention; an empty one when there is none.
pub fn extract(get: impl Fn(&str) -> Option<String>) -> Context {
    struct Found(Vec<(&'static str, String)>);
    impl Extractor for Found {
        fn get(&self, key: &str) -> Option<&str> {
            self.0.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, value)| value.as_str())
        }
        fn keys(&self) -> Vec<&str> {
            self.0.iter().map(|(name, _)| *name).collect()
        }
    }
    let found = FIELDS.iter().filter_map(|name| get(name).map(|value| (*name, value))).collect();
    TraceContextPropagator::new().extract_with_context(&Context::new(), &Found(found))
}

/// Makes `span` a child of the span whose context `get` has. Call it before the span is entered.
pub fn adopt(span: &Span, get: impl Fn(&str) -> Option<String>) {
    // an error means that the span goes nowhere: traces are off or it was filtered
    let _ = span.set_parent(extract(get));
}

/// The trace that the current span is part of, or that gRPC metadata names where traces are off: 32
/// hexadecimal digits.
pub fn trace_id(metadata: &MetadataMap) -> Option<String> {
    let id = |context: &Context| {
        let span = context.span().span_context().clone();
        span.is_valid().then(|| span.trace_id().to_string())
    };
    let named = || extract(|name| metadata.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned));
    id(&Span::current().context()).or_else(|| id(&named()))
}

/// Puts the current span's context into gRPC metadata.
pub fn inject_metadata(metadata: &mut MetadataMap) {
    inject(|name, value| {
        if let (Ok(name), Ok(value)) = (MetadataKey::from_bytes(name.as_bytes()), MetadataValue::try_from(value)) {
            metadata.insert(name, value);
        }
    });
}

/// A client's interceptor: every call carries the context of the span it is made in.
#[derive(Debug, Clone, Copy, Default)]
pub struct TraceInterceptor;

impl tonic::service::Interceptor for TraceInterceptor {
    fn call(&mut self, mut request: tonic::Request<()>) -> Result<tonic::Request<()>, tonic::Status> {
        inject_metadata(request.metadata_mut());
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_traces_the_request_names_the_trace() {
        let mut metadata = MetadataMap::new();
        assert_eq!(trace_id(&metadata), None);
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        metadata.insert("traceparent", MetadataValue::from_static(parent));
        assert_eq!(trace_id(&metadata).as_deref(), Some("0af7651916cd43dd8448eb211c80319c"));
        metadata.insert("traceparent", MetadataValue::from_static("00-00000000000000000000000000000000-b7ad6b7169203331-01"));
        assert_eq!(trace_id(&metadata), None);
        metadata.insert("traceparent", MetadataValue::from_static("garbage"));
        assert_eq!(trace_id(&metadata), None);
    }
}
