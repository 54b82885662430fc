//! Texts as word pieces.

use std::path::Path;

use tokenizers::{Tokenizer, TruncationParams};

use super::files::{REFETCH, model};
use crate::EmbedError;

/// Bytes of a text that are read first, for each piece that the model reads. English has 4 to 5 per
/// piece; what is not read costs neither time nor memory.
const BYTES_PER_PIECE: usize = 16;

/// A tokenizer that cuts texts at the model's length.
pub(crate) struct Pieces {
    tokenizer: Tokenizer,
    length: usize,
}

impl Pieces {
    /// Parses a `tokenizer.json`. What it says about truncation and padding is not used.
    pub(crate) fn new(path: &Path, json: &[u8], length: usize, vocabulary: usize) -> Result<Pieces, EmbedError> {
        let unfit = |reason: String| model(path, reason, REFETCH);
        let mut tokenizer = Tokenizer::from_bytes(json).map_err(|error| unfit(format!("not a tokenizer: {error}")))?;
        let highest = tokenizer.get_vocab(true).into_values().max().unwrap_or_default() as usize;
        if highest >= vocabulary {
            return Err(unfit(format!("it has the piece {highest}, but the model knows {vocabulary}")));
        }
        let truncation = TruncationParams { max_length: length, ..TruncationParams::default() };
        tokenizer.with_padding(None).with_truncation(Some(truncation)).map_err(|error| unfit(error.to_string()))?;
        Ok(Pieces { tokenizer, length })
    }

    /// The pieces of a text, between the marks of its beginning and its end.
    pub(crate) fn of(&self, text: &str) -> Result<Vec<u32>, EmbedError> {
        let mut bytes = BYTES_PER_PIECE * self.length;
        loop {
            let read = beginning(text, bytes);
            let encoding = self.tokenizer.encode_fast(read, true);
            let ids = encoding.map_err(|error| EmbedError::Pieces { reason: error.to_string() })?.get_ids().to_vec();
            if ids.len() >= self.length || read.len() == text.len() {
                return Ok(ids);
            }
            bytes = bytes.saturating_mul(8);
        }
    }
}

/// The beginning of a text: at least `bytes`, up to a blank, because a word has to be read whole.
fn beginning(text: &str, bytes: usize) -> &str {
    let blank = |at: &usize| text.as_bytes()[*at].is_ascii_whitespace();
    (bytes..text.len()).find(blank).map_or(text, |at| &text[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_ends_at_a_blank() {
        assert_eq!(beginning("one two three", 0), "one two three".split_at(3).0);
        assert_eq!(beginning("one two three", 3), "one");
        assert_eq!(beginning("one two three", 4), "one two");
        assert_eq!(beginning("one two three", 9), "one two three");
        assert_eq!(beginning("one two three", 90), "one two three");
        assert_eq!(beginning("東京 東京", 1), "東京");
    }
}
