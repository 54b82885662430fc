//! Which entity, relation or value is meant by what a model wrote.

use autoact_tables::{ALIASES, EntityId, Graph};

use crate::names::similar;
use crate::text::{fold, quoted};
use crate::titles::Titles;
use crate::typo::slips;

/// So many names are proposed.
const PROPOSED: usize = 3;

/// The entities of a name.
pub(super) struct Found {
    /// They share the name; never empty.
    pub(super) entities: Vec<EntityId>,
    /// Says which name was taken where another one was written.
    pub(super) note: Option<String>,
}

/// The names of all entities. A name that several share leads to all of them, and `Georgia (film)`
/// to the one of that table.
pub(super) struct Names {
    titles: Titles,
    /// What the titles are called, and the entities that they lead to.
    groups: Vec<(String, Vec<EntityId>)>,
}

impl Names {
    pub(super) fn of(graph: &Graph) -> Names {
        let mut groups: Vec<(String, Vec<EntityId>)> = Vec::new();
        let mut group_of: Vec<usize> = Vec::new();
        for (id, entity) in graph.entities().iter().enumerate() {
            let sharing = graph.named(&entity.name);
            if sharing.first() == Some(&id) {
                groups.push((entity.name.clone(), sharing.to_vec()));
            }
            if sharing.len() > 1 {
                groups.push((format!("{} ({})", entity.name, entity.table), vec![id]));
            }
            group_of.push(groups.len() - 1);
        }
        let mut titles = Titles::new(groups.iter().map(|(name, _)| name.as_str()));
        let aliases = graph.relation(ALIASES);
        for (id, entity) in graph.entities().iter().enumerate() {
            let values = aliases.and_then(|aliases| graph.values(id, aliases)).unwrap_or_default();
            values.iter().for_each(|alias| titles.add_alias(alias, group_of[id]));
            if !entity.table.is_empty() {
                titles.add_alias(&format!("{} ({})", entity.name, entity.table), group_of[id]);
            }
        }
        Names { titles, groups }
    }

    /// The entities that a name means, also one that is misspelt.
    pub(super) fn entity(&self, graph: &Graph, written: &str) -> Result<Found, String> {
        if let Some(at) = self.titles.find(written) {
            return Ok(Found { entities: self.groups[at].1.clone(), note: None });
        }
        if let Some(at) = self.titles.meant(written) {
            let (name, entities) = &self.groups[at];
            return Ok(Found { entities: entities.clone(), note: Some(format!("`{}` was read as {name}", quoted(written))) });
        }
        let near: Vec<String> = self.titles.similar(written, PROPOSED).into_iter().map(|at| format!("`{}`", self.groups[at].0)).collect();
        let hint = match near.is_empty() {
            true => format!("none of the {} entities has a name like it", graph.entities().len()),
            false => format!("did you mean {}?", near.join(", ")),
        };
        Err(format!("there is no entity `{}`; {hint}", quoted(written)))
    }

    /// The value that an object means in these relations: as it is written, as the name of an
    /// entity whose alias it is, or misspelt.
    pub(super) fn object(&self, graph: &Graph, relations: &[usize], written: &str) -> Result<(String, Option<String>), String> {
        let is_there = |value: &str| relations.iter().any(|relation| !graph.having(*relation, value).is_empty());
        if is_there(written) {
            return Ok((written.to_owned(), None));
        }
        if let Ok(found) = self.entity(graph, written) {
            let name = &graph.entities()[found.entities[0]].name;
            if is_there(name) {
                return Ok((name.clone(), Some(format!("`{}` was read as {name}", quoted(written)))));
            }
        }
        let values: Vec<&str> = relations.iter().flat_map(|relation| graph.values_of(*relation)).collect();
        if let Some(value) = least(&fold(written), values.iter().copied()) {
            return Ok((value.to_owned(), Some(format!("`{}` was read as {value}", quoted(written)))));
        }
        let mut near: Vec<String> =
            similar(written, values.iter().copied(), PROPOSED).into_iter().map(|at| format!("`{}`", values[at])).collect();
        near.dedup();
        let hint = if near.is_empty() { String::new() } else { format!("; values like it are {}", near.join(", ")) };
        Err(format!("no entity here has the value `{}`{hint}", quoted(written)))
    }
}

/// The relation that is meant: as it is written, or misspelt.
pub(super) fn relation(graph: &Graph, known: &[usize], written: &str) -> Option<usize> {
    let written = fold(written);
    let name = |relation: usize| fold(&graph.relations()[relation]);
    known.iter().copied().find(|relation| name(*relation) == written).or_else(|| {
        let names: Vec<String> = known.iter().map(|relation| name(*relation)).collect();
        let meant = least(&written, names.iter().map(String::as_str))?;
        known.iter().copied().find(|relation| name(*relation) == meant)
    })
}

/// The only candidate that `written` misspells by the fewest letters. All are folded.
fn least<'a>(written: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut best: Option<(usize, Option<&str>)> = None;
    for candidate in candidates {
        let Some(count) = slips(written, candidate) else { continue };
        best = match best {
            Some((least, _)) if least < count => best,
            Some((least, other)) if least == count => Some((least, other.filter(|other| *other == candidate))),
            _ => Some((count, Some(candidate))),
        };
    }
    best.and_then(|(_, candidate)| candidate)
}
