//! Logit bias by words: a small model that names things in words of its own is led to try those at hand.

use std::collections::{HashMap, HashSet};

use crate::{GenerateError, Tokenizer};

/// Words that sampling leans towards. Other interfaces' `logit_bias` names tokens, which only who knows the tokenizer can; and a token in
/// the middle of a word fits where the word has begun, not anywhere.
#[derive(Debug, Clone, PartialEq)]
pub struct WordBias {
    /// The words, with spaces between them.
    pub words: String,
    /// Added to the logits of tokens that begin one of the words, and of those that go on with it after the token before; before
    /// temperature and grammar. 0 changes nothing, 5 makes a likely choice of one in a hundred.
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
            // with the space before it that it has within a text
            let tokens = tokenizer.encode(&format!(" {word}"), Some(false))?;
            starts.extend(tokens.first());
            for pair in tokens.windows(2) {
                follows.entry(pair[0]).or_default().insert(pair[1]);
            }
        }
        Ok(TokenBias { bias: of.bias, starts, follows })
    }

    /// Adds to the logits of the token that comes after `last`.
    pub(crate) fn add(&self, last: Option<u32>, logits: &mut [f32]) {
        let follows = last.and_then(|last| self.follows.get(&last)).into_iter().flatten();
        // a token that both begins a word and goes on with one gets it once
        for token in self.starts.iter().chain(follows.filter(|token| !self.starts.contains(token))) {
            if let Some(logit) = logits.get_mut(*token as usize) {
                *logit += self.bias;
            }
        }
    }
}
