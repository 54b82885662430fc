//! Speculative decoding by prompt lookup: drafts without a draft model.
//!
//! A draft is a sequence of tokens that followed an earlier occurrence of the last tokens. The
//! model verifies it in the pass that it makes anyway, at the cost of one row per token. Agents
//! repeat themselves: an action's parameters are in the thought before it, and thoughts are similar
//! from task to task. Drafts come from the sequence itself (prompt lookup decoding, Saxena 2023,
//! <https://github.com/apoorvumang/prompt-lookup-decoding>) and from earlier completions (as in
//! `SuffixDecoding`, Oliaro et al. 2024, <https://arxiv.org/abs/2411.04975>). Every token is still
//! chosen from the logits that it would have without drafts.

use std::collections::BTreeMap;

/// Maximum length of a match in tokens; a longer match hardly improves the prediction.
const LONGEST: usize = 8;
/// Maximum number of tokens of a draft.
pub(crate) const MOST_DRAFTED: usize = 16;
/// Minimum number of tokens of earlier completions that are searched.
const REMEMBERED: usize = 8 << 10;
/// Owners whose completions are kept; then the one that asked last longest ago goes.
const OWNERS: usize = 64;
/// Number of tokens compared at a time.
const PIECE: usize = 64;
/// Separator between two completions; not a token.
const END: u32 = u32::MAX;
/// Weight of the newest verification in the acceptance rates.
const NEW: f32 = 1.0 / 32.0;
/// Step by which the acceptance rate of untried drafts returns to its prior.
const FORGIVE: f32 = 1.0 / 256.0;

/// The sources of drafts, and their acceptance rates.
#[derive(Debug)]
pub(crate) struct Drafts {
    /// Earlier completions by owner, the newest last. Nobody's drafts tell of another's completions.
    told: BTreeMap<String, Told>,
    /// Counts completions.
    clock: u64,
    /// Acceptance rates by [`Source`].
    trust: [Trust; 2],
    /// Maximum number of tokens of a draft.
    most: usize,
}

/// Earlier completions of an owner, the newest last.
#[derive(Debug, Default)]
struct Told {
    tokens: Vec<u32>,
    used: u64,
}

/// A draft: tokens that may come next.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Draft {
    pub(crate) tokens: Vec<u32>,
    /// Length of the match before it, in tokens.
    matched: usize,
    source: Source,
}

/// The source of a draft.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The sequence itself.
    #[default]
    Own,
    /// An earlier completion.
    Told,
}

/// Estimated acceptance rate of a drafted token after a match of 1, 2, … [`LONGEST`] tokens.
/// Accepted tokens at the draft's beginning count as part of the match.
#[derive(Debug, Clone, PartialEq)]
struct Trust([f32; LONGEST]);

impl Default for Trust {
    fn default() -> Self {
        Self(std::array::from_fn(|i| Self::prior(i + 1)))
    }
}

impl Trust {
    /// The acceptance rate that is assumed before any verification.
    fn prior(matched: usize) -> f32 {
        1.0 - 0.5 / matched.clamp(1, LONGEST) as f32
    }

    fn of(&self, matched: usize) -> f32 {
        self.0[matched.clamp(1, LONGEST) - 1]
    }

    fn move_to(&mut self, matched: usize, goal: f32, by: f32) {
        let trust = &mut self.0[matched.clamp(1, LONGEST) - 1];
        *trust += by * (goal - *trust);
    }
}

impl Drafts {
    /// With `most` 0, no drafts are made.
    pub(crate) fn new(most: usize) -> Self {
        Self { told: BTreeMap::new(), clock: 0, trust: Default::default(), most: most.min(MOST_DRAFTED) }
    }

