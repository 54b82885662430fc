//! Counterfactual knowledge bases: the same entities with permuted facts. There, an answer from
//! the model's memory is wrong and an answer from the pages is right.

use autoact_base::random::Rng;

use crate::base::{EntityId, Fact, KnowledgeBase};
use crate::exam::typed_set;
use crate::page::PageStyle;
use crate::question::{Question, QuestionPlan};
use crate::schema::{RelationId, RelationRef, TypeId};
use crate::text::contains_words;

/// Maximum number of swaps tried for each value that is not allowed at its place.
const TRIES: usize = 40;

impl KnowledgeBase {
    /// Questions as people type them, of every kind, some of them without an answer.
    pub fn typed(&self) -> Vec<Question> {
        typed_set(self)
    }

    /// The knowledge base with the values of every relation permuted among the entities that have
    /// it. References keep their type and unique values stay unique. Almost every value changes. A
    /// relation derived from another (a death year from a birth year) is permuted with it.
    pub fn counterfactual(&self, seed: u64) -> KnowledgeBase {
        let mut rng = Rng::labelled(seed, "counterfactual");
        let mut entities = self.entities.clone();
        for (kind, entity_type) in self.schema.types.iter().enumerate() {
            for (relation, schema_relation) in entity_type.relations.iter().enumerate() {
                let base = schema_relation.after.as_deref().and_then(|after| entity_type.relation(after));
                let follower = entity_type.relations.iter().position(|other| other.after.as_deref() == Some(&schema_relation.name));
                let known = |id: &EntityId, relation: RelationId| self.fact(*id, relation).is_some();
                for paired in [false, true] {
                    let other = base.or(follower);
                    let group: Vec<EntityId> = self
                        .of_type(kind)
                        .iter()
                        .copied()
                        .filter(|id| known(id, relation) && other.is_some_and(|other| known(id, other)) == paired)
                        .collect();
                    if paired && base.is_some() {
                        continue; // permuted together with the relation that it is derived from
                    }
                    let from = self.permutation(kind, relation, &group, &mut rng);
                    for (to, from) in group.iter().zip(from) {
                        entities[*to].facts[relation] = self.entities[from].facts[relation].clone();
                        if let Some(follower) = follower.filter(|_| paired) {
                            entities[*to].facts[follower] = self.entities[from].facts[follower].clone();
                        }
                    }
                }
            }
        }
        KnowledgeBase::new(std::sync::Arc::clone(&self.schema), entities, self.seed, PageStyle::default())
    }

    /// The source of each entity's new value: another entity with a different value, and never a
    /// reference to itself.
    fn permutation(&self, kind: TypeId, relation: RelationId, group: &[EntityId], rng: &mut Rng) -> Vec<EntityId> {
        let fact = |id: EntityId| self.fact(id, relation).map(|fact| (fact.text.as_str(), fact.target));
        let bad = |to: EntityId, from: EntityId| {
            let (Some((old, _)), Some((new, target))) = (fact(to), fact(from)) else { return true };
            old == new || target == Some(to) || new == self.entities[to].title || self.comes_back(kind, relation, to, target)
        };
        let mut from = group.to_vec();
        rng.shuffle(&mut from);
        for _ in 0..3 {
            for i in 0..group.len() {
                for _ in 0..TRIES {
                    if !bad(group[i], from[i]) {
                        break;
                    }
                    let j = rng.below(group.len());
                    if !bad(group[i], from[j]) && (bad(group[j], from[j]) || !bad(group[j], from[i])) {
                        from.swap(i, j);
                    }
                }
            }
        }
        from
    }

    /// Whether the value refers to the same entity as the old one, under another spelling.
    fn comes_back(&self, kind: TypeId, relation: RelationId, to: EntityId, target: Option<EntityId>) -> bool {
        let old = self.fact(to, relation).and_then(|fact| fact.target);
        self.schema.types[kind].relations[relation].target.is_some() && old.is_some() && old == target
    }

    /// The questions whose answers change in this knowledge base, with the new answers. Questions
    /// that become ambiguous or meaningless are left out.
    pub fn reanswer(&self, questions: &[Question]) -> Vec<Question> {
        questions
            .iter()
            .filter_map(|question| {
                let (answer, entities) = self.answer(question)?;
                (answer != question.answer).then(|| Question { answer, entities, ..question.clone() })
            })
            .collect()
    }

    /// The answer to a question in this knowledge base, and the titles of the pages that state it.
    /// `None` if there is no answer, or if the question contains it.
    pub fn answer(&self, question: &Question) -> Option<(String, Vec<String>)> {
        let chain: Vec<RelationRef> = question.chain.iter().map(|path| self.schema.relation_at(path)).collect::<Option<_>>()?;
        let walk = |title: &str| -> Option<(&Fact, Vec<String>)> {
            let start = self.find(title)?;
            let facts = self.follow(start, &chain)?;
            Some((*facts.last()?, self.path_of(start, &facts)?))
        };
        let both = |a: &str, b: &str| -> Option<(&Fact, &Fact, Vec<String>)> {
            let ((first, mut path), (second, more)) = (walk(a)?, walk(b)?);
            path.extend(more);
            Some((first, second, path))
        };
        let yes_no = |truth: bool| if truth { "yes".to_owned() } else { "no".to_owned() };
        match &question.plan {
            QuestionPlan::Follow { start } => {
                let (fact, path) = walk(start)?;
                let named = contains_words(&question.text.to_lowercase(), &fact.text.to_lowercase());
                (!named).then(|| (fact.text.clone(), path))
            }
            QuestionPlan::IsValue { start, claim } => walk(start).map(|(fact, path)| (yes_no(fact.text == *claim), path)),
            QuestionPlan::IsSame { a, b } => both(a, b).map(|(first, second, path)| (yes_no(first.text == second.text), path)),
            QuestionPlan::IsMore { a, b, more } | QuestionPlan::Compare { a, b, more } => {
                let (first, second, path) = both(a, b)?;
                let (x, y) = (first.number?, second.number?);
                if x == y {
                    return None;
                }
                let holds = (x > y) == *more;
                let answer = match &question.plan {
                    QuestionPlan::Compare { .. } => (if holds { a } else { b }).clone(),
                    _ => yes_no(holds),
                };
                Some((answer, path))
            }
            QuestionPlan::Difference { .. } => {
                let answer = self.gap(question)?.answer;
                let named = contains_words(&question.text.to_lowercase(), &answer.to_lowercase());
                (!named).then(|| (answer, question.entities.clone()))
            }
            // their answers are not the knowledge base's
            QuestionPlan::Calculate { .. } => Some((question.answer.clone(), Vec::new())),
            QuestionPlan::Missing { .. } | QuestionPlan::NoQuestion { .. } => None,
            QuestionPlan::Inverse { value } => {
                let at = *chain.first()?;
                let has = |id: &&EntityId| self.fact(**id, at.relation).is_some_and(|fact| fact.text == *value);
                let mut holders = self.of_type(at.kind).iter().filter(has);
                let (holder, None) = (holders.next()?, holders.next()) else { return None };
                let title = self.entities[*holder].title.clone();
                (!contains_words(&question.text, &title)).then(|| (title.clone(), vec![title]))
            }
        }
    }
}
