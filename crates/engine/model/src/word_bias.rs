//! Logit bias on words. It makes a small model use given words instead of others.

use std::collections::{HashMap, HashSet};

use crate::{GenerateError, Tokenizer};

/// A logit bias on words. The usual `logit_bias` names tokens, so a caller needs the tokenizer. And
/// a token from the middle of a word is only useful after the word's first tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct WordBias {
    /// The words, separated by spaces.
    pub words: String,
    /// Added to the logits of tokens that begin one of the words, or that continue one after the
    /// previous token. It is added before temperature and grammar. With 5, a token of probability
    /// 0.01 becomes likely.
    pub bias: f32,
}

/// A [`WordBias`] in the model's tokens.
#[derive(Debug)]
pub(crate) struct TokenBias {
    bias: f32,
    starts: HashSet<u32>,
    follows: HashMap<u32, HashSet<u32>>,
}

impl TokenBias {
    pub(crate) fn new(of: &WordBias, tokenizer: &Tokenizer) -> Result<TokenBias, GenerateError> {
        let mut starts = HashSet::new();
        let mut follows: HashMap<u32, HashSet<u32>> = HashMap::new();
        for word in of.words.split_whitespace() {
            // with the space that precedes a word within a text
            let tokens = tokenizer.encode(&format!(" {word}"), Some(false))?;
            starts.extend(tokens.first());
            for pair in tokens.windows(2) {
                follows.entry(pair[0]).or_default().insert(pair[1]);
            }
        }
        Ok(TokenBias { bias: of.bias, starts, follows })
    }

    /// Adds the bias to the logits of the token after `last`.
    pub(crate) fn add(&self, last: Option<u32>, logits: &mut [f32]) {
        let follows = last.and_then(|last| self.follows.get(&last)).into_iter().flatten();
        // a token that both begins and continues a word gets the bias once
        for token in self.starts.iter().chain(follows.filter(|token| !self.starts.contains(token))) {
            if let Some(logit) = logits.get_mut(*token as usize) {
                *logit += self.bias;
            }
        }
    }
}