    /// A draft of up to `room` tokens after `tokens` of this owner. Each token's estimated probability of
    /// acceptance is larger than `worth`.
    pub(crate) fn after(&mut self, owner: &str, tokens: &[u32], room: usize, worth: f32) -> Draft {
        let room = room.min(self.most);
        if room == 0 {
            return Draft::default();
        }
        let told = self.told.get(owner).map_or(&[][..], |told| &told.tokens);
        let found = [(Source::Own, tokens), (Source::Told, told)].into_iter().filter_map(|(source, text)| {
            let (at, matched) = longest(text, tokens)?;
            Some((self.trust[source as usize].of(matched), source, text, at, matched))
        });
        // On a tie, the sequence itself is preferred.
        let Some((_, source, text, at, matched)) = found.max_by(|a, b| a.0.total_cmp(&b.0).then((b.1 as usize).cmp(&(a.1 as usize))))
        else {
            return Draft::default();
        };
        let trust = &self.trust[source as usize];
        let mut draft = Draft { tokens: Vec::new(), matched, source };
        let mut likely = 1.0;
        for i in 0..room {
            likely *= trust.of(matched + i);
            if likely <= worth {
                break;
            }
            // A repeating text matches at its own end, and continues with the drafted tokens.
            let next = text.get(at + i).or_else(|| draft.tokens.get((at + i).checked_sub(text.len())?)).copied();
            match next.filter(|token| *token != END) {
                Some(token) => draft.tokens.push(token),
                None => break,
            }
        }
        if draft.tokens.is_empty() {
            self.trust[source as usize].move_to(matched, Trust::prior(matched), FORGIVE);
        }
        draft
    }

    /// Updates the acceptance rates: the first `right` tokens of a draft were accepted. `wrong`
    /// says whether the next one was rejected; it is false if the completion ended there.
    pub(crate) fn judge(&mut self, draft: &Draft, right: usize, wrong: bool) {
        let trust = &mut self.trust[draft.source as usize];
        for i in 0..draft.tokens.len().min(right + usize::from(wrong)) {
            trust.move_to(draft.matched + i, f32::from(u8::from(i < right)), NEW);
        }
    }

    /// Removes all earlier completions.
    pub(crate) fn forget(&mut self) {
        self.told = BTreeMap::new();
    }

    /// Stores a completion, with the end of the prompt before it.
    pub(crate) fn remember(&mut self, owner: &str, tokens: &[u32], prompt: usize) {
        if self.most == 0 {
            return;
        }
        let told = &tokens[prompt.saturating_sub(LONGEST)..];
        self.clock += 1;
        if !self.told.contains_key(owner) && self.told.len() >= OWNERS {
            let idle = self.told.iter().min_by_key(|(_, told)| told.used).map(|(owner, _)| owner.clone());
            self.told.remove(&idle.unwrap_or_default());
        }
        let known = self.told.entry(owner.to_owned()).or_default();
        known.used = self.clock;
        known.tokens.extend_from_slice(&told[..told.len().min(REMEMBERED)]);
        known.tokens.push(END);
        if known.tokens.len() > 2 * REMEMBERED {
            known.tokens.drain(..known.tokens.len() - REMEMBERED);
        }
    }
}

