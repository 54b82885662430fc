//! Log-probabilities of a completion's tokens, and of two continuations against each other.
//!
//! They come from the raw logits: the softmax over the whole vocabulary, before grammar, word bias,
//! temperature, `top_k` and `top_p`. Tokens that a grammar forced are scored like all others.

use std::borrow::Cow;

use autoact_kernels::log_sum_exp;

use crate::{GenerateError, Tokenizer};

/// What to score of a completion. An engine computes it beside decoding; a remote server may not
/// be able to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scores {
    /// Only the tokens before this text (a label, such as `\nAction:`) are scored; `None`, or a
    /// completion without it: all.
    pub until: Option<String>,
    /// Two continuations to compare.
    pub odds: Option<Odds>,
}

/// Two texts that may follow a label. Their log-odds are the difference of their log-probabilities
/// there, whichever of them the completion chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Odds {
    /// The label. Its first occurrence in the completion counts; empty: the end of the prompt.
    pub after: String,
    /// The text whose probability is the numerator.
    pub this: String,
    /// The text whose probability is the denominator.
    pub other: String,
}

/// The scores of a completion.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scored {
    /// The tokens of the completion's text, from the first to the last that was asked for, without
    /// a gap. Those of a stop string and of the end of the sequence are not part of it.
    pub tokens: Vec<TokenScore>,
    /// `ln p(this) - ln p(other)` of [`Odds`]; `None` if it was not asked for, if the label did not
    /// come, or if a server does not report one of the two.
    pub log_odds: Option<f64>,
}

/// The score of a token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenScore {
    /// The byte of the completion's text at which the token begins.
    pub at: usize,
    /// Its natural log-probability after all tokens before it.
    pub log_prob: f64,
}

impl Scored {
    /// The log-probability of all scored tokens together.
    pub fn log_prob(&self) -> f64 {
        self.tokens.iter().map(|token| token.log_prob).sum()
    }

    /// Removes the tokens that begin at byte `end` of the text or later.
    pub fn truncate(&mut self, end: usize) {
        self.tokens.truncate(self.tokens.partition_point(|token| token.at < end));
    }
}

/// The scores of a running sequence.
pub(crate) struct Scoring {
    until: Option<Label>,
    contest: Option<Contest>,
    /// The completion's bytes.
    bytes: Vec<u8>,
    /// Where in `bytes` each of its tokens begins.
    starts: Vec<usize>,
    /// Log-probabilities of the first tokens.
    log_probs: Vec<f64>,
    log_odds: Option<f64>,
    /// The raw logits of the row that is sampled from, where the sampler changes them.
    raw: Vec<f32>,
}

/// A text that is looked for in the completion.
struct Label {
    text: Vec<u8>,
    /// Where it begins.
    found: Option<usize>,
}

impl Label {
    fn new(text: &str) -> Self {
        Self { text: text.as_bytes().to_vec(), found: text.is_empty().then_some(0) }
    }

    /// Looks into `bytes`, of which everything before `from` has been looked through.
    fn look(&mut self, bytes: &[u8], from: usize) {
        if self.found.is_none() {
            let from = from.saturating_sub(self.text.len() - 1);
            self.found = bytes[from..].windows(self.text.len()).position(|window| window == self.text).map(|at| from + at);
        }
    }

    fn end(&self) -> Option<usize> {
        self.found.map(|at| at + self.text.len())
    }
}

/// Two continuations of a label.
struct Contest {
    after: Label,
    this: String,
    other: String,
    /// Their tokens after a token that ends with the label.
    tokens: [Vec<u32>; 2],
}

/// Two continuations in tokens, and the tokens that they follow.
pub(crate) struct Forks {
    /// Number of tokens of the completion before them.
    pub(crate) from: usize,
    pub(crate) tokens: [Vec<u32>; 2],
}

impl Forks {
    /// Number of tokens that both begin with. They have the same probability in both.
    pub(crate) fn shared(&self) -> usize {
        let [this, other] = &self.tokens;
        this.iter().zip(other).take_while(|(a, b)| a == b).count()
    }
}

impl Scoring {
    pub(crate) fn new(of: &Scores, tokenizer: &Tokenizer) -> Result<Self, GenerateError> {
        let contest = |odds: &Odds| -> Result<Contest, GenerateError> {
            let tokens = [tokenizer.encode_continuing(&odds.this)?, tokenizer.encode_continuing(&odds.other)?];
            Ok(Contest { after: Label::new(&odds.after), this: odds.this.clone(), other: odds.other.clone(), tokens })
        };
        Ok(Self {
            until: of.until.as_deref().map(Label::new),
            contest: of.odds.as_ref().map(contest).transpose()?,
            bytes: Vec::new(),
            starts: Vec::new(),
            log_probs: Vec::new(),
            log_odds: None,
            raw: Vec::new(),
        })
    }

    /// Adds the bytes of the completion's next token.
    pub(crate) fn accept(&mut self, bytes: &[u8]) {
        let from = self.bytes.len();
        self.starts.push(from);
        self.bytes.extend_from_slice(bytes);
        for label in self.until.iter_mut().chain(self.contest.as_mut().map(|contest| &mut contest.after)) {
            label.look(&self.bytes, from);
        }
    }

    /// Number of tokens that have a score.
    pub(crate) fn len(&self) -> usize {
        self.log_probs.len()
    }

    /// Whether the first token without a score, which may be the next one to come, needs one.
    pub(crate) fn wanted(&self) -> bool {
        let start = self.starts.get(self.len()).copied().unwrap_or(self.bytes.len());
        self.until.as_ref().and_then(|label| label.found).is_none_or(|limit| start < limit)
    }

