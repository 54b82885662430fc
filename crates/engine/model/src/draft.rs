//! Drafts: tokens that may come next because they came next before. The model reads them in the pass that it makes anyway and says how many
//! of them it would have written: reply tokens that cost a row each, not a pass.
//!
//! Agents repeat themselves: an action's parameters stand in the thought before it, and thoughts are built alike from task to task. So
//! nothing is trained and no second model runs; what is looked through is the sequence itself (prompt lookup decoding, Saxena 2023,
//! <https://github.com/apoorvumang/prompt-lookup-decoding>) and the last completions of others (as in `SuffixDecoding`, Oliaro et al. 2024,
//! <https://arxiv.org/abs/2411.04975>). The model chooses every token itself, from the logits that it would have had without the draft.

/// How much of the text's end is looked for; what goes on after a longer match is hardly more certain.
const LONGEST: usize = 8;
/// Most tokens of a draft.
pub(crate) const MOST_DRAFTED: usize = 16;
/// Tokens of earlier completions that are looked through, at least.
const REMEMBERED: usize = 8 << 10;
/// Tokens compared at once.
const PIECE: usize = 64;
/// Between two completions; no token.
const END: u32 = u32::MAX;
/// Weight of the newest verdict.
const NEW: f32 = 1.0 / 32.0;
/// How fast trust comes back in drafts that are not tried any more.
const FORGIVE: f32 = 1.0 / 256.0;

/// What drafts are made from, and how far they can be trusted.
#[derive(Debug)]
pub(crate) struct Drafts {
    /// Earlier completions, the newest last.
    told: Vec<u32>,
    /// By [`Source`].
    trust: [Trust; 2],
    /// Most tokens of a draft.
    most: usize,
}

/// What may come next.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Draft {
    pub(crate) tokens: Vec<u32>,
    /// Tokens before it that are the same where it was found.
    matched: usize,
    source: Source,
}

/// Where a draft was found.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// In the sequence itself.
    #[default]
    Own,
    /// In an earlier completion.
    Told,
}

/// How often a draft's token is right after a match of 1, 2, ... [`LONGEST`] tokens; the draft's own beginning, once it is right, is part of
/// the match.
#[derive(Debug, Clone, PartialEq)]
struct Trust([f32; LONGEST]);

impl Default for Trust {
    fn default() -> Self {
        Self(std::array::from_fn(|i| Self::prior(i + 1)))
    }
}

impl Trust {
    /// What is expected before any was tried.
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
    /// No drafts are made if `most` is 0.
    pub(crate) fn new(most: usize) -> Self {
        Self { told: Vec::new(), trust: Default::default(), most: most.min(MOST_DRAFTED) }
    }