/// The longest match of the end of `tokens` in `text`, at most [`LONGEST`] tokens: the position
/// after it and its length. The last one on a tie.
fn longest(text: &[u32], tokens: &[u32]) -> Option<(usize, usize)> {
    let last = *tokens.last()?;
    // Nothing follows the very end.
    let text = &text[..text.len().saturating_sub(1)];
    let mut best: Option<(usize, usize)> = None;
    let mut end = text.len();
    while end > 0 {
        let start = end.saturating_sub(PIECE);
        // Most pieces do not contain the token, which one vectorised comparison shows.
        if text[start..end].iter().fold(false, |any, token| any | (*token == last)) {
            for at in (start + 1..=end).rev().filter(|at| text[at - 1] == last) {
                let matched = text[..at].iter().rev().zip(tokens.iter().rev()).take(LONGEST).take_while(|(a, b)| a == b).count();
                if best.is_none_or(|(_, most)| matched > most) {
                    best = Some((at, matched));
                }
            }
            if best.is_some_and(|(_, matched)| matched == LONGEST) {
                break;
            }
        }
        end = start;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owners_completions_are_its_own() {
        let mut drafts = Drafts::new(8);
        drafts.remember("a", &[1, 2, 3, 4, 5], 0);
        assert_eq!(drafts.after("a", &[9, 2, 3], 16, 0.0).tokens, [4, 5]);
        assert_eq!(drafts.after("b", &[9, 2, 3], 16, 0.0), Draft::default());
        for owner in 0..OWNERS {
            drafts.remember(&owner.to_string(), &[7, 8], 0);
        }
        assert!(drafts.told.len() == OWNERS && !drafts.told.contains_key("a"));
    }

    #[test]
    fn the_longest_match_is_followed() {
        let mut drafts = Drafts::new(4);
        // `2 3` occurs twice, and `1 2 3` was followed by `4 5 6`.
        let tokens = [1, 2, 3, 4, 5, 6, 9, 2, 3, 7, 7, 1, 2, 3];
        assert_eq!(drafts.after("", &tokens, 16, 0.0).tokens, [4, 5, 6, 9]);
        assert_eq!(drafts.after("", &tokens, 2, 0.0).tokens, [4, 5]);
        assert_eq!(drafts.after("", &[1, 2, 3], 16, 0.0), Draft::default());
        assert_eq!(drafts.after("", &[], 16, 0.0), Draft::default());
        assert_eq!(Drafts::new(0).after("", &tokens, 16, 0.0), Draft::default());
    }

    #[test]
    fn a_repetition_goes_on() {
        assert_eq!(Drafts::new(5).after("", &[8, 1, 2, 1, 2], 16, 0.0).tokens, [1, 2, 1, 2, 1]);
        assert_eq!(Drafts::new(3).after("", &[5, 5], 16, 0.0).tokens, [5, 5, 5]);
    }

    #[test]
    fn earlier_completions_are_looked_through_up_to_their_ends() {
        let mut drafts = Drafts::new(8);
        drafts.remember("", &[0, 0, 1, 2, 3, 4, 5], 4);
        drafts.remember("", &[6, 7], 0);
        assert_eq!(drafts.after("", &[9, 2, 3], 16, 0.0).tokens, [4, 5]);
        // On a tie, the sequence itself is preferred.
        assert_eq!(drafts.after("", &[2, 3, 8, 9, 2, 3], 3, 0.0).tokens, [8, 9, 2]);
        for _ in 0..REMEMBERED {
            drafts.remember("", &[6, 7, 8], 0);
        }
        assert!(drafts.told[""].tokens.len() <= 2 * REMEMBERED + 4);
        assert_eq!(drafts.after("", &[9, 2, 3], 16, 0.0), Draft::default());
        assert_eq!(drafts.after("", &[9, 6, 7], 16, 0.0).tokens, [8]);
        drafts.forget();
        assert_eq!(drafts.after("", &[9, 6, 7], 16, 0.0), Draft::default());
    }

    #[test]
    fn trust_is_won_and_lost() {
        let mut drafts = Drafts::new(8);
        let tokens = [1, 2, 3, 4, 5, 1];
        let before = drafts.after("", &tokens, 16, 0.3).tokens.len();
        for _ in 0..100 {
            let draft = drafts.after("", &tokens, 16, 0.0);
            drafts.judge(&draft, 0, true);
        }
        assert!(drafts.after("", &tokens, 16, 0.3).tokens.is_empty());
        // The draft is tried again after some time.
        let tries = (0..1_000).take_while(|_| drafts.after("", &tokens, 16, 0.3).tokens.is_empty()).count();
        assert!(tries < 1_000);
        for _ in 0..100 {
            let draft = drafts.after("", &tokens, 16, 0.0);
            drafts.judge(&draft, draft.tokens.len(), false);
        }
        assert!(drafts.after("", &tokens, 16, 0.3).tokens.len() > before);
    }
}
