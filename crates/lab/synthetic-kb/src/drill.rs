//! Reading exercises (drills). A drill starts with the beginning of a page. Then it has one line
//! for each relation of the page's type: the fact if the page shows it, or a note that it is
//! missing. Comparisons with claims and answers follow. A trajectory reads two or three facts of a
//! page, a drill reads all of them. So a small model learns to find a fact, to notice its absence,
//! and to distinguish equal values from different ones.

use autoact_base::random::Rng;

use crate::base::{EntityId, Fact, KnowledgeBase};
use crate::page::LEAD_SENTENCES;
use crate::schema::RelationRef;
use crate::style::ThoughtStyle;
use crate::text::fill;

/// Minimum number of known facts of a drill's entity.
const FACTS: usize = 3;
/// Attempts before a knowledge base counts as having no drill.
const TRIES: usize = 20;
/// Probability that a page is cut before the point at which the Retrieve tool cuts it.
const CUT_EARLY: f64 = 0.5;
/// Probability that two compared values are equal.
const SAME: f64 = 0.5;
/// Probability that a stated fact is compared with a value.
const COMPARED: f64 = 0.5;

/// The role whose wording a drill uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrillLines {
    /// Thoughts: facts, and whether a claim is the same.
    Thoughts,
    /// Reflections: facts, and whether an answer is right.
    Reflections,
    /// Both, mixed.
    All,
}

/// A part of a drill. The concatenated texts are the drill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrillPiece {
    /// The text.
    pub text: String,
    /// Whether the text is a training target. Only text that follows from the page is.
    pub counts: bool,
}

/// A drill on a random page; `None` if no page with enough facts was found.
pub fn drill(base: &KnowledgeBase, style: &ThoughtStyle, lines: DrillLines, rng: &mut Rng) -> Option<Vec<DrillPiece>> {
    let known = |id: EntityId| base.entities()[id].facts.iter().flatten().count();
    let id = (0..TRIES).map(|_| rng.below(base.entities().len())).find(|id| known(*id) >= FACTS)?;
    let page = base.page(id)?;
    let most = page.sentences.len().min(LEAD_SENTENCES);
    let shown = if rng.chance(CUT_EARLY) { 1 + rng.below(most) } else { most };
    let sentences = page.sentences.get(..shown)?;
    let mut text: Vec<&str> = sentences.iter().map(|sentence| sentence.text.as_str()).collect();
    if shown < page.sentences.len() {
        text.push("(More: use Lookup.)");
    }
    let mut drill = Pieces { pieces: vec![], style };
    drill.told(&format!("Observation: {}\n", text.join(" ")));
    let entity = &base.entities()[id];
    let mut relations: Vec<usize> = (0..entity.facts.len()).collect();
    rng.shuffle(&mut relations);
    for relation in relations {
        let Some(fact) = base.fact(id, relation) else { continue };
        let at = RelationRef { kind: entity.kind, relation };
        let noun = base.schema().relation(at).noun.as_str();
        let line = Line { noun, title: &entity.title, fact };
        if !sentences.iter().any(|sentence| sentence.states.contains(&relation)) {
            drill.hidden(&line);
            continue;
        }
        let other = other_value(base, id, at, rng);
        let compared = if rng.chance(SAME) { Some(fact.text.as_str()) } else { other };
        let reflects = match lines {
            DrillLines::Thoughts => false,
            DrillLines::Reflections => true,
            DrillLines::All => rng.chance(0.5),
        };
        match compared.filter(|_| reflects || rng.chance(COMPARED)) {
            Some(given) if reflects => drill.judged(&line, given),
            Some(claim) => drill.claimed(&line, claim),
            None => drill.found(&line),
        }
    }
    Some(drill.pieces)
}

/// A different value of the same relation, from another page.
fn other_value<'a>(base: &'a KnowledgeBase, id: EntityId, at: RelationRef, rng: &mut Rng) -> Option<&'a str> {
    let mine = &base.fact(id, at.relation)?.text;
    (0..TRIES).find_map(|_| {
        let other = base.fact(*rng.pick(base.of_type(at.kind))?, at.relation)?;
        (other.text != *mine).then_some(other.text.as_str())
    })
}

