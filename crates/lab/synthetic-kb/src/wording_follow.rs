//! Rewording of questions about the value at the end of a chain.

use autoact_base::random::Rng;

use crate::phrase::{phrase, question_otherwise};
use crate::schema::{Relation, RelationRef};
use crate::text::say;
use crate::wording::{Composer, Form, as_asked, bare, plain_noun};
use crate::wording_frames::{ECHOES, TOPICS};
use crate::wording_grammar::{cleft, contracted, emphasised, indirect, upper_first};

/// Probability of a phrase in a question for two relations at once.
const FUSED_PHRASE: f64 = 0.3;
/// Probability of `what` in place of `which`.
const WHAT: f64 = 0.3;
/// Probability of a cleft or emphasised question among the direct ones.
const VARIED: f64 = 0.35;
/// Probability that keywords are a name and nouns alone, where a chain has several relations.
const STACKED: f64 = 0.5;

impl Composer<'_> {
    /// A question about the end of a chain whose last two relations are asked for at once.
    fn follow_fused(&mut self, start: &str, chain: &[RelationRef], rng: &mut Rng) -> Option<Form> {
        let before = chain.len().checked_sub(2)?;
        let (inner, two) = chain.split_at(before);
        let template = self.fused(two, |together| &together.questions, rng)?.clone();
        let phrases = self.base.schema().together(two).map(|together| together.phrases.clone()).unwrap_or_default();
        let name = self.name(start, rng)?;
        let x = self.referring(inner, name, rng);
        if rng.chance(FUSED_PHRASE)
            && let Some(template) = rng.pick(&phrases)
        {
            let p = say(template, &[("x", &x)]);
            return Some(match rng.below(4) {
                0 => Form { text: format!("What's {p}?"), family: "noun-phrase" },
                1 => Form { text: self.imperative(&p, false, rng)?, family: "imperative" },
                2 => Form { text: bare(&p).to_owned(), family: "keywords" },
                _ => Form { text: self.request(&p, rng)?, family: "request" },
            });
        }
        let direct = with_what(say(&template, &[("x", &x)]), rng);
        match rng.weighted(&[0.5, 0.2, 0.3])? {
            0 => Some(self.varied(direct, &x, rng)),
            1 => Some(as_asked(direct, rng)),
            _ => match indirect(&direct, &x) {
                Some(clause) => self.asking(&clause, rng),
                None => Some(Form { text: direct, family: "direct" }),
            },
        }
    }

    /// A question about the value at the end of a chain.
    pub(crate) fn follow(&mut self, start: &str, chain: &[RelationRef], rng: &mut Rng) -> Option<Form> {
        if let Some(form) = self.follow_fused(start, chain, rng) {
            return Some(form);
        }
        let (last, inner) = chain.split_last()?;
        let name = self.name(start, rng)?;
        let nested = !inner.is_empty();
        let x = self.referring(inner, name.clone(), rng);
        let relation = self.base.schema().relation(*last);
        let who = self.base.schema().relation(*last).target.is_some_and(|kind| self.base.schema().types[kind].surnames);
        let what = if who { "who" } else { "what" };
        if self.holds("topic-first") {
            let slots = [("x", x.as_str()), ("r", relation.noun.as_str()), ("w", what), ("W", &upper_first(what))];
            let text = say(rng.pick(&TOPICS)?, &slots);
            let text = if rng.chance(0.4) { text.replace(" is the ", "'s the ") } else { text };
            return plain_noun(relation).then_some(Form { text, family: "topic-first" });
        }
        if self.holds("echo") {
            let p = self.noun_phrase(*last, &x, nested, rng);
            return (!p.starts_with("what ")).then_some(Form { text: say(rng.pick(&ECHOES)?, &[("p", &p), ("w", what)]), family: "echo" });
        }
        let direct = with_what(question_otherwise(self.base, *last, &x, nested, rng), rng);
        if self.holds("wonder") {
            return self.wondering(&indirect(&direct, &x)?, rng);
        }
        match rng.weighted(&[0.2, 0.12, 0.2, 0.13, 0.1, 0.15, 0.1])? {
            0 => Some(self.varied(direct, &x, rng)),
            1 => Some(Form { text: contracted(&direct)?, family: "contraction" }),
            2 => self.asking(&indirect(&direct, &x)?, rng),
            3 => {
                let p = self.noun_phrase(*last, &x, nested, rng);
                let family = "noun-phrase";
                let be = if rng.chance(0.5) { "'s" } else { " is" };
                (!p.starts_with("what ")).then(|| Form { text: format!("{}{be} {p}?", upper_first(what)), family })
            }
            4 => {
                let p = self.noun_phrase(*last, &x, nested, rng);
                if !p.starts_with("what ") && rng.chance(0.5) {
                    let named = !matches!(relation.range.as_str(), "number" | "year") && rng.chance(0.4);
                    return Some(Form { text: self.imperative(&p, named, rng)?, family: "imperative" });
                }
                Some(Form { text: self.request(&p, rng)?, family: "request" })
            }
            5 if nested && self.trains() && rng.chance(STACKED) => Some(self.stacked(&name, chain, rng)),
            5 => self.keywords(relation, *last, &x, nested, rng),
            _ => {
                let p = self.noun_phrase(*last, &x, nested, rng);
                let p = if rng.chance(0.3) { bare(&p).to_owned() } else { p };
                (!p.starts_with("what ")).then(|| Form { text: format!("{p}?"), family: "bare" })
            }
        }
    }

    /// `the length of X`, `X's length`, `the X length`.
    fn noun_phrase(&self, at: RelationRef, x: &str, nested: bool, rng: &mut Rng) -> String {
        let relation = self.base.schema().relation(at);
        if !nested && plain_noun(relation) && !relation.noun.contains(" of ") {
            if rng.chance(0.25) {
                return format!("{x}'s {}", relation.noun);
            }
            if rng.chance(0.1) {
                return format!("the {} {}", bare(x), relation.noun);
            }
        }
        phrase(self.base, at, x, nested, rng)
    }

    /// A name and the nouns of a chain, as keywords: `mozart birthplace country`.
    fn stacked(&self, name: &str, chain: &[RelationRef], rng: &mut Rng) -> Form {
        let nouns = chain.iter().map(|at| self.base.schema().relation(*at).noun.as_str());
        let words: Vec<&str> = std::iter::once(bare(name)).chain(nouns).collect();
        let text = if rng.chance(0.5) { words.join(" ") } else { words.iter().rev().copied().collect::<Vec<_>>().join(" ") };
        Form { text, family: "keywords" }
    }

    /// A query for a search engine.
    fn keywords(&self, relation: &Relation, at: RelationRef, x: &str, nested: bool, rng: &mut Rng) -> Option<Form> {
        let x_bare = bare(x);
        let text = match rng.below(3) {
            0 if plain_noun(relation) && !nested => format!("{x_bare} {}", relation.noun),
            1 if plain_noun(relation) && !nested => format!("{} {x_bare}", relation.noun),
            _ => {
                let p = phrase(self.base, at, x, nested, rng);
                p.strip_prefix("the ").filter(|p| !p.starts_with("what "))?.to_owned()
            }
        };
        Some(Form { text, family: "keywords" })
    }

    /// The direct question as it is, cleft or emphasised.
    fn varied(&self, direct: String, subject: &str, rng: &mut Rng) -> Form {
        if self.trains() && rng.chance(VARIED) {
            let (other, family) = if rng.chance(0.5) { (cleft(&direct, subject), "cleft") } else { (emphasised(&direct, rng), "emphasis") };
            if let Some(text) = other {
                return Form { text, family };
            }
        }
        Form { text: direct, family: "direct" }
    }
}

/// `What year` and `In what year` for `In which year`, `What river` for `Which river`.
fn with_what(question: String, rng: &mut Rng) -> String {
    if !rng.chance(WHAT) {
        return question;
    }
    if let Some(rest) = question.strip_prefix("In which year ") {
        return if rng.chance(0.5) { format!("What year {rest}") } else { format!("In what year {rest}") };
    }
    for (which, what) in [("In which ", "In what "), ("On which ", "On what "), ("Which ", "What ")] {
        if let Some(rest) = question.strip_prefix(which) {
            return format!("{what}{rest}");
        }
    }
    question
}