    /// Whether tokens of the finished text need scores that they do not have. `text` is its length.
    pub(crate) fn incomplete(&self, text: usize) -> bool {
        self.len() < self.kept(text)
    }

    /// Number of tokens of the finished text that need scores.
    fn kept(&self, text: usize) -> usize {
        let limit = self.until.as_ref().and_then(|label| label.found).unwrap_or(usize::MAX);
        let limit = limit.min(self.bytes.len());
        let places = self.places();
        self.starts.iter().zip(places.iter()).take_while(|(start, at)| **start < limit && **at < text).count()
    }

    /// Where in the text each token begins. In the text, bytes that are no UTF-8 are three bytes of
    /// U+FFFD.
    fn places(&self) -> Cow<'_, [usize]> {
        if std::str::from_utf8(&self.bytes).is_ok() {
            return Cow::Borrowed(&self.starts);
        }
        let mut starts = self.starts.iter().peekable();
        let mut places = Vec::with_capacity(self.starts.len());
        let (mut byte, mut at) = (0, 0);
        for chunk in self.bytes.utf8_chunks() {
            let (valid, invalid) = (chunk.valid().len(), chunk.invalid().len());
            while let Some(start) = starts.next_if(|start| **start < byte + valid + invalid) {
                places.push(at + (start - byte).min(valid));
            }
            byte += valid + invalid;
            at += valid + if invalid > 0 { char::REPLACEMENT_CHARACTER.len_utf8() } else { 0 };
        }
        places.extend(starts.map(|_| at));
        Cow::Owned(places)
    }

    /// Scores a token whose row of logits is as the model gave it.
    pub(crate) fn score(&mut self, logits: &[f32], token: u32) {
        if self.wanted() {
            self.log_probs.push(f64::from(logits[token as usize]) - log_sum_exp(logits));
        }
    }

    /// Reads a row of logits before a token is sampled from it. `tokens` are those of the
    /// completion; `changes` says whether the sampler changes logits of allowed tokens. Returns
    /// what [`Scoring::sampled`] needs.
    pub(crate) fn read(&mut self, logits: &[f32], tokens: &[u32], changes: bool) -> Option<f64> {
        self.weigh(logits, tokens);
        let sum = self.wanted().then(|| log_sum_exp(logits))?;
        if changes {
            self.raw.clear();
            self.raw.extend_from_slice(logits);
        }
        Some(sum)
    }

    /// Scores the token that was sampled from a row that was read.
    pub(crate) fn sampled(&mut self, logits: &[f32], token: u32, sum: f64, changes: bool) {
        let raw = if changes { &self.raw } else { logits };
        self.log_probs.push(f64::from(raw[token as usize]) - sum);
    }

    /// Compares the continuations in the row where they part, if each has only one token from
    /// there on.
    fn weigh(&mut self, logits: &[f32], tokens: &[u32]) {
        if self.log_odds.is_some() {
            return;
        }
        let Some(forks) = self.forks() else { return };
        let shared = forks.shared();
        let [this, other] = &forks.tokens;
        if let (&[a], &[b]) = (&this[shared..], &other[shared..])
            && tokens.get(forks.from..) == Some(&this[..shared])
            && let (Some(a), Some(b)) = (logits.get(a as usize), logits.get(b as usize))
        {
            self.log_odds = Some(f64::from(*a) - f64::from(*b));
        }
    }

    /// The continuations, if they can follow the completion so far: their label must have come, and
    /// end where a token ends.
    fn forks(&self) -> Option<Forks> {
        let contest = self.contest.as_ref()?;
        let end = contest.after.end()?;
        let from = self.starts.partition_point(|start| *start < end);
        let whole = self.starts.get(from).copied().unwrap_or(self.bytes.len()) == end;
        whole.then(|| Forks { from, tokens: contest.tokens.clone() })
    }

    /// The continuations after a finished completion, if they have not been compared. A token that
    /// holds the end of the label and more is replaced: each continuation then begins with the
    /// token's part of the label.
    pub(crate) fn unweighed(&self, tokenizer: &Tokenizer) -> Result<Option<Forks>, GenerateError> {
        let Some(contest) = self.contest.as_ref().filter(|_| self.log_odds.is_none()) else { return Ok(None) };
        let Some(end) = contest.after.end() else { return Ok(None) };
        if let Some(forks) = self.forks() {
            return Ok(Some(forks));
        }
        let from = self.starts.partition_point(|start| *start < end).saturating_sub(1);
        let part = String::from_utf8_lossy(&self.bytes[self.starts[from]..end]);
        let continued = |text: &String| tokenizer.encode_continuing(&format!("{part}{text}"));
        Ok(Some(Forks { from, tokens: [continued(&contest.this)?, continued(&contest.other)?] }))
    }

    /// Sets the log-odds that were computed apart.
    pub(crate) fn set_log_odds(&mut self, log_odds: f64) {
        self.log_odds = Some(log_odds);
    }

    /// The scores of a finished text of `text` bytes; `None` if a number is not finite, which
    /// sound weights do not give.
    pub(crate) fn finish(self, text: usize) -> Option<Scored> {
        let kept = self.kept(text);
        let places = self.places();
        let scores = places.iter().zip(&self.log_probs).take(kept);
        let tokens: Vec<TokenScore> = scores.map(|(at, log_prob)| TokenScore { at: *at, log_prob: *log_prob }).collect();
        let finite = tokens.len() == kept && tokens.iter().map(|token| token.log_prob).chain(self.log_odds).all(f64::is_finite);
        finite.then_some(Scored { tokens, log_odds: self.log_odds })
    }
}
