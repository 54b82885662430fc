//! Consistency checks of a parsed schema: unknown slots, unknown ranges, missing wordings.

use crate::schema::{EntityType, Generic, Relation};
use crate::text::slots;

/// All mistakes in a schema, one line each.
pub(crate) fn problems(generic: &Generic, types: &[EntityType], distinct: usize) -> Vec<String> {
    let mut out = Vec::new();
    if distinct != types.len() {
        out.push("two types have the same `name`".to_owned());
    }
    let mut template = |place: &str, text: &str, needs: &[&str], knows: &[&str]| out.extend(of_template(place, text, needs, knows));
    generic.sentences.iter().for_each(|text| template("generic.sentences", text, &["r", "v"], &["r", "v", "e", "its"]));
    generic.phrases.iter().for_each(|text| template("generic.phrases", text, &["r", "x"], &["r", "x"]));
    generic.questions.iter().for_each(|text| template("generic.questions", text, &["r", "x"], &["r", "x"]));
    generic.checks.iter().for_each(|text| template("generic.checks", text, &["v", "p"], &["v", "p"]));
    generic.same.iter().for_each(|text| template("generic.same", text, &["a", "b", "r"], &["a", "b", "r"]));
    for kind in types {
        let names: Vec<&str> = kind.relations.iter().map(|relation| relation.name.as_str()).chain(["e"]).collect();
        kind.leads.iter().for_each(|lead| template(&format!("{}.leads", kind.name), lead.text(), &["e"], &names));
        kind.fillers.iter().for_each(|text| template(&format!("{}.fillers", kind.name), text, &[], &["e"]));
        kind.forms.iter().for_each(|text| template(&format!("{}.forms", kind.name), text, &[], &["n", "w"]));
        for relation in &kind.relations {
            let place = format!("{}.{}", kind.name, relation.name);
            relation.sentences.iter().for_each(|s| template(&format!("{place}.sentences"), s.text(), &["v"], &["v", "e"]));
            let phrases = relation.phrases.iter().chain(&relation.asked.phrases);
            phrases.for_each(|text| template(&format!("{place}.phrases"), text, &["x"], &["x"]));
            relation.questions.iter().for_each(|text| template(&format!("{place}.questions"), text, &["x"], &["x"]));
            relation.asked.questions.iter().for_each(|text| template(&format!("{place}.questions"), text, &["x"], &["x"]));
            let checks = relation.checks.iter().chain(&relation.asked.checks);
            checks.for_each(|text| template(&format!("{place}.checks"), text, &["v", "x"], &["v", "x"]));
            let inverse = relation.inverse.iter().chain(&relation.asked.inverse);
            inverse.for_each(|text| template(&format!("{place}.inverse"), text, &["v"], &["v"]));
            let same = relation.same.iter().chain(&relation.asked.same);
            same.for_each(|text| template(&format!("{place}.same"), text, &["a", "b"], &["a", "b"]));
            relation.asked.gaps.iter().for_each(|text| template(&format!("{place}.gaps"), text, &["a", "b"], &["a", "b"]));
            relation.ages.iter().for_each(|text| template(&format!("{place}.ages"), text, &["x"], &["x"]));
            for compare in relation.compares() {
                compare.which.iter().for_each(|text| template(&format!("{place}.compare.which"), text, &["a", "b", "c"], &["a", "b", "c"]));
                compare.than.iter().for_each(|text| template(&format!("{place}.compare.than"), text, &["a", "b", "c"], &["a", "b", "c"]));
                compare.whose.iter().for_each(|text| template(&format!("{place}.compare.whose"), text, &["c"], &["c"]));
            }
        }
    }
    for kind in types {
        if kind.leads.is_empty() {
            out.push(format!("{}: `leads` is empty; every page needs a first sentence", kind.name));
        }
        for relation in &kind.relations {
            relation_problems(generic, kind, relation, &mut out);
        }
    }
    out
}

/// What is wrong with wordings of several relations: each needs these slots, and has no other.
pub(crate) fn joint(place: &str, texts: &[String], needs: &[&str]) -> Vec<String> {
    texts.iter().flat_map(|text| of_template(place, text, needs, needs)).collect()
}

/// What is wrong with the slots of a template.
fn of_template(place: &str, text: &str, needs: &[&str], knows: &[&str]) -> Vec<String> {
    let found = slots(text);
    let lacking = needs.iter().filter(|need| !found.iter().any(|slot| slot_of(slot) == **need));
    let lacking = lacking.map(|need| format!("{place}: `{text}` lacks the slot `{{{need}}}`"));
    let unknown = found.iter().filter(|slot| !knows.contains(&slot_of(slot)));
    lacking.chain(unknown.map(|slot| format!("{place}: `{text}` has the unknown slot `{{{slot}}}`"))).collect()
}

/// The slot's name without an article: `v` for `the v` and `a v`.
fn slot_of(slot: &str) -> &str {
    slot.strip_prefix("the ").or_else(|| slot.strip_prefix("a ")).unwrap_or(slot)
}

fn relation_problems(generic: &Generic, kind: &EntityType, relation: &Relation, out: &mut Vec<String>) {
    let place = format!("{}.{}", kind.name, relation.name);
    let literal = matches!(relation.range.as_str(), "word" | "number" | "year");
    if relation.target.is_none() && !literal {
        out.push(format!("{place}: `range` is `{}`, which is no type and none of `word`, `number`, `year`", relation.range));
    }
    if kind.relations.iter().filter(|other| other.name == relation.name).count() > 1 {
        out.push(format!("{place}: the relation is there twice"));
    }
    if let Some(after) = &relation.after
        && kind.relations.iter().take_while(|other| other.name != relation.name).all(|other| &other.name != after)
    {
        out.push(format!("{place}: `after` names `{after}`, which is no relation listed before it"));
    }
    if relation.compare.is_some() && !matches!(relation.range.as_str(), "number" | "year") {
        out.push(format!("{place}: `compare` needs a `number` or a `year`, not `{}`", relation.range));
    }
    if !relation.asked.gaps.is_empty() && !matches!(relation.range.as_str(), "number" | "year") {
        out.push(format!("{place}: `gaps` needs a `number` or a `year`, not `{}`", relation.range));
    }
    if !relation.ages.is_empty() && relation.after.is_none() {
        out.push(format!("{place}: `ages` needs `after`, the relation that the difference is taken from"));
    }
    for (what, empty) in relation.compare.iter().flat_map(|own| [("which", own.which.is_empty()), ("than", own.than.is_empty())]) {
        if empty {
            out.push(format!("{place}: `compare.{what}` is empty"));
        }
    }
    let fits = relation.generic;
    for (what, own, shared) in [
        ("sentences", relation.sentences.len(), generic.sentences.len()),
        ("phrases", relation.phrases.len(), generic.phrases.len()),
        ("questions", relation.questions.len(), generic.questions.len()),
    ] {
        if own == 0 && (!fits || shared == 0) {
            out.push(format!("{place}: it has no `{what}` and no generic ones to fall back on"));
        }
    }
}
