//! Logit bias on words. It makes a small model use given words instead of others.

use crate::{GenerateError, Tokenizer};

/// A logit bias on a word. The usual `logit_bias` names tokens, so a caller needs the tokenizer. And
/// a token from the middle of a word is only useful after the word's first tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct WordBias {
    /// The word, or a phrase of several.
    pub word: String,
    /// Added to the logit of the token that continues the word, where the completion ends in the
    /// beginning of one, else of that which begins it. It is added before temperature and grammar.
    /// With 5, a token of probability 0.01 becomes likely. A word has it until the completion has the
    /// word: what a text has said once it need not say again, and would else say in place of anything
    /// else.
    pub bias: f32,
}

impl WordBias {
    /// The same bias on each of these words.
    pub fn all<S: Into<String>>(words: impl IntoIterator<Item = S>, bias: f32) -> Vec<WordBias> {
        words.into_iter().map(|word| WordBias { word: word.into(), bias }).collect()
    }
}

/// Biased words, in the model's tokens.
#[derive(Debug)]
pub(crate) struct TokenBias {
    words: Vec<(Vec<u32>, f32)>,
}

impl TokenBias {
    pub(crate) fn new(of: &[WordBias], tokenizer: &Tokenizer) -> Result<TokenBias, GenerateError> {
        // with the space that precedes a word within a text
        let encode = |one: &WordBias| Ok((tokenizer.encode(&format!(" {}", one.word.trim()), Some(false))?, one.bias));
        let named = of.iter().filter(|one| !one.word.trim().is_empty());
        let mut words = named.map(encode).collect::<Result<Vec<_>, GenerateError>>()?;
        words.retain(|(tokens, _)| !tokens.is_empty());
        Ok(TokenBias { words })
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Adds the bias to the logits of the token after this completion.
    pub(crate) fn add(&self, completion: &[u32], logits: &mut [f32]) {
        let open: Vec<&(Vec<u32>, f32)> =
            self.words.iter().filter(|(word, _)| !completion.windows(word.len()).any(|said| said == word.as_slice())).collect();
        let next = |(word, bias): &&(Vec<u32>, f32)| {
            Some((word[(1..word.len()).rev().find(|begun| completion.ends_with(&word[..*begun]))?], *bias))
        };
        let mut tokens: Vec<(u32, f32)> = open.iter().filter_map(next).collect();
        if tokens.is_empty() {
            tokens.extend(open.iter().map(|(word, bias)| (word[0], *bias)));
        }
        // a token that several words have next gets one bias, the greatest
        tokens.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        tokens.dedup_by_key(|(token, _)| *token);
        for (token, bias) in tokens {
            if let Some(logit) = logits.get_mut(token as usize) {
                *logit += bias;
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
        let bias = TokenBias { words: vec![(vec![1, 2], 2.0), (vec![1, 3, 4], 1.0)] };
        let favoured = |completion: &[u32]| -> Vec<usize> {
            let mut logits = [0.0; 6];
            bias.add(completion, &mut logits);
            assert!(logits.iter().all(|logit| [0.0, 1.0, 2.0].contains(logit)), "never twice");
            (0..6).filter(|token| logits[*token] > 0.0).collect()
        };
        assert_eq!(favoured(&[]), [1]);
        let mut logits = [0.0; 6];
        bias.add(&[], &mut logits);
        assert!(logits[1] > 1.5, "the greater of the two");
        assert_eq!(favoured(&[0, 1]), [2, 3]);
        assert_eq!(favoured(&[0, 1, 2]), [1], "the other word is still to be said");
        assert_eq!(favoured(&[1, 2, 1]), [3]);
        assert_eq!(favoured(&[1, 2, 1, 3]), [4]);
        assert!(favoured(&[1, 2, 0, 1, 3, 4]).is_empty());
        assert!(favoured(&[1, 3, 4, 1, 2, 1]).is_empty());
    }
}
