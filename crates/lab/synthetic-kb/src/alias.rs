//! Other names of entities: surnames, and names without their common noun. People ask for Mozart
//! and for Everest.

use std::collections::HashMap;

use crate::base::Entity;
use crate::schema::{EntityType, Schema};

/// Letters that a surname has at least.
const SHORTEST: usize = 3;
/// Words that belong to the surname after them, as people use it: da Vinci, van Gogh.
const WITH_PARTICLE: [&str; 16] =
    ["da", "van", "di", "del", "della", "du", "dos", "la", "le", "ten", "ter", "der", "den", "el", "Le", "Del"];

/// Adds the derived aliases of every entity, after its own. An alias is given only if one entity
/// alone can be meant by it.
pub(crate) fn derive(schema: &Schema, entities: &mut [Entity]) {
    let derived: Vec<Vec<String>> = entities.iter().map(|entity| candidates(&schema.types[entity.kind], &entity.title)).collect();
    let mut meant: HashMap<String, usize> = HashMap::new();
    for entity in entities.iter() {
        // a title counts for two: no other entity gets it as an alias
        *meant.entry(folded(&entity.title)).or_default() += 2;
        entity.aliases.iter().for_each(|alias| *meant.entry(folded(alias)).or_default() += 1);
    }
    for (entity, names) in entities.iter().zip(&derived) {
        names.iter().filter(|name| !entity.aliases.contains(name)).for_each(|name| *meant.entry(folded(name)).or_default() += 1);
    }
    for (entity, names) in entities.iter_mut().zip(derived) {
        for name in names {
            if meant.get(&folded(&name)) == Some(&1) && !entity.aliases.contains(&name) {
                entity.aliases.push(name);
            }
        }
    }
}

fn folded(name: &str) -> String {
    name.to_lowercase()
}

/// The names that a title may be shortened to; the usual one first.
fn candidates(kind: &EntityType, title: &str) -> Vec<String> {
    let mut out = Vec::new();
    for word in &kind.drops {
        let rest = title.strip_prefix(word.as_str()).and_then(|rest| rest.strip_prefix(' '));
        let rest = rest.or_else(|| title.strip_suffix(word.as_str()).and_then(|rest| rest.strip_suffix(' ')));
        out.extend(rest.filter(|rest| is_name(rest)).map(str::to_owned));
    }
    if kind.surnames {
        out.extend(surnames(title));
    }
    out
}

fn surnames(title: &str) -> Vec<String> {
    let words: Vec<&str> = title.split(' ').collect();
    // Hans Holbein the Younger, Philip of Macedon: the last word is no surname
    let named_apart = words.iter().any(|word| matches!(*word, "of" | "the"));
    let [.., before, last] = words.as_slice() else { return Vec::new() };
    if named_apart || !is_name(last) {
        return Vec::new();
    }
    let bare = (*last).to_owned();
    if words.len() > 2 && WITH_PARTICLE.contains(before) { vec![format!("{before} {last}"), bare] } else { vec![bare] }
}

/// Whether a text can stand alone as a name: not `II`, `Jr.` or a word in brackets.
fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    text.chars().count() >= SHORTEST
        && chars.next().is_some_and(char::is_uppercase)
        && chars.any(char::is_lowercase)
        && !text.contains(['.', '(', ')'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity(title: &str, kind: usize) -> Entity {
        Entity { title: title.to_owned(), kind, aliases: Vec::new(), facts: Vec::new() }
    }

    #[test]
    fn an_alias_means_one_entity() {
        let schema = r#"
            types = [
              { name = "person", surnames = true, leads = ["{e} lived."], relations = [] },
              { name = "mountain", drops = ["Mount"], leads = ["{e} is high."], relations = [] },
            ]
        "#;
        let schema = Schema::parse(schema, "test").unwrap();
        let people = ["Wolfgang Amadeus Mozart", "Leonardo da Vinci", "Johann Strauss II", "Ada Bell", "Alexander Bell", "Hans the Great"];
        let mut entities: Vec<Entity> = people.iter().map(|title| entity(title, 0)).collect();
        entities.extend(["Mount Everest", "Mount Ada", "Everest House"].map(|title| entity(title, 1)));
        entities.push(entity("Ada", 1));
        derive(&schema, &mut entities);
        let again = entities.clone();
        derive(&schema, &mut entities);
        assert_eq!(entities, again, "aliases are derived once");
        let aliases: Vec<Vec<&str>> = entities.iter().map(|entity| entity.aliases.iter().map(String::as_str).collect()).collect();
        assert_eq!(aliases[0], ["Mozart"]);
        assert_eq!(aliases[1], ["da Vinci", "Vinci"]);
        assert_eq!(aliases[6], ["Everest"]);
        for none in [2, 3, 4, 5, 7, 8, 9] {
            assert!(aliases[none].is_empty(), "{}: {:?}", entities[none].title, aliases[none]);
        }
    }
}
