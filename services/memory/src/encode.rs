//! Texts as vectors for a Qdrant server: BM25 terms as a sparse vector, and a dense one when there
//! is an embedder.

use std::collections::BTreeMap;
use std::sync::Arc;

use autoact_embedding::{EmbedError, Embedder};

use crate::words::Words;

/// Term saturation and length normalisation: the usual constants.
const K1: f64 = 1.2;
const B: f64 = 0.75;
/// Words of an average question with its answer. A constant: the weights of what is stored must not
/// depend on what is stored later.
const AVERAGE_WORDS: f64 = 10.0;

/// A text as a Qdrant server sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoded {
    /// Indices of terms, ascending.
    pub indices: Vec<u32>,
    /// Their weights: saturated frequencies in a memory, 1 in a query. The inverse document
    /// frequency is the server's business (its IDF modifier).
    pub values: Vec<f32>,
    /// The dense vector.
    pub dense: Option<Vec<f32>>,
}

/// Makes vectors.
pub struct Encoder {
    words: Words,
    embedder: Option<Arc<dyn Embedder>>,
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder").field("embedder", &self.embedder.as_ref().map(|embedder| embedder.name())).finish_non_exhaustive()
    }
}

impl Encoder {
    /// An encoder, with dense vectors if there is an embedder.
    pub fn new(embedder: Option<Arc<dyn Embedder>>) -> Encoder {
        Encoder { words: Words::new(), embedder }
    }

    /// The embedder's name and dimension.
    pub fn dense(&self) -> Option<(&str, usize)> {
        self.embedder.as_ref().map(|embedder| (embedder.name(), embedder.dimension()))
    }

    /// A text to be remembered.
    pub fn document(&self, text: &str) -> Result<Encoded, EmbedError> {
        self.encoded(weights(&self.words.of(text), AVERAGE_WORDS), text)
    }

    /// A text to be compared with what is remembered.
    pub fn query(&self, text: &str) -> Result<Encoded, EmbedError> {
        self.encoded(self.words.of(text).iter().map(|word| (term(word), 1.0)).collect(), text)
    }

    fn encoded(&self, terms: BTreeMap<u32, f32>, text: &str) -> Result<Encoded, EmbedError> {
        let dense = match &self.embedder {
            None => None,
            Some(embedder) => {
                let vector = embedder.embed(&[text])?.pop().unwrap_or_default();
                Some(vector)
            }
        };
        let (indices, values) = terms.into_iter().unzip();
        Ok(Encoded { indices, values, dense })
    }
}

impl Encoded {
    /// Nothing in the text can be found: it has stop words at most.
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty() && self.dense.is_none()
    }
}

/// BM25's weights of a text's words, but for the inverse document frequency; `average` is the usual
/// number of words in such a text.
pub(crate) fn weights(words: &[String], average: f64) -> BTreeMap<u32, f32> {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for word in words {
        *counts.entry(word).or_default() += 1;
    }
    let length = 1.0 - B + B * words.len() as f64 / average;
    let weight = |count: u32| f64::from(count) * (K1 + 1.0) / K1.mul_add(length, f64::from(count));
    counts.into_iter().map(|(word, count)| (term(word), weight(count) as f32)).collect()
}

/// The index of a word in a sparse vector, as Qdrant's own BM25 has it.
pub(crate) fn term(word: &str) -> u32 {
    (murmur3(word.as_bytes()) as i32).unsigned_abs()
}

/// MurmurHash3 x86 32 with seed 0.
fn murmur3(bytes: &[u8]) -> u32 {
    let mix = |chunk: u32| chunk.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    let chunk = |bytes: &[u8]| bytes.iter().rev().fold(0, |chunk, byte| chunk << 8 | u32::from(*byte));
    let mut chunks = bytes.chunks_exact(4);
    let mut hash =
        (&mut chunks).fold(0_u32, |hash, four| (hash ^ mix(chunk(four))).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64));
    hash ^= mix(chunk(chunks.remainder())) ^ bytes.len() as u32;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoder() -> Encoder {
        Encoder::new(None)
    }

    #[test]
    fn hashes_are_murmurs() {
        // the reference implementation's values
        assert_eq!(murmur3(b""), 0);
        assert_eq!(murmur3(b"hello"), 0x248b_fa47);
        assert_eq!(murmur3(b"hello, world"), 0x149b_bb7f);
        assert_eq!(murmur3(b"The quick brown fox jumps over the lazy dog"), 0x2e4f_f723);
    }

    /// What qdrant-edge 0.7.2 made of these texts: collections that hold such vectors are in use.
    #[test]
    fn vectors_are_those_of_qdrants_own_bm25() {
        let encoder = encoder();
        for (text, indices, values) in [
            (
                "What is the capital of São Tomé and Príncipe?\nSão Tomé",
                &[59053366, 939358861, 993668915, 1314356056][..],
                &[1.5492958, 1.5492958, 1.1956521, 1.1956521][..],
            ),
            (
                "Which country does the river Rhine end in?\nNetherlands",
                &[12344922, 321455784, 397050504, 939215365, 1947576217],
                &[1.2571429, 1.2571429, 1.2571429, 1.2571429, 1.2571429],
            ),
            (
                "Added international rivers, rivers, RIVERS: 3.14 km²",
                &[12344922, 264741300, 1271291307, 1749031367, 2042170485, 2139336747],
                &[1.641791, 1.089109, 1.089109, 1.089109, 1.089109, 1.089109],
            ),
            ("東京 ΟΔΟΣ Łódź don't Ǧ", &[17478605, 242555882, 1698091772, 1765863102], &[1.3253012, 1.3253012, 1.3253012, 1.3253012]),
        ] {
            let document = encoder.document(text).unwrap();
            assert_eq!((&*document.indices, &*document.values), (indices, values), "{text}");
            let query = encoder.query(text).unwrap();
            assert_eq!((&*query.indices, query.values.len()), (indices, indices.len()), "{text}");
        }
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