struct Line<'a> {
    noun: &'a str,
    title: &'a str,
    fact: &'a Fact,
}

impl Line<'_> {
    fn say(&self, template: &str, value: &str) -> String {
        fill(template, |slot| {
            match slot {
                "r" => Some(self.noun),
                "e" => Some(self.title),
                "v" => Some(value),
                _ => None,
            }
            .map(str::to_owned)
        })
    }
}

struct Pieces<'a> {
    pieces: Vec<DrillPiece>,
    style: &'a ThoughtStyle,
}

impl Pieces<'_> {
    fn told(&mut self, text: &str) {
        self.pieces.push(DrillPiece { text: text.to_owned(), counts: false });
    }

    /// Adds `text`: the first `told` bytes are context, the rest is a target.
    fn known_after(&mut self, text: &str, told: usize) {
        let (told, known) = text.split_at(told);
        self.told(told);
        self.pieces.push(DrillPiece { text: known.to_owned(), counts: true });
    }

    /// Adds a sentence in which only the text from the value on is a target.
    fn read(&mut self, template: &str, line: &Line<'_>) {
        let text = line.say(template, &line.fact.text);
        self.known_after(&text, before_value(template, line));
    }

    fn found(&mut self, line: &Line<'_>) {
        self.told("Thought: ");
        self.read(self.style.found, line);
        self.told("\n");
    }

    fn hidden(&mut self, line: &Line<'_>) {
        let text = format!("{}\n", line.say(self.style.hidden, ""));
        self.told("Thought: ");
        // a target only from the place at which a fact's value would have begun
        let told = before_value(self.style.found, line).min(text.len());
        let shared = text.get(..told).is_some_and(|start| line.say(self.style.found, "").starts_with(start));
        self.known_after(&text, if shared { told } else { 0 });
    }

    fn claimed(&mut self, line: &Line<'_>, claim: &str) {
        self.told("Thought: ");
        self.read(self.style.found, line);
        self.told(&format!(" {}", line.say(self.style.claim, claim)));
        let verdict = if claim == line.fact.text { self.style.same } else { self.style.different };
        self.known_after(&format!(" {verdict}\n"), 0);
    }

    fn judged(&mut self, line: &Line<'_>, given: &str) {
        self.told("Reflection: ");
        self.read(self.style.asked, line);
        let verdict = if given == line.fact.text { self.style.agrees } else { self.style.disagrees };
        let text = format!(" {}\n", line.say(verdict, given));
        let told = text.find(given).map_or(0, |at| at + given.len());
        self.known_after(&text, told);
    }
}

/// Length in bytes of a filled template before its value and the space in front of the value.
fn before_value(template: &str, line: &Line<'_>) -> usize {
    let start = template.split("{v}").next().unwrap_or_default().trim_end();
    line.say(start, "").len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_facts_are_targets_from_the_value_on() {
        let fact = Fact::word("Lima");
        let line = Line { noun: "capital", title: "Peru", fact: &fact };
        for style in ThoughtStyle::ALL {
            let mut pieces = Pieces { pieces: vec![], style: &style };
            pieces.hidden(&line);
            assert!(!pieces.pieces[1].counts && pieces.pieces[1].text.contains("capital"), "{}: {:?}", style.name, pieces.pieces);
        }
    }

    #[test]
    fn only_text_that_follows_from_the_page_is_a_target() {
        let fact = Fact::word("Lima");
        let line = Line { noun: "capital", title: "Peru", fact: &fact };
        let mut pieces = Pieces { pieces: vec![], style: &ThoughtStyle::CANONICAL };
        pieces.judged(&line, "Quito");
        let counted: Vec<&str> = pieces.pieces.iter().filter(|piece| piece.counts).map(|piece| piece.text.as_str()).collect();
        assert_eq!(counted, [" Lima.", ", which is not it.\n"]);
    }
}
