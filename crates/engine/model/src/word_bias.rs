//! Logit bias on words. It makes a small model use given words instead of others.

use crate::{GenerateError, Tokenizer};

/// A logit bias on words. The usual `logit_bias` names tokens, so a caller needs the tokenizer. And
/// a token from the middle of a word is only useful after the word's first tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct WordBias {
    /// The words, separated by spaces.
    pub words: String,
    /// Added to the logits of tokens that continue one of the words, where the completion ends in
    /// the beginning of one, else of those that begin one. It is added before temperature and
    /// grammar. With 5, a token of probability 0.01 becomes likely. A word has it until the
    /// completion has the word: what a text has said once it need not say again, and would else say
    /// in place of anything else.
    pub bias: f32,
}

/// A [`WordBias`] in the model's tokens.
#[derive(Debug)]
pub(crate) struct TokenBias {
    bias: f32,
    /// The tokens of each word.
    words: Vec<Vec<u32>>,
}

impl TokenBias {
    pub(crate) fn new(of: &WordBias, tokenizer: &Tokenizer) -> Result<TokenBias, GenerateError> {
        // with the space that precedes a word within a text
        let words = of.words.split_whitespace().map(|word| tokenizer.encode(&format!(" {word}"), Some(false)));
        let mut words = words.collect::<Result<Vec<_>, _>>()?;
        words.retain(|tokens| !tokens.is_empty());
        Ok(TokenBias { bias: of.bias, words })
    }

    /// Adds the bias to the logits of the token after this completion.
    pub(crate) fn add(&self, completion: &[u32], logits: &mut [f32]) {
        let open: Vec<&Vec<u32>> =
            self.words.iter().filter(|word| !completion.windows(word.len()).any(|said| said == word.as_slice())).collect();
        let next = |word: &&Vec<u32>| Some(word[(1..word.len()).rev().find(|begun| completion.ends_with(&word[..*begun]))?]);
        let mut tokens: Vec<u32> = open.iter().filter_map(next).collect();
        if tokens.is_empty() {
            tokens.extend(open.iter().map(|word| word[0]));
        }
        // a token that several words have next gets the bias once
        tokens.sort_unstable();
        tokens.dedup();
        for token in tokens {
            if let Some(logit) = logits.get_mut(token as usize) {
                *logit += self.bias;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_favoured_until_it_is_said() {
        // both words begin with the same token
        let bias = TokenBias { bias: 2.0, words: vec![vec![1, 2], vec![1, 3, 4]] };
        let favoured = |completion: &[u32]| -> Vec<usize> {
            let mut logits = [0.0; 6];
            bias.add(completion, &mut logits);
            assert!(logits.iter().all(|logit| [0.0, 2.0].contains(logit)), "never twice");
            (0..6).filter(|token| logits[*token] > 0.0).collect()
        };
        assert_eq!(favoured(&[]), [1]);
        assert_eq!(favoured(&[0, 1]), [2, 3]);
        assert_eq!(favoured(&[0, 1, 2]), [1], "the other word is still to be said");
        assert_eq!(favoured(&[1, 2, 1]), [3]);
        assert_eq!(favoured(&[1, 2, 1, 3]), [4]);
        assert!(favoured(&[1, 2, 0, 1, 3, 4]).is_empty());
        assert!(favoured(&[1, 3, 4, 1, 2, 1]).is_empty());
    }
}
