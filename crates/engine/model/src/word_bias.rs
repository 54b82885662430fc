//! Logit bias on words. It makes a small model use given words instead of others.

use crate::{GenerateError, Tokenizer};

/// A logit bias on a word. The usual `logit_bias` names tokens, so a caller needs the tokenizer. And
/// a token from the middle of a word is only useful after the word's first tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct WordBias {
    /// The word, or a phrase of several.
    pub word: String,
    /// Added to the logit of the token that begins the word. Where the completion ends in the beginning
    /// of one, twice the bias is added to that of the token that continues it, and nothing to others.
    /// It is added before temperature and grammar.
    /// With 5, a token of probability 0.01 becomes likely. A word has it until the completion has the
    /// word: what a text has said once it need not say again, and would else say in place of anything
    /// else.
    pub bias: f32,
    /// The bias begins once the completion has this text: a value is said after what it is the value
    /// of. Empty: from the beginning.
    pub after: String,
}

impl WordBias {
    /// The same bias on each of these words, from the beginning.
    pub fn all<S: Into<String>>(words: impl IntoIterator<Item = S>, bias: f32) -> Vec<WordBias> {
        words.into_iter().map(|word| WordBias { word: word.into(), bias, after: String::new() }).collect()
    }
}

/// The bias on a token that continues a word, in that on one that begins it: half a word is worse than
/// none.
const CONTINUED: f32 = 2.0;

/// Biased words, in the model's tokens.
#[derive(Debug)]
pub(crate) struct TokenBias {
    words: Vec<BiasedWord>,
}

#[derive(Debug)]
struct BiasedWord {
    tokens: Vec<u32>,
    bias: f32,
    after: Vec<u32>,
}

impl BiasedWord {
    /// The part of this completion in which it is to be said; `None`: it is said, or its time has not
    /// come.
    fn open<'a>(&self, completion: &'a [u32]) -> Option<&'a [u32]> {
        let find = |words: &[u32]| completion.windows(words.len().max(1)).position(|said| said == words);
        if find(&self.tokens).is_some() {
            return None;
        }
        if self.after.is_empty() { Some(completion) } else { find(&self.after).map(|at| &completion[at + self.after.len()..]) }
    }
}

impl TokenBias {
    pub(crate) fn new(of: &[WordBias], tokenizer: &Tokenizer) -> Result<TokenBias, GenerateError> {
        // with the space that precedes a word within a text
        let encode = |text: &str| tokenizer.encode(&format!(" {}", text.trim()), Some(false));
        let mut words = Vec::new();
        for one in of.iter().filter(|one| !one.word.trim().is_empty()) {
            let after = if one.after.trim().is_empty() { Vec::new() } else { encode(&one.after)? };
            words.push(BiasedWord { tokens: encode(&one.word)?, bias: one.bias, after });
        }
        words.retain(|word| !word.tokens.is_empty());
        Ok(TokenBias { words })
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Adds the bias to the logits of the token after this completion.
    pub(crate) fn add(&self, completion: &[u32], logits: &mut [f32]) {
        let open: Vec<(&BiasedWord, &[u32])> = self.words.iter().filter_map(|word| Some((word, word.open(completion)?))).collect();
        let next = |(word, rest): &(&BiasedWord, &[u32])| {
            let begun = (1..word.tokens.len()).rev().find(|begun| rest.ends_with(&word.tokens[..*begun]))?;
            Some((word.tokens[begun], CONTINUED * word.bias))
        };
        let mut tokens: Vec<(u32, f32)> = open.iter().filter_map(next).collect();
        if tokens.is_empty() {
            tokens.extend(open.iter().map(|(word, _)| (word.tokens[0], word.bias)));
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
        let word = |tokens: &[u32], bias| BiasedWord { tokens: tokens.to_vec(), bias, after: Vec::new() };
        let bias = TokenBias { words: vec![word(&[1, 2], 2.0), word(&[1, 3, 4], 1.0)] };
        let favoured = |completion: &[u32]| -> Vec<usize> {
            let mut logits = [0.0; 6];
            bias.add(completion, &mut logits);
            let biases = [0.0, 1.0, 2.0, CONTINUED, 2.0 * CONTINUED];
            assert!(logits.iter().all(|logit| biases.contains(logit)), "never twice");
            (0..6).filter(|token| logits[*token] > 0.0).collect()
        };
        assert_eq!(favoured(&[]), [1]);
        let mut logits = [0.0; 6];
        bias.add(&[], &mut logits);
        assert!(logits[1] > 1.5, "the greater of the two");
        let mut logits = [0.0; 6];
        bias.add(&[1], &mut logits);
        assert_eq!((logits[2], logits[3]), (2.0 * CONTINUED, CONTINUED));
        assert_eq!(favoured(&[0, 1]), [2, 3]);
        assert_eq!(favoured(&[0, 1, 2]), [1], "the other word is still to be said");
        assert_eq!(favoured(&[1, 2, 1]), [3]);
        assert_eq!(favoured(&[1, 2, 1, 3]), [4]);
        assert!(favoured(&[1, 2, 0, 1, 3, 4]).is_empty());
        assert!(favoured(&[1, 3, 4, 1, 2, 1]).is_empty());
    }

    #[test]
    fn a_value_is_favoured_after_what_it_is_the_value_of() {
        let bias = TokenBias { words: vec![BiasedWord { tokens: vec![1, 2], bias: 1.0, after: vec![5, 0] }] };
        let favoured = |completion: &[u32]| -> Vec<usize> {
            let mut logits = [0.0; 6];
            bias.add(completion, &mut logits);
            (0..6).filter(|token| logits[*token] > 0.0).collect()
        };
        assert!(favoured(&[]).is_empty() && favoured(&[5]).is_empty() && favoured(&[0, 5]).is_empty());
        assert_eq!(favoured(&[3, 5, 0]), [1]);
        assert_eq!(favoured(&[5, 0, 4, 1]), [2]);
        assert!(favoured(&[5, 0, 1, 2]).is_empty());
        // the name ends as the value begins: `Line 1`, and `11.4 km`
        let bias = TokenBias { words: vec![BiasedWord { tokens: vec![1, 2], bias: 1.0, after: vec![5, 1] }] };
        let mut logits = [0.0; 6];
        bias.add(&[5, 1], &mut logits);
        assert_eq!(logits, [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    }
}
