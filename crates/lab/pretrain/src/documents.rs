//! Endless streams of training documents: plain texts, reading exercises, gold trajectories and
//! reflections, all over synthetic knowledge bases.

use std::sync::Arc;

use autoact_base::random::Rng;
use autoact_prompt::{Role, Segment};
use autoact_synthetic_kb::{DrillLines, Misread, Schema, Split, ThoughtStyle, drill, question_list};
use autoact_train::{Document, DocumentSource};
use autoact_trajectory::{Trajectory, Turn};

use crate::encode::{EncodeError, Encoder};
use crate::kit::{ADAPTER_DETOURS, DETOURS, Gold};
use crate::recipe::{AdapterRecipe, BaseRecipe, Recipe};
use crate::worlds::{LIST_QUESTIONS, Made, SourceError, Worlds};

/// Takes the steps that misread the question out of a document's targets.
fn forget(misread: &Misread, document: &mut Document, history: &Trajectory, encoder: &Encoder) -> Result<(), EncodeError> {
    let length = |turns: usize| {
        let before = Trajectory { turns: history.turns[..turns].to_vec(), ..history.clone() };
        Ok::<usize, EncodeError>(encoder.trajectory(&before, |_| false)?.tokens.len())
    };
    for (at, turn) in history.turns.iter().enumerate() {
        if matches!(turn, Turn::Step(step) if misread.is_in(step)) {
            document.loss[length(at)?..length(at + 1)?].fill(false);
        }
    }
    Ok(())
}

/// Of the trajectories that are only begun: those with a second thought.
const SECOND: f64 = 1.0 / 3.0;

/// Leaves out of a document what comes after its first `count` stretches of targets.
fn begin(document: &mut Document, count: usize) {
    let ends = (1..=document.loss.len()).filter(|at| document.loss[at - 1] && document.loss.get(*at) != Some(&true));
    let Some(end) = ends.take(count).last() else { return };
    document.tokens.truncate(end);
    document.loss.truncate(end);
    document.invocations.retain(|range| range.end <= end);
}

/// Splits the stream of documents into knowledge bases and keeps the current one.
struct Stream {
    worlds: Worlds,
    schema: Arc<Schema>,
    label: &'static str,
    seed: u64,
    per_world: u64,
    at: u64,
    made: Option<Made>,
}

impl Stream {
    /// The next document's knowledge base and random number generator.
    fn next(&mut self) -> Option<(&Made, Rng)> {
        let (number, within) = (self.at / self.per_world, self.at % self.per_world);
        self.at += 1;
        if self.made.as_ref().is_none_or(|made| made.number != number) {
            self.made = Made::new(&self.worlds, &self.schema, self.label, self.seed, number).ok();
        }
        let made = self.made.as_ref()?;
        Some((made, made.rng(within)))
    }
}

/// The training documents of the base.
pub struct BaseDocuments {
    stream: Stream,
    /// Knowledge bases with the atlas's schema, without trajectories. Without having read their
    /// vocabulary, no adapter on frozen embeddings could learn to plan with it.
    reading: Stream,
    encoder: Encoder,
    recipe: BaseRecipe,
}

impl BaseDocuments {
    /// Knowledge bases of the base's schema with trajectories, and of the atlas's schema without.
    pub fn new(worlds: Worlds, encoder: Encoder, recipe: &Recipe) -> Result<BaseDocuments, SourceError> {
        let (schema, atlas) = (Arc::clone(&worlds.base), Arc::clone(&worlds.atlas));
        let reading = stream(worlds.clone(), atlas, "reading", recipe)?;
        let stream = stream(worlds, schema, "base", recipe)?;
        Ok(BaseDocuments { stream, reading, encoder, recipe: recipe.base.clone() })
    }

