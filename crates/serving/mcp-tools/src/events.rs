//! Events of a server's answer (`text/event-stream`), one after the other and each within a bound.

use autoact_http_tools::{Hidden, HttpFailure, Opened};
use futures::stream::{BoxStream, StreamExt as _, try_unfold};
use rmcp::model::{ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use sse_stream::{Error as SseError, Sse};

use crate::message::{BROKE_OFF, Read, TOO_LARGE, read};

/// The pauses that a server may ask for before a stream is opened again, in milliseconds.
const SHORTEST_PAUSE: u64 = 1000;
const LONGEST_PAUSE: u64 = 60_000;

/// Reads lines of the stream into events.
#[derive(Debug, Default)]
struct Parser {
    /// Bytes of lines that are not whole yet.
    rest: Vec<u8>,
    event: Sse,
    /// Bytes of the event so far.
    size: usize,
}

impl Parser {
    /// Takes more bytes of the stream.
    fn push(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
    }

    /// The next whole event; none if more bytes are needed.
    fn next(&mut self, limit: usize) -> Result<Option<Sse>, HttpFailure> {
        let mut from = 0;
        let found = loop {
            let Some(end) = self.rest[from..].iter().position(|byte| *byte == b'\n') else { break None };
            let line = self.rest[from..from + end].strip_suffix(b"\r").unwrap_or(&self.rest[from..from + end]);
            from += end + 1;
            self.size += line.len();
            if self.size > limit {
                return Err(HttpFailure::TooLarge { limit });
            }
            if line.is_empty() {
                self.size = 0;
                let event = std::mem::take(&mut self.event);
                if event.data.is_some() || event.id.is_some() || event.retry.is_some() {
                    break Some(event);
                }
                continue;
            }
            field(&mut self.event, &String::from_utf8_lossy(line));
        };
        self.rest.drain(..from);
        match self.rest.len() > limit {
            true => Err(HttpFailure::TooLarge { limit }),
            false => Ok(found),
        }
    }
}

/// One line of an event. Comments are no fields.
fn field(event: &mut Sse, line: &str) {
    let (name, value) = line.split_once(':').unwrap_or((line, ""));
    let value = value.strip_prefix(' ').unwrap_or(value);
    match name {
        "data" => match &mut event.data {
            Some(data) => {
                data.push('\n');
                data.push_str(value);
            }
            None => event.data = Some(value.to_owned()),
        },
        "event" => event.event = Some(value.to_owned()),
        "id" if !value.contains('\0') => event.id = Some(value.to_owned()),
        "retry" => event.retry = value.parse().ok().map(|pause: u64| pause.clamp(SHORTEST_PAUSE, LONGEST_PAUSE)),
        _ => {}
    }
}

/// The events of an answer that are read one by one.
struct Reading {
    opened: Opened,
    parser: Parser,
    hidden: Hidden,
    total: usize,
    /// The call that waits for its answer here.
    waits: Option<RequestId>,
    /// Whether an event had an id: then the rest may come over another connection.
    resumable: bool,
    over: bool,
}

impl Reading {
    /// The next event; none at the end. A call whose answer does not come gets an error instead.
    async fn next(&mut self, limit: usize) -> Result<Option<Sse>, HttpFailure> {
        loop {
            if let Some(mut event) = self.parser.next(limit)? {
                self.resumable |= event.id.is_some();
                event.data = event.data.take().map(|data| self.cleaned(&data));
                event.id = event.id.take().map(|id| self.hidden.clean(id));
                event.event = event.event.take().map(|name| self.hidden.clean(name));
                return Ok(Some(event));
            }
            let Some(chunk) = self.opened.chunk().await? else { return Ok(None) };
            self.total = self.total.saturating_add(chunk.len());
            // the answer to a call is bounded as a whole, a stream of news by its events
            if self.waits.is_some() && self.total > limit {
                return Err(HttpFailure::TooLarge { limit });
            }
            self.parser.push(&chunk);
        }
    }

    /// The same message without secrets; what is none is left out.
    fn cleaned(&mut self, data: &str) -> String {
        let Read::Message(message) = read(data.as_bytes(), &self.hidden) else { return String::new() };
        if matches!(*message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)) {
            self.waits = None;
        }
        serde_json::to_string(&message).unwrap_or_default()
    }

    /// What the call that waits is told instead of an answer.
    fn instead(&mut self, told: &'static str) -> Option<Sse> {
        let error = ServerJsonRpcMessage::error(ErrorData::new(ErrorCode::PARSE_ERROR, told, None), Some(self.waits.take()?));
        Some(Sse::default().data(serde_json::to_string(&error).ok()?))
    }
}

/// The events of an answer, which one call may wait for.
pub(crate) fn events(opened: Opened, hidden: Hidden, limit: usize, waits: Option<RequestId>) -> BoxStream<'static, Result<Sse, SseError>> {
    let reading = Reading { opened, parser: Parser::default(), hidden, total: 0, waits, resumable: false, over: false };
    try_unfold(reading, move |mut reading| async move {
        if reading.over {
            return Ok(None);
        }
        let next = reading.next(limit).await;
        reading.over = !matches!(next, Ok(Some(_)));
        let next = match next {
            Ok(Some(event)) => Some(event),
            Ok(None) | Err(HttpFailure::Broken { .. }) if reading.resumable => None,
            Ok(None) | Err(HttpFailure::Broken { .. }) => reading.instead(BROKE_OFF),
            Err(HttpFailure::TooLarge { .. }) if reading.waits.is_some() => reading.instead(TOO_LARGE),
            Err(failure) => return Err(SseError::Body(Box::new(failure))),
        };
        Ok(next.map(|event| (event, reading)))
    })
    .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(pieces: &[&str], limit: usize) -> Result<Vec<Sse>, HttpFailure> {
        let (mut parser, mut all) = (Parser::default(), Vec::new());
        for piece in pieces {
            parser.push(piece.as_bytes());
            while let Some(event) = parser.next(limit)? {
                all.push(event);
            }
        }
        Ok(all)
    }

    #[test]
    fn events_are_read_whatever_the_pieces_are() {
        let text = ": comment\r\nevent: message\r\nid: 1\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\n\n\nretry: 100\n\ndata:x\n\n";
        let whole = parsed(&[text], 1000).unwrap();
        assert_eq!(whole.len(), 3);
        assert_eq!(whole[0].data.as_deref(), Some("{\"a\":\n1}"));
        assert_eq!((whole[0].event.as_deref(), whole[0].id.as_deref()), (Some("message"), Some("1")));
        assert_eq!((whole[1].retry, whole[2].data.as_deref()), (Some(1000), Some("x")));
        let bytes: Vec<String> = text.chars().map(String::from).collect();
        let pieces: Vec<&str> = bytes.iter().map(String::as_str).collect();
        assert_eq!(parsed(&pieces, 1000).unwrap().len(), 3);
    }

    #[test]
    fn an_event_is_bounded() {
        let long = "x".repeat(101);
        assert!(matches!(parsed(&[&long], 100), Err(HttpFailure::TooLarge { limit: 100 })));
        let many = "data: 12345\n".repeat(20);
        assert!(matches!(parsed(&[&many], 100), Err(HttpFailure::TooLarge { limit: 100 })));
        assert_eq!(parsed(&[&"data: 12345\n\n".repeat(20)], 1000).unwrap().len(), 20);
    }
}