    /// Up to `room` tokens that may follow `tokens`, each more likely than `worth` to be the model's own.
    pub(crate) fn after(&mut self, tokens: &[u32], room: usize, worth: f32) -> Draft {
        let room = room.min(self.most);
        if room == 0 {
            return Draft::default();
        }
        let found = [(Source::Own, tokens), (Source::Told, &self.told)].into_iter().filter_map(|(source, text)| {
            let (at, matched) = longest(text, tokens)?;
            Some((self.trust[source as usize].of(matched), source, text, at, matched))
        });
        // Where both are as good, what stands in the sequence itself is nearer.
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
            // A text that repeats itself is found at its own end, where it goes on with what is drafted.
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

    /// Takes note that the first `right` tokens of a draft were the model's own, and whether the next one was not: a completion may also
    /// have come to its end there.
    pub(crate) fn judge(&mut self, draft: &Draft, right: usize, wrong: bool) {
        let trust = &mut self.trust[draft.source as usize];
        for i in 0..draft.tokens.len().min(right + usize::from(wrong)) {
            trust.move_to(draft.matched + i, f32::from(u8::from(i < right)), NEW);
        }
    }

    /// Forgets all completions.
    pub(crate) fn forget(&mut self) {
        self.told = Vec::new();
    }

    /// Keeps a completion, with the end of the prompt that it began after.
    pub(crate) fn remember(&mut self, tokens: &[u32], prompt: usize) {
        if self.most == 0 {
            return;
        }
        let told = &tokens[prompt.saturating_sub(LONGEST)..];
        self.told.extend_from_slice(&told[..told.len().min(REMEMBERED)]);
        self.told.push(END);
        if self.told.len() > 2 * REMEMBERED {
            self.told.drain(..self.told.len() - REMEMBERED);
        }
    }
}

/// Where `text` goes on after the longest match, at most [`LONGEST`] tokens, of the end of `tokens`, and how long that is; among equals the
/// last one.
fn longest(text: &[u32], tokens: &[u32]) -> Option<(usize, usize)> {
    let last = *tokens.last()?;
    // After the very end comes nothing.
    let text = &text[..text.len().saturating_sub(1)];
    let mut best: Option<(usize, usize)> = None;
    let mut end = text.len();
    while end > 0 {
        let start = end.saturating_sub(PIECE);
        // Most pieces do not hold the token at all, which is seen of many tokens at once.
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
    fn the_longest_match_is_followed() {
        let mut drafts = Drafts::new(4);
        // 2 3 came twice; after 1 2 3 came 4 5 6.
        let tokens = [1, 2, 3, 4, 5, 6, 9, 2, 3, 7, 7, 1, 2, 3];
        assert_eq!(drafts.after(&tokens, 16, 0.0).tokens, [4, 5, 6, 9]);
        assert_eq!(drafts.after(&tokens, 2, 0.0).tokens, [4, 5]);
        assert_eq!(drafts.after(&[1, 2, 3], 16, 0.0), Draft::default());
        assert_eq!(drafts.after(&[], 16, 0.0), Draft::default());
        assert_eq!(Drafts::new(0).after(&tokens, 16, 0.0), Draft::default());
    }

    #[test]
    fn a_repetition_goes_on() {
        assert_eq!(Drafts::new(5).after(&[8, 1, 2, 1, 2], 16, 0.0).tokens, [1, 2, 1, 2, 1]);
        assert_eq!(Drafts::new(3).after(&[5, 5], 16, 0.0).tokens, [5, 5, 5]);
    }

    #[test]
    fn earlier_completions_are_looked_through_up_to_their_ends() {
        let mut drafts = Drafts::new(8);
        drafts.remember(&[0, 0, 1, 2, 3, 4, 5], 4);
        drafts.remember(&[6, 7], 0);
        assert_eq!(drafts.after(&[9, 2, 3], 16, 0.0).tokens, [4, 5]);
        // The sequence itself is nearer when it matches as well.
        assert_eq!(drafts.after(&[2, 3, 8, 9, 2, 3], 3, 0.0).tokens, [8, 9, 2]);
        for _ in 0..REMEMBERED {
            drafts.remember(&[6, 7, 8], 0);
        }
        assert!(drafts.told.len() <= 2 * REMEMBERED + 4);
        assert_eq!(drafts.after(&[9, 2, 3], 16, 0.0), Draft::default());
        assert_eq!(drafts.after(&[9, 6, 7], 16, 0.0).tokens, [8]);
        drafts.forget();
        assert_eq!(drafts.after(&[9, 6, 7], 16, 0.0), Draft::default());
    }

    #[test]
    fn trust_is_won_and_lost() {
        let mut drafts = Drafts::new(8);
        let tokens = [1, 2, 3, 4, 5, 1];
        let before = drafts.after(&tokens, 16, 0.3).tokens.len();
        for _ in 0..100 {
            let draft = drafts.after(&tokens, 16, 0.0);
            drafts.judge(&draft, 0, true);
        }
        assert!(drafts.after(&tokens, 16, 0.3).tokens.is_empty());
        // It is tried again some time.
        let tries = (0..1_000).take_while(|_| drafts.after(&tokens, 16, 0.3).tokens.is_empty()).count();
        assert!(tries < 1_000);
        for _ in 0..100 {
            let draft = drafts.after(&tokens, 16, 0.0);
            drafts.judge(&draft, draft.tokens.len(), false);
        }
        assert!(drafts.after(&tokens, 16, 0.3).tokens.len() > before);
    }
}
