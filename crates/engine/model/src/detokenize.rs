//! Streaming detokenisation: token bytes to text, without incomplete characters and stop strings.

/// Converts bytes to text as they arrive. It holds back bytes of an incomplete character and text
/// that may become a stop string. Text that was returned is never withdrawn.
#[derive(Debug, Default)]
pub(crate) struct TextStream {
    /// Bytes of an incomplete character.
    pending: Vec<u8>,
    /// The whole text without a stop string that was found.
    text: String,
    /// Number of bytes of `text` that were returned.
    given: usize,
    stops: Vec<String>,
    stopped: bool,
}

impl TextStream {
    /// Empty stop strings are ignored, because they would end every text at once.
    pub(crate) fn new(stops: &[String]) -> Self {
        Self { stops: stops.iter().filter(|s| !s.is_empty()).cloned().collect(), ..Self::default() }
    }

    /// Adds one token's bytes. Returns true once a stop string is complete; the text ends before
    /// it.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> bool {
        if self.stopped {
            return true;
        }
        self.pending.extend_from_slice(bytes);
        let before = self.text.len();
        let complete = complete_prefix(&self.pending);
        self.text.push_str(&String::from_utf8_lossy(&self.pending[..complete]));
        self.pending.drain(..complete);
        // A stop string that ends in the new text may begin in the old text.
        let longest = self.stops.iter().map(String::len).max().unwrap_or(0);
        let from = floor_char_boundary(&self.text, before.saturating_sub(longest));
        let found = self.stops.iter().filter_map(|s| self.text[from..].find(s.as_str()).map(|at| from + at)).min();
        if let Some(at) = found {
            self.text.truncate(at);
            self.pending.clear();
            self.stopped = true;
        }
        self.stopped
    }

    /// New text that can be shown.
    pub(crate) fn take(&mut self) -> Option<String> {
        let end = if self.stopped { self.text.len() } else { self.text.len() - self.held_back() };
        let new = self.text.get(self.given..end).filter(|t| !t.is_empty())?.to_owned();
        self.given = end;
        Some(new)
    }

    /// Ends the text: an incomplete character becomes U+FFFD, and held-back text is returned.
    pub(crate) fn finish(&mut self) -> Option<String> {
        if !self.stopped && !self.pending.is_empty() {
            self.text.push_str(&String::from_utf8_lossy(&self.pending));
            self.pending.clear();
        }
        self.stopped = true;
        self.take()
    }

    /// The whole text, including held-back text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Number of bytes at the end of the text that may be the beginning of a stop string.
    fn held_back(&self) -> usize {
        let longest = |stop: &String| {
            let cuts = stop.char_indices().map(|(i, _)| i).skip(1);
            cuts.filter(|cut| self.text.ends_with(&stop[..*cut])).max().unwrap_or(0)
        };
        self.stops.iter().map(longest).max().unwrap_or(0)
    }
}

/// Number of leading bytes that later bytes cannot change: all except an incomplete last character.
fn complete_prefix(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let start = bytes.len() - back;
        let needed = match bytes[start] {
            0x80..=0xbf => continue,
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => break,
        };
        // An invalid sequence cannot become valid, so only a valid beginning is held back.
        let valid = std::str::from_utf8(&bytes[start..]).is_err_and(|e| e.error_len().is_none());
        return if needed > back && valid { start } else { bytes.len() };
    }
    bytes.len()
}

fn floor_char_boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(stops: &[&str]) -> TextStream {
        TextStream::new(&stops.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn half_characters_wait() {
        let mut s = stream(&[]);
        let bytes = "→é".as_bytes();
        assert!(!s.push(&bytes[..1]));
        assert_eq!(s.take(), None);
        s.push(&bytes[1..4]);
        assert_eq!(s.take().as_deref(), Some("→"));
        s.push(&bytes[4..]);
        assert_eq!(s.take().as_deref(), Some("é"));
    }

    #[test]
    fn what_is_no_utf8_is_replaced_and_does_not_wait() {
        let mut s = stream(&[]);
        s.push(b"a\xff");
        assert_eq!(s.take().as_deref(), Some("a\u{fffd}"));
        s.push(b"\xe6");
        assert_eq!(s.take(), None);
        assert_eq!(s.finish().as_deref(), Some("\u{fffd}"));
    }

    #[test]
    fn a_stop_string_over_several_tokens_is_never_shown() {
        let mut s = stream(&["\nObservation:"]);
        assert!(!s.push(b"done\nObs"));
        assert_eq!(s.take().as_deref(), Some("done"));
        assert!(!s.push(b"ervation"));
        assert_eq!(s.take(), None);
        assert!(s.push(b": x"));
        assert_eq!(s.take(), None);
        assert_eq!(s.finish(), None);
        assert_eq!(s.text(), "done");
    }

    #[test]
    fn what_only_looked_like_a_stop_string_is_shown() {
        let mut s = stream(&["\nObservation:"]);
        s.push(b"a\nObs");
        assert_eq!(s.take().as_deref(), Some("a"));
        s.push(b"cure");
        assert_eq!(s.take().as_deref(), Some("\nObscure"));
        s.push(b"\nOb");
        assert_eq!(s.take(), None);
        assert_eq!(s.finish().as_deref(), Some("\nOb"));
    }

    #[test]
    fn the_earliest_stop_string_wins() {
        let mut s = stream(&["cd", "b"]);
        assert!(s.push(b"abcd"));
        assert_eq!(s.finish().as_deref(), Some("a"));
    }

    #[test]
    fn a_stop_string_split_inside_a_character() {
        let mut s = stream(&["→→"]);
        for byte in "x→→".as_bytes() {
            s.push(&[*byte]);
            assert!(s.take().is_none_or(|t| t == "x"));
        }
        assert_eq!(s.text(), "x");
    }
}
