//! How alike two words mean.
//!
//! Vectors of 21,719 English words, which `data/make_word_vectors.py` computes with all-MiniLM-L6-v2
//! (Apache-2.0): what that model says to a word alone, in the 64 directions in which words differ
//! most. That is model2vec's way (Tulkens and van Dongen, 2024), without weights for frequent words.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Numbers of a vector.
const WIDTH: usize = 64;

/// The words, each on a line, a line feed more, and their vectors: [`WIDTH`] signed bytes each.
static FILE: &[u8] = include_bytes!("../data/word-vectors");

static VECTORS: LazyLock<HashMap<&'static str, WordVector>> = LazyLock::new(|| read(FILE).unwrap_or_default());

/// The vector of a word.
#[derive(Debug)]
pub(crate) struct WordVector {
    numbers: [i8; WIDTH],
    length: f32,
}

impl WordVector {
    /// The vector of a word in lower case, as it is spelt.
    pub(crate) fn of(word: &str) -> Option<&'static WordVector> {
        VECTORS.get(word)
    }

    /// The cosine of two vectors, at least 0: 1 for the same word, above 0.7 for another that may stand
    /// for it.
    pub(crate) fn likeness(&self, other: &WordVector) -> f32 {
        let product: i32 = self.numbers.iter().zip(&other.numbers).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
        (product as f32 / (self.length * other.length)).clamp(0.0, 1.0)
    }
}

/// The file's words and vectors; `None`: it is none.
fn read(file: &'static [u8]) -> Option<HashMap<&'static str, WordVector>> {
    let end = file.windows(2).position(|two| two == b"\n\n")?;
    let words = std::str::from_utf8(&file[..end]).ok()?.split('\n');
    let (vectors, []) = file[end + 2..].as_chunks::<WIDTH>() else { return None };
    if words.clone().count() != vectors.len() {
        return None;
    }
    let vector = |bytes: &[u8; WIDTH]| {
        let numbers = bytes.map(u8::cast_signed);
        let square: i32 = numbers.iter().map(|number| i32::from(*number).pow(2)).sum();
        WordVector { numbers, length: (square.max(1) as f32).sqrt() }
    };
    Some(words.zip(vectors.iter().map(vector)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn likeness(a: &str, b: &str) -> f32 {
        WordVector::of(a).unwrap().likeness(WordVector::of(b).unwrap())
    }

    #[test]
    fn words_for_the_same_thing_are_alike() {
        for (word, like, unlike) in
            [("colour", "blue", "length"), ("weigh", "heavier", "older"), ("cost", "price", "floor"), ("pupils", "students", "metres")]
        {
            assert!(likeness(word, like) > likeness(word, unlike) + 0.2, "{word}: {like}, {unlike}");
            assert!((likeness(word, word) - 1.0).abs() < 1e-6);
        }
        assert!(WordVector::of("Tansley").is_none());
        assert_eq!(VECTORS.len(), 21_719);
    }

    #[test]
    fn what_is_no_file_of_vectors_is_told() {
        assert!(read(b"").is_none() && read(b"a\nb\n\n0123").is_none());
        assert_eq!(read(&[[b'a', b'\n', b'\n'].as_slice(), &[1; WIDTH]].concat().leak()[..]).unwrap().len(), 1);
    }
}
