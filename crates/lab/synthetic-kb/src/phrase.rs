//! Referring expressions in questions: a name, or a noun phrase that contains another one.

use autoact_base::random::Rng;

use crate::base::{EntityId, KnowledgeBase};
use crate::schema::{Relation, RelationRef};
use crate::text::{fill, say};
use crate::wording::OTHERWISE;

/// Probability of `the river Loire` instead of `the Loire`, where that is natural.
const NOUN_BEFORE_NAME: f64 = 0.15;

/// Probability that a noun phrase with a relative clause comes last, where a wording allows it.
const PLAIN_ENDING: f64 = 0.7;

/// The name of an entity as a question writes it; `written` replaces the title.
pub(crate) fn name(base: &KnowledgeBase, entity: EntityId, written: Option<&str>, rng: &mut Rng) -> String {
    let kind = &base.schema.types[base.entities[entity].kind];
    let title = written.unwrap_or(&base.entities[entity].title);
    let lower = title.to_lowercase();
    let says_itself = lower.split(' ').any(|word| kind.noun.starts_with(word) || word == kind.noun) || lower.starts_with("the ");
    if kind.prefix && !says_itself && rng.chance(NOUN_BEFORE_NAME) {
        format!("the {} {title}", kind.noun)
    } else {
        base.name_in_text(base.entities[entity].kind, title)
    }
}

/// A noun phrase such as `the author of Hamlet`, from a relation and the text `x` for its subject.
pub(crate) fn phrase(base: &KnowledgeBase, at: RelationRef, x: &str, nested: bool, rng: &mut Rng) -> String {
    let relation = base.schema.relation(at);
    let ends = |text: &str| text.ends_with("{x}");
    let template =
        pick_wording(relation, &relation.phrases, &base.schema.generic.phrases, base, Nesting::of(x, nested, 1.0, ends, rng), rng);
    fill_x(template.unwrap_or("the {r} of {x}"), relation, x)
}

/// The phrase of a whole chain around a name; the name itself for an empty chain.
pub(crate) fn phrase_of_chain(base: &KnowledgeBase, chain: &[RelationRef], start: String, rng: &mut Rng) -> String {
    let mut x = start;
    for (depth, at) in chain.iter().enumerate() {
        x = phrase(base, *at, &x, depth > 0, rng);
    }
    x
}

/// A whole question for a relation of `x`.
pub(crate) fn question(base: &KnowledgeBase, at: RelationRef, x: &str, nested: bool, rng: &mut Rng) -> String {
    let relation = base.schema.relation(at);
    let ends = |text: &str| text.ends_with("{x}?") || text.ends_with("{x}.");
    let nesting = Nesting::of(x, nested, PLAIN_ENDING, ends, rng);
    let template = pick_wording(relation, &relation.questions, &base.schema.generic.questions, base, nesting, rng);
    fill_x(template.unwrap_or("What is the {r} of {x}?"), relation, x)
}

/// The same in half of the cases in a wording that only rewording has, if the relation has any.
pub(crate) fn question_otherwise(base: &KnowledgeBase, at: RelationRef, x: &str, nested: bool, rng: &mut Rng) -> String {
    let fits = |text: &&String| !nested || !needs_a_name(text);
    let others: Vec<&String> = base.schema.relation(at).asked.questions.iter().filter(fits).collect();
    match rng.pick(&others).filter(|_| rng.chance(OTHERWISE)) {
        Some(text) => say(text, &[("x", x)]),
        None => question(base, at, x, nested, rng),
    }
}

fn fill_x(template: &str, relation: &Relation, x: &str) -> String {
    fill(template, |slot| match slot {
        "x" => Some(x.to_owned()),
        "r" => Some(relation.noun.clone()),
        _ => None,
    })
}

/// The constraints on a wording, which follow from the text that fills its slot.
struct Nesting<F> {
    /// The text is a noun phrase, not a bare name.
    nested: bool,
    /// Set if the text contains a relative clause (`the city where X was born`). The wording should
    /// then end with it: `the country where the city where X was born lies` is hard to read.
    last: Option<F>,
}

impl<F: Fn(&str) -> bool> Nesting<F> {
    fn of(x: &str, nested: bool, rate: f64, ends: F, rng: &mut Rng) -> Nesting<F> {
        let clause = nested && [" where ", " that ", " who ", " which ", " in which "].iter().any(|word| x.contains(word));
        Nesting { nested, last: (clause && rng.chance(rate)).then_some(ends) }
    }

    fn fits(&self, text: &str) -> bool {
        !(self.nested && needs_a_name(text)) && self.last.as_ref().is_none_or(|ends| ends(text))
    }
}

/// Whether a wording is clear only with a bare name in its slot: `the author of Hamlet's birthplace`
/// has two meanings, and so has `Where is the headquarters of X?`.
fn needs_a_name(text: &str) -> bool {
    text.contains("{x}'s") || ["Where is {x}?", "Where's {x}?"].contains(&text)
}

/// One of the relation's own wordings or the generic ones.
fn pick_wording<'a>(
    relation: &Relation,
    own: &'a [String],
    shared: &'a [String],
    base: &KnowledgeBase,
    mut nesting: Nesting<impl Fn(&str) -> bool>,
    rng: &mut Rng,
) -> Option<&'a str> {
    let shared: &[String] = if relation.generic { shared } else { &[] };
    if !own.iter().chain(shared).any(|text| nesting.fits(text)) {
        nesting.last = None;
    }
    let fitting = |texts: &'a [String]| -> Vec<&'a String> { texts.iter().filter(|text| nesting.fits(text)).collect() };
    let (own, shared) = (fitting(own), fitting(shared));
    let pool = if own.is_empty() || (!shared.is_empty() && rng.chance(base.schema.generic.rate)) { shared } else { own };
    rng.pick(&pool).map(|text| text.as_str())
}

/// A misspelling that still shows which title is meant: two letters swapped, or one left out,
/// doubled or replaced.
pub(crate) fn misspell(title: &str, rng: &mut Rng) -> Option<String> {
    slip(title, 6, rng)
}

/// A slip of the pen in a text of at least `shortest` letters.
pub(crate) fn slip(title: &str, shortest: usize, rng: &mut Rng) -> Option<String> {
    let mut letters: Vec<char> = title.chars().collect();
    let inner: Vec<usize> = (1..letters.len().saturating_sub(1))
        .filter(|i| letters[*i].is_lowercase() && letters[*i + 1].is_lowercase() && letters[*i] != letters[*i + 1])
        .collect();
    if letters.len() < shortest {
        return None;
    }
    let at = *rng.pick(&inner)?;
    match rng.below(4) {
        0 => letters.swap(at, at + 1),
        1 => drop(letters.remove(at)),
        2 => letters.insert(at, letters[at]),
        _ => {
            letters[at] =
                if "aeiou".contains(letters[at]) { *rng.pick(&['a', 'e', 'i', 'o', 'u'])? } else { *rng.pick(&['t', 'r', 'n', 's', 'l'])? }
        }
    }
    let made: String = letters.into_iter().collect();
    (made != title).then_some(made)
}
