//! Writes the pages of a knowledge base. The first sentence says what the entity is; its other
//! facts follow in random order.

use std::sync::Arc;

use autoact_base::random::Rng;

use crate::base::{Entity, EntityId, KnowledgeBase};
use crate::page::{LEAD_SENTENCES, Page, PageSentence, PageStyle};
use crate::schema::{EntityType, RelationId, RelationRef, Schema, Sentence};
use crate::text::{contains_words, fill, sentence_case, slots, with_article};

/// Probability that the first sentence states one fact less than it could.
const LESSER_LEAD: f64 = 0.35;

impl KnowledgeBase {
    /// Builds a knowledge base from entities and writes their pages. Titles must be distinct.
    pub fn new(schema: Arc<Schema>, mut entities: Vec<Entity>, seed: u64, style: PageStyle) -> KnowledgeBase {
        crate::alias::derive(&schema, &mut entities);
        let mut base = KnowledgeBase::without_pages(schema, entities, seed);
        base.pages = (0..base.entities.len()).map(|id| write_page(&base, id, style)).collect();
        base
    }
}

/// Writes the page of an entity. The same knowledge base gives the same page.
fn write_page(base: &KnowledgeBase, id: EntityId, style: PageStyle) -> Page {
    let entity = &base.entities[id];
    let kind = &base.schema.types[entity.kind];
    let mut rng = Rng::labelled(base.seed, &entity.title);
    let mut sentences = vec![lead(base, id, kind, &mut rng)];
    let mut rest: Vec<Option<RelationId>> = (0..kind.relations.len())
        .filter(|r| entity.facts.get(*r).is_some_and(Option::is_some) && !sentences[0].states.contains(r))
        .map(Some)
        .collect();
    rest.extend(kind.fillers.iter().filter(|_| rng.chance(style.fillers)).map(|_| None).collect::<Vec<_>>());
    rng.shuffle(&mut rest);
    let mut fillers: Vec<&String> = kind.fillers.iter().collect();
    rng.shuffle(&mut fillers);
    for item in rest {
        let hidden = sentences.len() >= LEAD_SENTENCES;
        match item {
            Some(relation) => sentences.push(state(base, id, relation, hidden, &mut rng)),
            None => {
                if let Some(filler) = fillers.pop() {
                    let text = fill(filler, |slot| (slot == "e").then(|| base.named(id)));
                    sentences.push(PageSentence { text: sentence_case(text), states: Vec::new() });
                }
            }
        }
    }
    Page { title: entity.title.clone(), sentences }
}

/// The first sentence: one of the leads that state the most, among those whose facts are known.
fn lead(base: &KnowledgeBase, id: EntityId, kind: &EntityType, rng: &mut Rng) -> PageSentence {
    let usable: Vec<&Sentence> = kind.leads.iter().filter(|lead| fits(base, id, kind, lead)).collect();
    let most = usable.iter().map(|lead| slots(lead.text()).len()).max().unwrap_or(0);
    // mostly the one that states the most; the bare `X is a river.` only if nothing else is known
    let least = if most > 2 && rng.chance(LESSER_LEAD) { most - 1 } else { most };
    let best: Vec<&Sentence> = usable.into_iter().filter(|lead| slots(lead.text()).len() >= least).collect();
    let Some(lead) = rng.pick(&best) else {
        let text = format!("{} is {}.", base.named(id), with_article(&kind.noun));
        return PageSentence { text: sentence_case(text), states: Vec::new() };
    };
    let mut states = Vec::new();
    for slot in slots(lead.text()) {
        states.extend(kind.relation(bare(slot)));
    }
    let text = fill(lead.text(), |slot| {
        if slot == "e" {
            return Some(base.named(id));
        }
        let relation = kind.relation(bare(slot))?;
        value(base, id, relation, slot.len() - bare(slot).len())
    });
    PageSentence { text: sentence_case(text), states }
}

fn bare(slot: &str) -> &str {
    slot.strip_prefix("the ").or_else(|| slot.strip_prefix("a ")).unwrap_or(slot)
}

/// The value's text. The length of the slot's prefix selects the article.
fn value(base: &KnowledgeBase, id: EntityId, relation: RelationId, prefix: usize) -> Option<String> {
    let fact = base.fact(id, relation)?;
    Some(match prefix {
        0 => fact.text.clone(),
        2 => with_article(&fact.text),
        _ => base.value_in_text(RelationRef { kind: base.entities[id].kind, relation }, fact),
    })
}

fn fits(base: &KnowledgeBase, id: EntityId, kind: &EntityType, sentence: &Sentence) -> bool {
    let known = |name: &str| kind.relation(name).is_some_and(|relation| base.fact(id, relation).is_some());
    let slots_known = slots(sentence.text()).into_iter().map(bare).all(|slot| matches!(slot, "e" | "v") || known(slot));
    slots_known
        && match sentence {
            Sentence::Plain(_) => true,
            Sentence::Conditional(on) => on.needs.iter().all(|name| known(name)) && !on.lacks.iter().any(|name| known(name)),
        }
}

/// A sentence that states one fact. After the lead it must contain the relation's noun, because
/// Lookup is called with that noun.
fn state(base: &KnowledgeBase, id: EntityId, relation: RelationId, hidden: bool, rng: &mut Rng) -> PageSentence {
    let kind = &base.schema.types[base.entities[id].kind];
    let schema_relation = &kind.relations[relation];
    let generic = &base.schema.generic;
    let value_text = base.fact(id, relation).map(|fact| fact.text.as_str()).unwrap_or_default();
    let reads_well = |text: &str| {
        // a sentence cannot begin with `oak`, and `1 towers` is not English
        let small = text.starts_with("{v}") && value_text.starts_with(char::is_lowercase);
        let after = text.split("{v} ").nth(1).and_then(|rest| rest.split(|c: char| !c.is_alphanumeric()).next()).unwrap_or_default();
        let miscounted = value_text == "1" && after.ends_with('s');
        !small && !miscounted
    };
    let findable = |text: &str| !hidden || contains_words(&text.to_lowercase(), &schema_relation.noun.to_lowercase());
    let own: Vec<&str> = schema_relation
        .sentences
        .iter()
        .filter(|s| fits(base, id, kind, s))
        .map(Sentence::text)
        .filter(|text| findable(text) && reads_well(text))
        .collect();
    let shared: Vec<&str> = if schema_relation.generic {
        generic
            .sentences
            .iter()
            .map(String::as_str)
            .filter(|text| (!kind.possessive.is_empty() || !text.contains("{its}")) && reads_well(text))
            .collect()
    } else {
        Vec::new()
    };
    let generic_chosen = own.is_empty() || (!shared.is_empty() && rng.chance(generic.rate));
    let template = rng.pick(if generic_chosen { &shared } else { &own }).copied().unwrap_or("The {r} of {e} is {v}.");
    let text = fill(template, |slot| match slot {
        "e" => Some(base.named(id)),
        "r" => Some(schema_relation.noun.clone()),
        "its" => Some(kind.possessive.clone()),
        // generic wordings have no articles: a name brings its own
        "v" if generic_chosen && schema_relation.target.is_some() => value(base, id, relation, "the ".len()),
        _ if bare(slot) == "v" => value(base, id, relation, slot.len() - 1),
        _ => None,
    });
    PageSentence { text: sentence_case(text), states: vec![relation] }
}
