//! Texts as vectors: BM25 terms as a sparse vector, and a dense one when there is an embedder.

use std::sync::Arc;

use qdrant_edge::SparseVector;
use qdrant_edge::bm25_embed::{EdgeBm25, EdgeBm25Config};
use qdrant_edge::external::ordered_float::NotNan;
use unicode_normalization::UnicodeNormalization;

use crate::embedder::{EmbedError, Embedder};

/// Term saturation and length normalisation, as everybody sets them.
const K1: f64 = 1.2;
const B: f64 = 0.75;
/// Words (without stop words) of an average question with its answer. A constant: the weights of what is stored must not depend on
/// what is stored later.
const AVERAGE_WORDS: f64 = 10.0;
/// Names what decides the terms: language, folding and the constants above. Stored with the data; change it with them.
pub(crate) const TERMS: &str = "bm25-english-folded-k1.2-b0.75-avg10";

/// A text as the stores see it.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoded {
    /// Indices of terms, ascending.
    pub indices: Vec<u32>,
    /// Their weights: saturated frequencies in a memory, 1 in a query. How rare a term is, is the store's business (its IDF modifier).
    pub values: Vec<f32>,
    /// The dense vector.
    pub dense: Option<Vec<f32>>,
}

/// Makes vectors; the same for every store.
pub struct Encoder {
    bm25: EdgeBm25,
    embedder: Option<Arc<dyn Embedder>>,
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder").field("embedder", &self.embedder.as_ref().map(|embedder| embedder.name())).finish_non_exhaustive()
    }
}

impl Encoder {
    /// An encoder, with dense vectors if there is an embedder.
    pub fn new(embedder: Option<Arc<dyn Embedder>>) -> Result<Encoder, EmbedError> {
        let failed = |reason: String| EmbedError { embedder: "bm25".to_owned(), reason };
        let number = |value: f64| NotNan::new(value).map_err(|error| failed(error.to_string()));
        // words, lowercase, without diacritics and English stop words, Snowball stems, hashed as Qdrant's own BM25 does
        let config = EdgeBm25Config {
            k: number(K1)?,
            b: number(B)?,
            avg_len: number(AVERAGE_WORDS)?,
            ascii_folding: Some(true),
            ..EdgeBm25Config::default()
        };
        let bm25 = EdgeBm25::new(config).map_err(|error| failed(error.to_string()))?;
        Ok(Encoder { bm25, embedder })
    }

    /// The embedder's name and dimension.
    pub fn dense(&self) -> Option<(&str, usize)> {
        self.embedder.as_ref().map(|embedder| (embedder.name(), embedder.dimension()))
    }

    /// A text to be remembered.
    pub fn document(&self, text: &str) -> Result<Encoded, EmbedError> {
        let text = canonical(text);
        self.encoded(self.bm25.embed_document(&text), &text)
    }

    /// A text to be compared with what is remembered.
    pub fn query(&self, text: &str) -> Result<Encoded, EmbedError> {
        let text = canonical(text);
        self.encoded(self.bm25.embed_query(&text), &text)
    }

    fn encoded(&self, terms: SparseVector, text: &str) -> Result<Encoded, EmbedError> {
        let dense = match &self.embedder {
            None => None,
            Some(embedder) => {
                let vector = embedder.embed(text)?;
                if vector.len() != embedder.dimension() || vector.iter().any(|value| !value.is_finite()) {
                    let reason = format!("expected {} finite numbers, it gave {}", embedder.dimension(), vector.len());
                    return Err(EmbedError { embedder: embedder.name().to_owned(), reason });
                }
                Some(vector)
            }
        };
        Ok(Encoded { indices: terms.indices, values: terms.values, dense })
    }
}

impl Encoded {
    /// Nothing in the text can be found: it has stop words at most.
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty() && self.dense.is_none()
    }
}

/// Composed form, so that folding sees `é` however it was written.
fn canonical(text: &str) -> String {
    text.nfc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoder() -> Encoder {
        Encoder::new(None).unwrap()
    }

    #[test]
    fn the_same_words_are_the_same_terms() {
        let encoder = encoder();
        let plain = encoder.query("capital rivers sao tome").unwrap();
        assert_eq!(plain, encoder.query("The CAPITALS of a river in Sa\u{303}o Tomé?").unwrap());
        assert_eq!(plain.values, [1.0; 4]);
        assert!(encoder.query("what is the").unwrap().is_empty());
        assert!(encoder.query("").unwrap().is_empty());
    }

    #[test]
    fn frequent_terms_saturate_and_long_texts_count_less() {
        let encoder = encoder();
        let weight = |text: &str| encoder.document(text).unwrap().values[0];
        let (once, twice, often) = (weight("river"), weight("river river"), weight(&"river ".repeat(100)));
        assert!(once < twice && often < 2.2, "{once} {twice} {often}");
        let long = encoder.document(&format!("river {}", "mountain lake forest ".repeat(20))).unwrap();
        let river = encoder.query("river").unwrap().indices[0];
        let at = long.indices.iter().position(|index| *index == river).unwrap();
        assert!(long.values[at] < once);
        assert!(long.indices.is_sorted());
    }
}
