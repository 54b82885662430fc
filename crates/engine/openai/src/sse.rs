//! Server-sent events, as far as completions use them: the data of each event.

use bytes::{Buf, Bytes, BytesMut};

/// Maximum length of a line in bytes; a chunk of a completion has a few hundred.
const MAX_LINE: usize = 1 << 20;

/// A line is longer than the maximum.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Splits a body into the data of its events.
#[derive(Debug, Default)]
pub(crate) struct Events {
    unread: BytesMut,
    /// Data lines of the incomplete event.
    data: Option<String>,
}

impl Events {
    /// Adds bytes of the body.
    pub(crate) fn push(&mut self, bytes: &Bytes) -> Result<(), TooLong> {
        self.unread.extend_from_slice(bytes);
        if self.unread.len() > MAX_LINE && !self.unread.contains(&b'\n') { Err(TooLong) } else { Ok(()) }
    }

    /// Ends the body; a last event without an empty line counts.
    pub(crate) fn end(&mut self) {
        self.unread.extend_from_slice(b"\n\n");
    }

    /// The data of the next complete event.
    pub(crate) fn next(&mut self) -> Option<String> {
        while let Some(at) = self.unread.iter().position(|byte| *byte == b'\n') {
            let line = self.unread.split_to(at);
            self.unread.advance(1);
            let line = line.strip_suffix(b"\r").unwrap_or(&line);
            if line.is_empty() {
                if let Some(data) = self.data.take() {
                    return Some(data);
                }
            } else if let Some(data) = line.strip_prefix(b"data:") {
                let data = String::from_utf8_lossy(data.strip_prefix(b" ").unwrap_or(data));
                match &mut self.data {
                    Some(before) => {
                        before.push('\n');
                        before.push_str(&data);
                    }
                    None => self.data = Some(data.into_owned()),
                }
            }
            // comments (`: keep-alive`), `event:`, `id:` and `retry:` are not used
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&str]) -> Vec<String> {
        let mut events = Events::default();
        let mut out = Vec::new();
        for piece in pieces {
            events.push(&Bytes::copy_from_slice(piece.as_bytes())).unwrap();
            out.extend(std::iter::from_fn(|| events.next()));
        }
        events.end();
        out.extend(std::iter::from_fn(|| events.next()));
        out
    }

    #[test]
    fn events_are_cut_wherever_the_network_cuts() {
        let text = ": hello\n\nevent: x\ndata: {\"a\": \"é\"}\n\ndata:two\r\ndata: lines\r\n\r\ndata: [DONE]";
        let whole = read(&[text]);
        assert_eq!(whole, ["{\"a\": \"é\"}", "two\nlines", "[DONE]"]);
        for at in 0..text.len() {
            let (a, b) = text.as_bytes().split_at(at);
            let mut events = Events::default();
            let mut out = Vec::new();
            for part in [a, b] {
                events.push(&Bytes::copy_from_slice(part)).unwrap();
                out.extend(std::iter::from_fn(|| events.next()));
            }
            events.end();
            out.extend(std::iter::from_fn(|| events.next()));
            assert_eq!(out, whole, "cut at {at}");
        }
    }

    #[test]
    fn a_line_has_a_bound() {
        let mut events = Events::default();
        assert_eq!(events.push(&Bytes::from(vec![b'x'; MAX_LINE])), Ok(()));
        assert_eq!(events.push(&Bytes::from_static(b"x")), Err(TooLong));
    }
}
