//! Renamed relations: a schema in which some relations have unrelated nouns. Each knowledge base
//! gets its own. So the model learns to copy a relation's noun instead of memorising it.

use std::collections::HashSet;

use autoact_base::random::Rng;

use crate::schema::{EntityType, Relation, RelationRef, Schema, Wordings};
use crate::text::slots;

/// Probability that a noun gets a qualifier in front.
const QUALIFIED: f64 = 0.5;
/// Draws before a relation keeps its own noun.
const TRIES: usize = 20;

/// Nouns and qualifiers for renamed relations.
#[derive(Debug, Clone, Default)]
pub struct Nouns {
    nouns: Vec<String>,
    before: Vec<String>,
}

impl Nouns {
    /// Parses a list: nouns, an empty line, qualifiers. Lines that begin with `#` are skipped.
    pub fn parse(text: &str) -> Nouns {
        let mut nouns = Nouns::default();
        let mut block = &mut nouns.nouns;
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if line.trim().is_empty() {
                block = &mut nouns.before;
            }
            block.extend(line.split_whitespace().map(str::to_owned));
        }
        nouns
    }

    /// A noun, with or without a qualifier.
    pub(crate) fn draw(&self, rng: &mut Rng) -> Option<String> {
        let noun = rng.pick(&self.nouns)?;
        let before = if rng.chance(QUALIFIED) { rng.pick(&self.before) } else { None };
        Some(before.map_or_else(|| noun.clone(), |before| format!("{before} {noun}")))
    }
}

impl Schema {
    /// The schema with about the fraction `share` of its relations renamed. Renamed relations have
    /// only the generic wordings.
    pub fn with_strange_relations(&self, nouns: &Nouns, share: f64, seed: u64) -> Schema {
        let mut rng = Rng::labelled(seed, "strange relations");
        let mut schema = self.clone();
        let mut used: HashSet<String> = self.relations().map(|at| self.relation(at).noun.clone()).collect();
        let mut all_renamed = HashSet::new();
        for (id, kind) in schema.types.iter_mut().enumerate() {
            let mut renamed = HashSet::new();
            for (index, relation) in kind.relations.iter_mut().enumerate() {
                if relation.generic && rng.chance(share) && rename(relation, nouns, &mut used, &mut rng) {
                    renamed.insert(relation.name.clone());
                    all_renamed.insert(RelationRef { kind: id, relation: index });
                }
            }
            drop_leads(kind, &renamed);
        }
        schema.together.retain(|together| together.chain.iter().all(|at| !all_renamed.contains(at)));
        schema.ages_at.retain(|age| [age.year, age.who, age.born].iter().all(|at| !all_renamed.contains(at)));
        schema
    }
}

/// Replaces the relation's noun and removes every wording that contains the old one. Returns
/// whether a noun was found.
fn rename(relation: &mut Relation, nouns: &Nouns, used: &mut HashSet<String>, rng: &mut Rng) -> bool {
    let Some(noun) = (0..TRIES).find_map(|_| nouns.draw(rng).filter(|noun| !used.contains(noun))) else { return false };
    used.insert(noun.clone());
    relation.noun = noun;
    relation.sentences.clear();
    relation.phrases.clear();
    relation.questions.clear();
    relation.asked = Wordings::default();
    relation.checks.clear();
    relation.inverse.clear();
    relation.same.clear();
    relation.compare = None;
    relation.ages.clear();
    true
}

fn drop_leads(kind: &mut EntityType, renamed: &HashSet<String>) {
    kind.leads.retain(|lead| {
        slots(lead.text()).into_iter().all(|slot| {
            let name = slot.strip_prefix("the ").or_else(|| slot.strip_prefix("a ")).unwrap_or(slot);
            !renamed.contains(name)
        })
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"
        types = [{ name = "ship", leads = ["{e} is a ship.", "{e} is a ship that carries {cargo}."], relations = [
            { name = "cargo", range = "word", values = ["tea", "salt"], sentences = ["It carries {v}."], questions = ["What does {x} carry?"] },
        ] }]
        [generic]
        sentences = ["The {r} of {e} is {v}."]
        phrases = ["the {r} of {x}"]
        questions = ["What is the {r} of {x}?"]
    "#;

    #[test]
    fn renamed_relations_keep_no_wording_of_the_old_noun() {
        let schema = Schema::parse(SCHEMA, "test").unwrap();
        let nouns = Nouns::parse("# a comment\nmotto crest\n\nold\n");
        let strange = schema.with_strange_relations(&nouns, 1.0, 7);
        let relation = &strange.types[0].relations[0];
        assert!(relation.noun.ends_with("motto") || relation.noun.ends_with("crest"), "{}", relation.noun);
        assert!(relation.sentences.is_empty() && relation.questions.is_empty());
        assert_eq!(strange.types[0].leads.len(), 1);
        assert_eq!(schema.with_strange_relations(&nouns, 0.0, 7).types[0].relations[0].noun, "cargo");
    }
}
