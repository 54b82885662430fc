//! Rewording of questions about two names: comparisons and differences.

use autoact_base::random::Rng;

use crate::difference::{difference_text, forms};
use crate::question::{Question, QuestionPlan};
use crate::schema::{Compare, RelationRef};
use crate::text::say;
use crate::wording::{Composer, Form, bare, named, plain_noun};
use crate::wording_frames::{BETWEEN, further};
use crate::wording_grammar::{comparing, indirect};

/// Probability of a difference that does not say which value is larger.
const GAP: f64 = 0.4;
/// Probability that such a question has the relation's own wording, where another would do.
const OWN_GAP: f64 = 0.75;
/// Probability of a choice in a frame of `frames.toml`.
const CHOOSING: f64 = 0.35;
/// Probability of keywords among the differences.
const KEYWORDS: f64 = 0.12;

impl Composer<'_> {
    pub(crate) fn compare(&mut self, a: &str, b: &str, more: bool, chain: &[RelationRef], rng: &mut Rng) -> Option<Form> {
        let (a, b) = (self.name(a, rng)?, self.name(b, rng)?);
        let relation = self.base.schema().relation(*chain.last()?);
        let compare = relation.compare.as_ref()?;
        let (which, does) = match chain {
            [at] => {
                let with_which = relation.compares().filter(|compare| !compare.which.is_empty());
                let compare = *rng.pick(&with_which.collect::<Vec<_>>())?;
                let noun = &self.base.schema().types[at.kind].noun;
                let (which, does) = comparing(rng.pick(&compare.which)?, noun)?;
                let comparing_word = word(compare, more, &does, rng);
                if !self.holds_any() && rng.chance(0.2) {
                    return self.inverted(compare, more, &a, &b, rng);
                }
                (which, does.replace("{c}", &comparing_word))
            }
            [first, ..] => {
                let does = compare.whose.as_ref()?;
                let comparing_word = word(compare, more, does, rng);
                let does = does.replace("{c}", &comparing_word);
                (format!("whose {}", self.base.schema().relation(*first).noun), does)
            }
            [] => return None,
        };
        self.choice(&a, &b, &which, &does, rng)
    }

    /// `Is A or B longer?`
    pub(crate) fn inverted(&self, compare: &Compare, more: bool, a: &str, b: &str, rng: &mut Rng) -> Option<Form> {
        let than = rng.pick(&compare.than)?.strip_suffix(" than {b}?")?;
        let word = word(compare, more, than, rng);
        let text = than.replace("{a}", &format!("{a} or {b}")).replace("{c}", &word);
        Some(Form { text: format!("{text}?"), family: "a-or-b" })
    }

    /// A choice between two, from `which` and what it `does`.
    pub(crate) fn choice(&self, a: &str, b: &str, which: &str, does: &str, rng: &mut Rng) -> Option<Form> {
        let asked = format!("{which} {does}");
        let or = format!("{a} or {b}");
        if self.holds("between") {
            let text = say(rng.pick(&BETWEEN)?, &[("a", a), ("b", b), ("q", &asked)]);
            return Some(Form { text, family: "between" });
        }
        let listed = match rng.below(4) {
            0 => format!("{asked} - {or}"),
            1 => format!("{asked}: {or}"),
            _ => format!("{asked}, {or}"),
        };
        if self.holds("wonder") {
            return self.wondering(&listed, rng);
        }
        let whose = which.starts_with("whose");
        if self.trains() && rng.chance(CHOOSING) {
            let fitting: Vec<&String> = further().choices.iter().filter(|frame| !whose || !frame.contains("{p}")).collect();
            let frame = named(rng.pick(&fitting)?, rng);
            let text = say(&frame, &[("a", a), ("b", b), ("w", &asked), ("p", does)]);
            return Some(Form { text, family: "choosing" });
        }
        let thing = !whose && which != "who" && does.starts_with("is ");
        let (text, family) = match rng.weighted(&[0.25, 0.2, 0.15, 0.12, 0.12, 0.16])? {
            0 => (format!("{listed}?"), "choice"),
            1 => (if rng.chance(0.5) { format!("{or}, {asked}?") } else { format!("{or}: {asked}?") }, "or-first"),
            2 if !whose => (format!("{} of {a} and {b} {does}?", if rng.chance(0.5) { "which" } else { "which one" }), "which-of"),
            3 if thing => (format!("{} {}, {or}?", if rng.chance(0.7) { "what's" } else { "what is" }, &does["is ".len()..]), "whats"),
            4 => return self.asking(&listed, rng),
            5 if !whose => {
                let last = does.split(' ').skip(1).filter(|word| *word != "the").collect::<Vec<_>>().join(" ");
                let (a, b) = (bare(a), bare(b));
                let noun = which.strip_prefix("which ").filter(|_| self.trains());
                let text = match (rng.below(if noun.is_some() { 5 } else { 3 }), noun) {
                    (0, _) => format!("{a} or {b} {last}"),
                    (1, _) => format!("{a} vs {b} {last}"),
                    (3, Some(noun)) => format!("{last} {noun} {a} or {b}"),
                    (4, Some(noun)) => format!("{last} {noun}: {a} or {b}"),
                    _ => format!("{last} {a} or {b}"),
                };
                (text, "keywords")
            }
            _ => (format!("{asked}, {or}?"), "choice"),
        };
        Some(Form { text, family })
    }

    pub(crate) fn difference(&mut self, a: &str, b: &str, more: bool, at: RelationRef, rng: &mut Rng) -> Option<Form> {
        let (a, b) = (self.name(a, rng)?, self.name(b, rng)?);
        let relation = self.base.schema().relation(at);
        if !self.holds_any() && rng.chance(GAP) {
            let r = relation.noun.as_str();
            let templates =
                ["What is the difference between the {r} of {a} and that of {b}?", "What's the difference in {r} between {a} and {b}?"];
            let own = rng.pick(&relation.asked.gaps).filter(|_| !plain_noun(relation) || rng.chance(OWN_GAP));
            let text = match own {
                Some(own) => say(own, &[("a", &a), ("b", &b)]),
                None if plain_noun(relation) => say(rng.pick(&templates)?, &[("r", r), ("a", &a), ("b", &b)]),
                None => difference_text(rng.pick(&forms(relation))?, more, &a, &b),
            };
            return Some(Form { text, family: "gap" });
        }
        if self.trains() && plain_noun(relation) && rng.chance(KEYWORDS) {
            let (a, b, r) = (bare(&a), bare(&b), &relation.noun);
            let text = match rng.below(4) {
                0 => format!("{a} {b} {r} difference"),
                1 => format!("difference in {r} {a} {b}"),
                2 => format!("{r} difference {a} vs {b}"),
                _ => format!("{r} difference of {a} and {b}"),
            };
            return Some(Form { text, family: "keywords" });
        }
        let direct = difference_text(rng.pick(&forms(relation))?, more, &a, &b);
        self.direct_or_asked(direct, &a, rng)
    }

    /// How long something lasted, or somebody's age at a point in time.
    pub(crate) fn age(&mut self, a: &str, b: &str, question: &Question, at: RelationRef, rng: &mut Rng) -> Option<Form> {
        let x = self.name(a, rng)?;
        let schema = self.base.schema();
        let QuestionPlan::Difference { minus, .. } = &question.plan else { return None };
        let made = a != b || minus.len() > 1;
        let direct = if made {
            let age = schema.ages_at.iter().find(|age| age.year == at)?;
            if a == b {
                say(rng.pick(&age.unnamed)?, &[("x", &x)])
            } else {
                say(rng.pick(&age.questions)?, &[("x", &x), ("y", &self.name(b, rng)?)])
            }
        } else {
            say(rng.pick(&schema.relation(at).ages)?, &[("x", &x)])
        };
        self.direct_or_asked(direct, &x, rng)
    }

    /// The question as it is, or within a request.
    pub(crate) fn direct_or_asked(&self, direct: String, a: &str, rng: &mut Rng) -> Option<Form> {
        if self.holds("wonder") {
            return self.wondering(&indirect(&direct, a)?, rng);
        }
        if rng.chance(0.55) { Some(Form { text: direct, family: "direct" }) } else { self.asking(&indirect(&direct, a)?, rng) }
    }
}

/// The comparing word, or one that means the same. `first` needs a predicate that it can end:
/// `born first` has no `than`.
pub(crate) fn word(compare: &Compare, more: bool, predicate: &str, rng: &mut Rng) -> String {
    let word = if more { &compare.more } else { &compare.less };
    let other = match word.as_str() {
        "earlier" | "sooner" if predicate.ends_with("{c}") && !predicate.contains("first ") => "first",
        "larger" => "bigger",
        _ => return word.clone(),
    };
    if rng.chance(0.4) { other.to_owned() } else { word.clone() }
}