    fn document(&mut self) -> Option<Document> {
        let (encoder, recipe) = (&self.encoder, &self.recipe);
        let (world, mut rng) = self.stream.next()?;
        let rng = &mut rng;
        if rng.chance(recipe.reading) {
            self.reading.at = self.stream.at - 1;
            let (world, mut rng) = self.reading.next()?;
            return encoder.text(&question_list(&world.base, LIST_QUESTIONS, Split::Train, world.recipe.reworded, &mut rng)?).ok();
        }
        if rng.chance(recipe.lists) {
            return encoder.text(&world.plain(rng)?).ok();
        }
        let style = *rng.pick(&ThoughtStyle::ALL)?;
        if rng.chance(recipe.drills) {
            return encoder.drill(&drill(&world.base, &style, DrillLines::All, rng)?).ok();
        }
        let kit = world.kit(rng);
        let Gold { trajectory: gold, question, misread } = kit.gold(rng, &style, DETOURS, Split::Any)?;
        let repaired = if rng.chance(recipe.repaired) { kit.repaired(&gold, &question, &style, rng) } else { None };
        let history = match repaired {
            Some(history) => history,
            None if rng.chance(recipe.judged) => kit.judged(gold, &question, &style, recipe.spoiled, rng),
            None => gold,
        };
        let whole = rng.chance(recipe.whole_text);
        let wrong = spoiled_answer(&history);
        let counts = |segment: &Segment| whole || (segment.role.is_some() && !(wrong && segment.role != Some(Role::Reflect)));
        let mut document = encoder.trajectory(&history, counts).ok()?;
        if let Some(misread) = &misread {
            forget(misread, &mut document, &history, encoder).ok()?;
        }
        Some(document)
    }
}

/// Whether the history ends in a rejected answer. The steps before it are then not targets.
fn spoiled_answer(history: &Trajectory) -> bool {
    matches!(history.turns.last(), Some(Turn::Reflection(last)) if last.verdict == autoact_trajectory::Verdict::Wrong)
}

impl DocumentSource for BaseDocuments {
    fn next(&mut self) -> Document {
        next_of(|| self.document())
    }

    fn seek(&mut self, index: u64) {
        self.stream.at = index;
    }
}

/// The training documents of one role's adapter.
pub struct AdapterDocuments {
    stream: Stream,
    encoder: Encoder,
    recipe: AdapterRecipe,
    role: Role,
}

impl AdapterDocuments {
    /// Synthetic knowledge bases of the atlas's schema, without its held-out chains and without its
    /// entities.
    pub fn new(worlds: Worlds, encoder: Encoder, recipe: &Recipe, role: Role) -> Result<AdapterDocuments, SourceError> {
        let schema = Arc::clone(&worlds.atlas);
        let stream = stream(worlds, schema, role.as_str(), recipe)?;
        Ok(AdapterDocuments { stream, encoder, recipe: recipe.adapters.clone(), role })
    }

    fn document(&mut self) -> Option<Document> {
        let (encoder, recipe, role) = (&self.encoder, &self.recipe, self.role);
        let (world, mut rng) = self.stream.next()?;
        let rng = &mut rng;
        let style = &ThoughtStyle::ADAPTER;
        let lines = match role {
            Role::Plan => Some(DrillLines::Thoughts),
            Role::Reflect => Some(DrillLines::Reflections),
            Role::Tool => None,
        };
        if let Some(lines) = lines.filter(|_| rng.chance(recipe.drills)) {
            let pieces = drill(&world.base, style, lines, rng)?;
            return if recipe.activated { encoder.activated_drill(&pieces, role) } else { encoder.drill(&pieces) }.ok();
        }
        let kit = world.kit(rng);
        let Gold { trajectory: gold, question, misread } = kit.gold(rng, style, ADAPTER_DETOURS, Split::Train)?;
        let repaired = if rng.chance(recipe.repaired) { kit.repaired(&gold, &question, style, rng) } else { None };
        let history = match (repaired, role) {
            (Some(history), _) => history,
            (None, Role::Reflect) => kit.judged(gold, &question, style, recipe.spoiled, rng),
            (None, _) => gold,
        };
        // the steps before a rejected answer were wrong, so plan and tool learn only from later
        // steps
        let rejected =
            history.turns.iter().rposition(|turn| matches!(turn, Turn::Reflection(r) if r.verdict == autoact_trajectory::Verdict::Wrong));
        let spoken = |segment: &Segment| segment.role == Some(role);
        let mut document =
            if recipe.activated { encoder.activated(&history, spoken) } else { encoder.trajectory(&history, spoken) }.ok()?;
        if let (Some(at), Role::Plan | Role::Tool) = (rejected, role) {
            let before = Trajectory { turns: history.turns[..=at].to_vec(), ..history.clone() };
            let length = encoder.trajectory(&before, spoken).ok()?.tokens.len();
            document.loss[..length].fill(false);
        }
        if let (Some(misread), Role::Plan | Role::Tool) = (&misread, role) {
            forget(misread, &mut document, &history, encoder).ok()?;
        }
        if role == Role::Plan && rng.chance(recipe.begun) {
            begin(&mut document, if rng.chance(SECOND) { 2 } else { 1 });
        }
        Some(document)
    }
}

