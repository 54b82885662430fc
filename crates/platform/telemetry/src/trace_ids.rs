//! `trace_id` and `span_id` in JSON log lines, under the names that OpenTelemetry gives them: a
//! collector puts lines beside their traces.

use std::fmt;

use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, TraceContextExt};
use tracing::{Event, Subscriber, dispatcher};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// A format of one JSON object a line, with the trace that the event belongs to.
#[derive(Debug)]
pub(crate) struct WithTraceIds<F>(pub(crate) F);

impl<S, N, F> FormatEvent<S, N> for WithTraceIds<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let Some(trace) = active(event) else { return self.0.format_event(context, writer, event) };
        let mut line = String::new();
        self.0.format_event(context, Writer::new(&mut line), event)?;
        match line.trim_end().strip_suffix('}') {
            Some(object) => writeln!(writer, "{object},\"trace_id\":\"{}\",\"span_id\":\"{}\"}}", trace.trace_id(), trace.span_id()),
            // no object, no place to put them
            None => writer.write_str(&line),
        }
    }
}

/// Where in a trace the event happened: in the span it names, or in the one that is entered.
fn active(event: &Event<'_>) -> Option<SpanContext> {
    let of = |context: &Context| Some(context.span().span_context().clone()).filter(SpanContext::is_valid);
    match event.parent() {
        Some(span) => dispatcher::get_default(|dispatch| of(&tracing_opentelemetry::get_otel_context(span, dispatch)?)),
        None => Context::map_current(of),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use opentelemetry::trace::TracerProvider;
    use opentelemetry_sdk::trace::SdkTracerProvider;
    use tracing_opentelemetry::OpenTelemetrySpanExt;
    use tracing_subscriber::filter::LevelFilter;
    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::{Layer, fmt};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// The process's one subscriber: no other test of this crate's own sets one.
    #[test]
    fn lines_within_a_trace_name_it() {
        let lines = Lines::default();
        let writer = lines.clone();
        let provider = SdkTracerProvider::builder().build();
        let json = fmt::layer().json().flatten_event(true).with_writer(move || writer.clone()).map_event_format(WithTraceIds);
        // spans are below the log's level, and are known to the trace all the same
        let logs = json.with_filter(LevelFilter::WARN);
        let traces = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(logs).with(traces)).unwrap();

        tracing::warn!(n = 1, "outside");
        let (outer, inner) = (tracing::info_span!("outer"), tracing::info_span!("other"));
        outer.in_scope(|| tracing::warn!("in {}", "outer"));
        outer.in_scope(|| tracing::warn!(parent: &inner, "in inner"));
        drop(outer.enter());
        tracing::warn!(after = true, "outside again");

        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let parsed: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(parsed.len(), 4, "{text}");
        let ids = |span: &tracing::Span| {
            let context = span.context();
            let context = context.span().span_context().clone();
            (context.trace_id().to_string(), context.span_id().to_string())
        };
        for (line, wanted) in [(1, ids(&outer)), (2, ids(&inner))] {
            let found = (parsed[line]["trace_id"].as_str().unwrap(), parsed[line]["span_id"].as_str().unwrap());
            assert_eq!(found, (wanted.0.as_str(), wanted.1.as_str()), "{text}");
        }
        for line in [0, 3] {
            assert!(parsed[line].get("trace_id").is_none(), "{text}");
        }
        assert_eq!((&parsed[0]["n"], &parsed[1]["message"]), (&1.into(), &"in outer".into()));
    }
}
