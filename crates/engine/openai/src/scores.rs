//! Log-probabilities as servers report them.

use std::collections::BTreeMap;

use autoact_model::{Scored, Scores, TokenScore};
use serde::Deserialize;
use serde_json::Value;

/// What vLLM and others put in place of minus infinity, which JSON cannot express.
const IMPOSSIBLE: f64 = -9999.0;

/// Likely tokens at a place, with their log-probabilities.
type Likely = BTreeMap<String, Option<f64>>;

/// `logprobs` of a choice, in the form of completions, or in that of chats, which some servers use
/// for completions too.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Logprobs {
    tokens: Vec<String>,
    token_logprobs: Vec<Option<f64>>,
    top_logprobs: Option<Vec<Option<Likely>>>,
    content: Option<Vec<Entry>>,
}

/// A token in the form of chats.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Entry {
    token: String,
    logprob: Option<f64>,
    top_logprobs: Vec<Entry>,
}

/// One token of a reply.
#[derive(Debug, Clone, PartialEq)]
struct Piece {
    /// Its bytes in the text. Where the server's tokens do not spell its text, they are those of
    /// all tokens that came with that text.
    at: usize,
    end: usize,
    log_prob: f64,
    /// Tokens that could stand here, the chosen one included.
    instead: Vec<(String, f64)>,
}

/// The log-probabilities of a completion, as far as they have come.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pieces: Vec<Piece>,
}

impl Gathered {
    /// Adds what came with `text`, which begins at byte `at` of the completion. What is no list of
    /// log-probabilities is left out, like a number that is missing or none.
    pub(crate) fn add(&mut self, at: usize, text: &str, logprobs: &Value) {
        let tokens = tokens(logprobs);
        let spelled = tokens.iter().map(|token| token.token.as_str()).eq_concatenated(text);
        let mut next = at;
        for Entry { token, logprob, top_logprobs } in tokens {
            let (at, end) = if spelled { (next, next + token.len()) } else { (at, at + text.len()) };
            next = end;
            let Some(log_prob) = known(logprob) else { continue };
            let mut instead = vec![(token, log_prob)];
            instead.extend(top_logprobs.into_iter().filter_map(|entry| Some((entry.token, known(entry.logprob)?))));
            self.pieces.push(Piece { at, end, log_prob, instead });
        }
    }

    /// Removes tokens that are not whole within the first `len` bytes of the text. Those that spell
    /// nothing may still belong to what follows.
    pub(crate) fn cut(&mut self, len: usize) {
        self.pieces.retain(|piece| piece.end <= len);
    }

    /// Removes tokens without text: of an attempt that failed before its first text.
    pub(crate) fn restart(&mut self, len: usize) {
        self.pieces.retain(|piece| piece.at < len);
    }

    /// The scores that were asked for; `None` if the server did not report those of all tokens.
    pub(crate) fn scored(&self, asked: &Scores, text: &str) -> Option<Scored> {
        if self.pieces.is_empty() {
            return None;
        }
        let limit = asked.until.as_ref().and_then(|label| text.find(label.as_str())).unwrap_or(text.len());
        let mut covered = 0;
        let mut tokens = Vec::new();
        for piece in self.pieces.iter().filter(|piece| piece.at < limit) {
            if piece.at > covered {
                return None;
            }
            covered = covered.max(piece.end);
            tokens.push(TokenScore { at: piece.at, log_prob: piece.log_prob });
        }
        (covered >= limit).then(|| Scored { tokens, log_odds: self.log_odds(asked, text) })
    }

    /// The log-odds, if the label ends where a token ends and the server names both continuations,
    /// each as one token.
    fn log_odds(&self, asked: &Scores, text: &str) -> Option<f64> {
        let odds = asked.odds.as_ref()?;
        let end = text.find(odds.after.as_str())? + odds.after.len();
        let piece = self.pieces.iter().find(|piece| piece.at == end && piece.end > end)?;
        let of = |text: &str| piece.instead.iter().find(|(token, _)| token == text).map(|(_, log_prob)| *log_prob);
        Some(of(&odds.this)? - of(&odds.other)?)
    }
}

fn tokens(logprobs: &Value) -> Vec<Entry> {
    let Ok(Logprobs { tokens, token_logprobs, top_logprobs, content }) = Logprobs::deserialize(logprobs) else { return Vec::new() };
    if let Some(content) = content {
        return content;
    }
    let mut tops = top_logprobs.unwrap_or_default().into_iter();
    let entry = |(token, logprob)| {
        let top = tops.next().flatten().unwrap_or_default();
        let top_logprobs = top.into_iter().map(|(token, logprob)| Entry { token, logprob, ..Entry::default() }).collect();
        Entry { token, logprob, top_logprobs }
    };
    tokens.into_iter().zip(token_logprobs).map(entry).collect()
}

/// A log-probability; what cannot be one is as good as absent.
fn known(log_prob: Option<f64>) -> Option<f64> {
    log_prob.filter(|log_prob| *log_prob > IMPOSSIBLE && *log_prob <= f64::EPSILON)
}

trait EqConcatenated {
    /// Whether the texts one after the other are `whole`.
    fn eq_concatenated(self, whole: &str) -> bool;
}