impl DocumentSource for AdapterDocuments {
    fn next(&mut self) -> Document {
        next_of(|| self.document())
    }

    fn seek(&mut self, index: u64) {
        self.stream.at = index;
    }
}

fn stream(worlds: Worlds, schema: Arc<Schema>, label: &'static str, recipe: &Recipe) -> Result<Stream, SourceError> {
    let per_world = recipe.worlds.documents.max(1);
    // the first knowledge base is generated here, so that a mistake is an error at the start
    // instead of a stream of empty documents
    let made = Made::new(&worlds, &schema, label, recipe.seed, 0)?;
    Ok(Stream { worlds, schema, label, seed: recipe.seed, per_world, at: 0, made: Some(made) })
}

/// The document, or an empty one, which the trainer skips, if none could be generated.
fn next_of(document: impl FnOnce() -> Option<Document>) -> Document {
    document().unwrap_or(Document { tokens: Vec::new(), loss: Vec::new(), ..Document::default() })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::paths::Paths;
    use autoact_trajectory::{NOT_FOUND, Step};

    fn stem() -> (Recipe, Worlds) {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let recipe = root.join("models/stem/recipe/recipe.toml");
        let paths = Paths { recipe: recipe.clone(), atlas: root.join("corpora/atlas"), model: PathBuf::new(), work: PathBuf::new() };
        let recipe = Recipe::load(&recipe).unwrap();
        let worlds = Worlds::load(&paths, &recipe).unwrap();
        (recipe, worlds)
    }

    #[test]
    fn what_is_misread_is_no_target_and_what_follows_is() {
        let (recipe, worlds) = stem();
        let mut made = Made::new(&worlds, &worlds.atlas, "test", 1, 0).unwrap();
        let (mut names, mut relations) = (0, 0);
        for (misread, misread_asked) in [(1.0, 0.0), (0.0, 1.0)] {
            (made.recipe.misread, made.recipe.misread_asked) = (misread, misread_asked);
            for at in 0..recipe.worlds.documents {
                let mut rng = made.rng(at);
                let kit = made.kit(&mut rng);
                let gold = kit.gold(&mut rng, &ThoughtStyle::ADAPTER, 0.0, Split::Train).unwrap();
                let Gold { trajectory, question, misread: Some(misread) } = gold else { continue };
                match misread {
                    Misread::Name(_) => names += 1,
                    Misread::Asked(_) => relations += 1,
                }
                let text = autoact_prompt::transcript(&trajectory);
                let tokenizer = crate::tokenizer::fit(&vec![text; 4], 400).unwrap();
                let encoder = Encoder::new(tokenizer.clone()).unwrap();
                let spoken = |segment: &Segment| segment.role == Some(Role::Plan);
                let whole = encoder.trajectory(&trajectory, spoken).unwrap();
                let mut document = whole.clone();
                forget(&misread, &mut document, &trajectory, &encoder).unwrap();
                let targets = |document: &Document| {
                    let tokens = document.tokens.iter().zip(&document.loss).filter(|(_, loss)| **loss).map(|(token, _)| *token);
                    tokenizer.decode(&tokens.collect::<Vec<_>>(), false).unwrap()
                };
                let wrong: Vec<&Step> = trajectory.steps().filter(|step| misread.is_in(step)).collect();
                assert!(!wrong.is_empty() && wrong.len() < 4, "{trajectory:#?}");
                for step in &wrong {
                    let of = |document: &Document| targets(document).contains(&step.thought);
                    assert!(of(&whole) && !of(&document), "{} in {trajectory:#?}", step.thought);
                }
                let last = trajectory.steps().next_back().unwrap();
                assert!(!misread.is_in(last) && targets(&document).contains(&last.thought));
                assert!(!question.is_answerable() || last.params.as_ref() == Some(&question.answer));
            }
        }
        // some wrong names are mended by `Retrieve`, so that nothing is misread
        assert!(names > 5 && relations > 20, "{names}, {relations}");
    }

    #[test]
    fn a_trajectory_that_is_only_begun_ends_with_its_first_targets() {
        let loss = vec![false, true, true, false, true, false, false, true];
        let whole = Document { tokens: (0..8).collect(), loss, invocations: vec![0..3, 3..5, 6..8] };
        let begun = |count: usize| {
            let mut document = whole.clone();
            begin(&mut document, count);
            (document.tokens.len(), document.loss.len(), document.invocations.len())
        };
        assert_eq!([1, 2, 3, 4].map(begun), [(3, 3, 1), (5, 5, 2), (8, 8, 3), (8, 8, 3)]);
        let mut without = Document { loss: vec![false; 8], ..whole.clone() };
        begin(&mut without, 1);
        assert_eq!(without.tokens.len(), 8);
    }

    #[test]
    fn documents_have_the_fractions_of_the_recipe() {
        let (recipe, worlds) = stem();
        let (mut documents, mut without, mut unanswerable, mut wrong, mut recover) = (0, 0, 0, 0, 0);
        for (schema, number) in [&worlds.base, &worlds.atlas].into_iter().flat_map(|schema| (0..6).map(move |number| (schema, number))) {
            let made = Made::new(&worlds, schema, "test", 1, number).unwrap();
            for at in 0..100 {
                let mut rng = made.rng(at);
                let kit = made.kit(&mut rng);
                let Some(gold) = kit.gold(&mut rng, &ThoughtStyle::ADAPTER, 0.0, Split::Train) else { continue };
                let Gold { trajectory: gold, question, misread } = gold;
                documents += 1;
                recover += usize::from(matches!(misread, Some(Misread::Asked(_))));
                let can_say = gold.tools.iter().any(|spec| spec.name == NOT_FOUND);
                without += usize::from(!can_say);
                unanswerable += usize::from(!question.is_answerable());
                let history = kit.judged(gold, &question, &ThoughtStyle::ADAPTER, 0.5, &mut rng);
                wrong += usize::from(spoiled_answer(&history));
                assert!(can_say || history.steps().all(|step| step.tool != NOT_FOUND), "{history:#?}");
            }
        }
        let near = |count: usize, part: f64| (count as f64 / f64::from(documents) - part).abs() < 0.04;
        assert!(near(without, recipe.worlds.always_answered), "{without} of {documents}");
        assert!(near(unanswerable, recipe.worlds.unanswerable), "{unanswerable} of {documents}");
        assert!(near(wrong, 0.5), "{wrong} of {documents}");
        // some questions allow no such mistake, and some mistakes do not come to it
        let part = recover as f64 / f64::from(documents);
        assert!(part > recipe.worlds.misread_asked / 2.0 && part < recipe.worlds.misread_asked, "{recover} of {documents}");
    }
}

#[cfg(test)]
#[path = "leak_tests.rs"]
mod leak_tests;