impl<'a, I: Iterator<Item = &'a str>> EqConcatenated for I {
    fn eq_concatenated(mut self, whole: &str) -> bool {
        let rest = self.try_fold(whole, |rest, text| rest.strip_prefix(text));
        rest.is_some_and(str::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use autoact_model::Odds;
    use serde_json::json;

    use super::*;

    fn list(tokens: &[(&str, f64)], top: Value) -> Value {
        let (tokens, log_probs): (Vec<&str>, Vec<f64>) = tokens.iter().copied().unzip();
        json!({ "tokens": tokens, "token_logprobs": log_probs, "top_logprobs": top, "text_offset": [] })
    }

    fn verdict() -> Scores {
        let odds = Odds { after: "\nVerdict:".into(), this: " right".into(), other: " wrong".into() };
        Scores { until: Some("\nVerdict:".into()), odds: Some(odds) }
    }

    const TEXT: &str = " So.\nVerdict: right\n";

    /// A reply in three chunks; `top` is for the verdict's token.
    fn gathered(top: Value) -> Gathered {
        let mut all = Gathered::default();
        all.add(0, " So.", &list(&[(" So", -0.5), (".", -0.25)], Value::Null));
        all.add(4, "\nVerdict:", &list(&[("\nVerdict", -2.0), (":", -0.1)], Value::Null));
        all.add(13, " right\n", &list(&[(" right", -0.2), ("\n", -0.0)], json!([top, null])));
        all
    }

    #[test]
    fn a_thought_and_a_verdict_are_read() {
        let scored = gathered(json!({ " right": -0.2, " wrong": -1.7 })).scored(&verdict(), TEXT).unwrap();
        assert_eq!(scored.tokens, [TokenScore { at: 0, log_prob: -0.5 }, TokenScore { at: 3, log_prob: -0.25 }]);
        assert!((scored.log_odds.unwrap() - 1.5).abs() < 1e-12);
        let all = gathered(Value::Null).scored(&Scores::default(), TEXT).unwrap();
        assert_eq!((all.tokens.len(), all.log_odds), (6, None));
        // the form of chats
        let mut chat = Gathered::default();
        let top = json!([{ "token": " right", "logprob": -0.2 }, { "token": " wrong", "logprob": -1.7 }]);
        chat.add(0, "\nVerdict:", &json!({ "content": [{ "token": "\nVerdict:", "logprob": -1.0 }] }));
        chat.add(9, " right", &json!({ "content": [{ "token": " right", "logprob": -0.2, "top_logprobs": top }] }));
        let scored = chat.scored(&verdict(), "\nVerdict: right").unwrap();
        assert_eq!((scored.tokens.len(), scored.log_odds.map(|odds| (odds * 10.0).round())), (0, Some(15.0)));
    }

    #[test]
    fn no_number_is_invented() {
        // the other verdict is not among those that are named, or impossible
        for top in
            [Value::Null, json!({ " right": -0.2 }), json!({ " wrong": null }), json!({ " wrong": -9999.0 }), json!({ " wrong": 3.0 })]
        {
            assert_eq!(gathered(top.clone()).scored(&verdict(), TEXT).unwrap().log_odds, None, "{top}");
        }
        // a token of the thought without a number; text that no token spells; nothing at all
        let thought = |logprobs: Value| {
            let mut all = Gathered::default();
            all.add(0, " So", &list(&[(" So", -0.5)], Value::Null));
            all.add(3, ".", &logprobs);
            all.add(4, "\nVerdict: right\n", &list(&[("\nVerdict: right\n", -1.0)], Value::Null));
            all.scored(&verdict(), TEXT)
        };
        assert!(thought(list(&[(".", -0.1)], Value::Null)).is_some());
        for odd in
            [Value::Null, json!("none"), json!({ "tokens": 3 }), json!({ "tokens": ["."], "token_logprobs": [null] }), list(&[], json!([]))]
        {
            assert_eq!(thought(odd.clone()), None, "{odd}");
        }
        assert_eq!(Gathered::default().scored(&verdict(), TEXT), None);
        // a label that ends within a token
        let mut all = Gathered::default();
        all.add(0, " So.\nVerdict: right\n", &list(&[(" So.", -1.0), ("\nVerdict: ", -1.0), ("right", -0.1), ("\n", 0.0)], Value::Null));
        assert_eq!(all.scored(&verdict(), TEXT).unwrap().log_odds, None);
    }

    #[test]
    fn what_is_cut_off_and_what_is_forced_has_no_score() {
        // the grammar ends within a token
        let mut all = gathered(Value::Null);
        all.add(TEXT.len(), "\nMore", &list(&[("\nMore", -3.0)], Value::Null));
        all.cut(TEXT.len());
        assert_eq!(all.scored(&Scores::default(), TEXT).unwrap().tokens.len(), 6);
        all.cut(TEXT.len() - 1);
        assert_eq!(all.scored(&Scores::default(), TEXT), None);
        assert!(all.scored(&verdict(), TEXT).is_some(), "the thought is whole");
        // tokens that spell no text yet, as half of a character, belong to the text after them
        let mut half = Gathered::default();
        half.add(0, "", &list(&[("bytes:\\xc3", -1.0)], Value::Null));
        half.add(0, "é", &list(&[("bytes:\\xa9", -0.5)], Value::Null));
        half.add(2, "", &list(&[("</s>", -0.1)], Value::Null));
        assert!((half.scored(&Scores::default(), "é").unwrap().log_prob() + 1.5).abs() < 1e-12);
        half.restart(0);
        assert_eq!(half.scored(&Scores::default(), "é"), None);
    }
}
