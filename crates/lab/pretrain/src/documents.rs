//! Endless streams of training documents: plain texts, reading exercises, gold trajectories and
//! reflections, all over synthetic knowledge bases.

use std::path::PathBuf;
use std::sync::Arc;

use autoact_base::random::Rng;
use autoact_prompt::{Role, Segment};
use autoact_synthetic_kb::{
    Atlas, AtlasError, DrillLines, KnowledgeBase, Mix, NO_PAGE, NameMaker, Nouns, Question, Schema, SchemaError, Solver, Split,
    ThoughtStyle, Wording, World, WorldSize, drill, question_list, tool_choice,
};
use autoact_tools::ToolLibrary;
use autoact_train::{Document, DocumentSource};
use autoact_trajectory::{Step, ToolSpec, Trajectory, Turn};

use crate::encode::{EncodeError, Encoder};
use crate::environment::{Tools, ToolsError};
use crate::paths::Paths;
use crate::recipe::{AdapterRecipe, BaseRecipe, Recipe, WorldsRecipe};

/// Questions tried for one document, because some have no gold trajectory. If none has one, the
/// document is empty and the trainer skips it.
const TRIES: usize = 20;
/// Probability that a trajectory of the base's data starts with a wrong tool and recovers.
const DETOURS: f64 = 0.04;
/// The same for the adapters' data. It is lower, because adapters should learn the canonical way.
const ADAPTER_DETOURS: f64 = 0.02;
/// Ways tried to misread a name, because the tools do not always suggest the title that is meant.
const MISREADINGS: usize = 8;
/// Number of questions in a list; each stands after its pages.
const LIST_QUESTIONS: usize = 4;
/// Fraction of plain texts that are about tools.
const TOOL_CHOICES: f64 = 0.3;

/// An error in generating synthetic knowledge bases or their tools.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A schema file.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The list of nouns cannot be read.
    #[error("cannot read the nouns `{}`", path.display())]
    Nouns {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The atlas's tables.
    #[error(transparent)]
    Atlas(#[from] AtlasError),
    /// The tools.
    #[error(transparent)]
    Tools(#[from] ToolsError),
    /// The tokenizer.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// The sources of synthetic knowledge bases: schemas, nouns and the spelling of names.
#[derive(Clone)]
pub struct Worlds {
    base: Arc<Schema>,
    /// Nouns for renamed relations in the base's knowledge bases, and the fraction renamed.
    nouns: Arc<Nouns>,
    recipe: WorldsRecipe,
    atlas: Arc<Schema>,
    names: Arc<NameMaker>,
    library: Arc<ToolLibrary>,
}

impl Worlds {
    /// Reads the two schemas and the nouns, and learns the spelling of the atlas's names.
    pub fn load(paths: &Paths, recipe: &Recipe) -> Result<Worlds, SourceError> {
        let beside: PathBuf = paths.recipe.with_file_name("worlds.toml");
        let nouns = paths.recipe.with_file_name("nouns.txt");
        let nouns = std::fs::read_to_string(&nouns).map_err(|source| SourceError::Nouns { path: nouns.clone(), source })?;
        let atlas = Atlas::load(&paths.atlas)?;
        Ok(Worlds {
            base: Arc::new(Schema::load_for_training(&beside)?),
            nouns: Arc::new(Nouns::parse(&nouns)),
            recipe: recipe.worlds,
            atlas: Arc::new(Schema::load_for_training(&paths.atlas.join("schema.toml"))?),
            names: Arc::new(NameMaker::fit(atlas.base())),
            library: Arc::new(Tools::bundled()?),
        })
    }

    /// Texts for the tokenizer: pages and trajectories of `count` knowledge bases of each schema.
    pub(crate) fn texts(&self, recipe: &Recipe, count: u64) -> Result<Vec<String>, SourceError> {
        let mut texts = Vec::new();
        for (schema, label) in [(&self.base, "tokenizer-base"), (&self.atlas, "tokenizer-atlas")] {
            for number in 0..count {
                let world = Made::new(self, schema, label, recipe.seed, number)?;
                texts.extend(world.base.pages().into_iter().map(|(title, text)| format!("{title}: {text}")));
                for at in 0..recipe.worlds.documents {
                    let mut rng = world.rng(at);
                    let gold = world.kit(&mut rng).gold(&mut rng, &ThoughtStyle::CANONICAL, DETOURS, Split::Train);
                    texts.extend(gold.map(|gold| autoact_prompt::transcript(&gold.trajectory)));
                }
            }
        }
        Ok(texts)
    }
}

/// One synthetic knowledge base with its tools.
struct Made {
    base: KnowledgeBase,
    tools: Tools,
    recipe: WorldsRecipe,
    seed: u64,
    label: &'static str,
    number: u64,
}

impl Made {
    fn new(worlds: &Worlds, schema: &Arc<Schema>, label: &'static str, seed: u64, number: u64) -> Result<Made, SourceError> {
        let world_seed = Rng::numbered(seed, number, label).next_u64();
        // only the base's schema is renamed: adapters have to learn the atlas's relations, while
        // the base has to learn to copy whatever noun it reads
        let strange = Arc::ptr_eq(schema, &worlds.base)
            .then(|| Arc::new(schema.with_strange_relations(&worlds.nouns, worlds.recipe.strange, world_seed)));
        let base = World::invent(strange.as_ref().unwrap_or(schema), &worlds.names, world_seed, WorldSize::default());
        let tools = Tools::over(&worlds.library, &base)?;
        Ok(Made { base, tools, recipe: worlds.recipe, seed: world_seed, label, number })
    }

    /// The random number generator of the knowledge base's document `at`.
    fn rng(&self, at: u64) -> Rng {
        Rng::labelled(self.seed.wrapping_add(at.wrapping_mul(0x2545_f491_4f6c_dd1d)), self.label)
    }

    /// The tools and the questions of one document.
    fn kit(&self, rng: &mut Rng) -> Kit<'_> {
        let WorldsRecipe { differences, inverse, unanswerable, arithmetic, always_answered, .. } = self.recipe;
        let of_pages = Mix { difference: differences, inverse, ..Mix::default() };
        let (mut specs, mut mix) = (self.tools.specs().to_vec(), of_pages.with(arithmetic, unanswerable));
        if rng.chance(always_answered) {
            specs.retain(|spec| !spec.is_no_answer());
            mix = of_pages.with(arithmetic, 0.0);
        }
        Kit { world: self, specs, mix }
    }

    /// A plain text: either pages with questions and answers, in the form that self-instruct uses,
    /// or questions with the tools that they need.
    fn plain(&self, rng: &mut Rng) -> Option<String> {
        if rng.chance(TOOL_CHOICES) {
            return tool_choice(&self.base, self.tools.specs(), Split::Train, rng);
        }
        question_list(&self.base, LIST_QUESTIONS, Split::Train, self.recipe.reworded, rng)
    }
}

/// The tools of one document's trajectory and the mix that its question is drawn from.
struct Kit<'a> {
    world: &'a Made,
    specs: Vec<ToolSpec>,
    mix: Mix,
}

/// A right trajectory.
struct Gold {
    trajectory: Trajectory,
    question: Question,
    /// What a step looks for in place of a name of the question. That step is no target.
    misread: Option<String>,
}

/// Takes the steps that misread a name out of a document's targets.
fn forget(read: &str, document: &mut Document, history: &Trajectory, encoder: &Encoder) -> Result<(), EncodeError> {
    let length = |turns: usize| {
        let before = Trajectory { turns: history.turns[..turns].to_vec(), ..history.clone() };
        Ok::<usize, EncodeError>(encoder.trajectory(&before, |_| false)?.tokens.len())
    };
    for (at, turn) in history.turns.iter().enumerate() {
        if matches!(turn, Turn::Step(step) if is_misread(step, read)) {
            document.loss[length(at)?..length(at + 1)?].fill(false);
        }
    }
    Ok(())
}

/// Whether a step looks in vain for a name read like this.
fn is_misread(step: &Step, read: &str) -> bool {
    step.params.as_deref() == Some(read) && step.observation.as_deref().is_some_and(|found| found.starts_with(NO_PAGE))
}

impl Kit<'_> {
    fn solver<'a>(&'a self, style: &'a ThoughtStyle, detours: f64) -> Solver<'a> {
        Solver { base: &self.world.base, style, tools: &self.specs, detours }
    }

    fn tools(&self) -> Tools {
        self.world.tools.clone()
    }

    fn gold(&self, rng: &mut Rng, style: &ThoughtStyle, detours: f64, split: Split) -> Option<Gold> {
        (0..TRIES).find_map(|_| {
            let mut question = self.world.base.question(rng, &self.mix, split)?;
            let reworded = self.world.recipe.reworded;
            if reworded > 0.0
                && rng.chance(reworded)
                && let Some(reworded) = self.world.base.reword(&question, &Wording::TRAIN, rng)
            {
                question = reworded;
            }
            let solver = self.solver(style, detours);
            if rng.chance(self.world.recipe.misread)
                && let Some((trajectory, read)) = self.misread(&question, &solver, rng)
            {
                return Some(Gold { trajectory, question, misread: Some(read) });
            }
            let trajectory = solver.solve(&question, &mut self.tools(), rng).ok()?;
            Some(Gold { trajectory, question, misread: None })
        })
    }

    /// A right trajectory that first misreads a name, and what it reads. The tools must suggest the
    /// title that is meant.
    fn misread(&self, question: &Question, solver: &Solver<'_>, rng: &mut Rng) -> Option<(Trajectory, String)> {
        (0..MISREADINGS).find_map(|_| {
            let (misread, read) = question.misread(rng)?;
            let trajectory = solver.solve(&misread, &mut self.tools(), rng).ok()?;
            let found = trajectory.steps().any(|step| is_misread(step, &read));
            found.then_some((trajectory, read))
        })
    }

    /// Adds a reflection. With probability `spoiled`, the trajectory is first made wrong.
    fn judged(&self, gold: Trajectory, question: &Question, style: &ThoughtStyle, spoiled: f64, rng: &mut Rng) -> Trajectory {
        let solver = self.solver(style, 0.0);
        let mut history = gold;
        if rng.chance(spoiled)
            && let Some((wrong, _)) = solver.spoil(question, &history, &mut self.tools(), rng)
        {
            history = wrong;
        }
        if let Ok(reflection) = solver.reflect(question, &history) {
            history.turns.push(Turn::Reflection(reflection));
        }
        history
    }

    /// A trajectory with a wrong answer, its rejection, the right answer and its approval.
    fn repaired(&self, gold: &Trajectory, question: &Question, style: &ThoughtStyle, rng: &mut Rng) -> Option<Trajectory> {
        let solver = self.solver(style, 0.0);
        let mut history = solver.repair(question, gold, &mut self.tools(), rng).ok()??;
        let reflection = solver.reflect(question, &history).ok()?;
        history.turns.push(Turn::Reflection(reflection));
        Some(history)
    }
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
        if let Some(read) = &misread {
            forget(read, &mut document, &history, encoder).ok()?;
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
        if let (Some(read), Role::Plan | Role::Tool) = (&misread, role) {
            forget(read, &mut document, &history, encoder).ok()?;
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
    use super::*;
    use autoact_trajectory::NOT_FOUND;

    fn stem() -> (Recipe, Worlds) {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let recipe = root.join("models/stem/recipe/recipe.toml");
        let paths = Paths { recipe: recipe.clone(), atlas: root.join("corpora/atlas"), model: PathBuf::new(), work: PathBuf::new() };
        let recipe = Recipe::load(&recipe).unwrap();
        let worlds = Worlds::load(&paths, &recipe).unwrap();
        (recipe, worlds)
    }

    #[test]
    fn a_misread_name_is_no_target_and_what_follows_is() {
        let (recipe, worlds) = stem();
        let mut made = Made::new(&worlds, &worlds.atlas, "test", 1, 0).unwrap();
        made.recipe.misread = 1.0;
        let mut seen = 0;
        for at in 0..recipe.worlds.documents {
            let mut rng = made.rng(at);
            let kit = made.kit(&mut rng);
            let gold = kit.gold(&mut rng, &ThoughtStyle::ADAPTER, 0.0, Split::Train).unwrap();
            let Gold { trajectory, question, misread: Some(read) } = gold else { continue };
            seen += 1;
            let text = autoact_prompt::transcript(&trajectory);
            let tokenizer = crate::tokenizer::fit(&vec![text; 4], 400).unwrap();
            let encoder = Encoder::new(tokenizer.clone()).unwrap();
            let spoken = |segment: &Segment| segment.role == Some(Role::Plan);
            let whole = encoder.trajectory(&trajectory, spoken).unwrap();
            let mut document = whole.clone();
            forget(&read, &mut document, &trajectory, &encoder).unwrap();
            let targets = |document: &Document| {
                let tokens = document.tokens.iter().zip(&document.loss).filter(|(_, loss)| **loss).map(|(token, _)| *token);
                tokenizer.decode(&tokens.collect::<Vec<_>>(), false).unwrap()
            };
            let wrong: Vec<&Step> = trajectory.steps().filter(|step| is_misread(step, &read)).collect();
            assert!(wrong.len() == 1 && targets(&whole).contains(&wrong[0].thought), "{trajectory:#?}");
            assert!(!targets(&document).contains(&wrong[0].thought));
            let last = trajectory.steps().next_back().unwrap();
            assert!(targets(&document).contains(&last.thought) && last.params.as_ref() == Some(&question.answer));
        }
        assert!(seen > 10, "{seen}");
    }

    #[test]
    fn documents_have_the_fractions_of_the_recipe() {
        let (recipe, worlds) = stem();
        let (mut documents, mut without, mut unanswerable, mut wrong) = (0, 0, 0, 0);
        for (schema, number) in [&worlds.base, &worlds.atlas].into_iter().flat_map(|schema| (0..6).map(move |number| (schema, number))) {
            let made = Made::new(&worlds, schema, "test", 1, number).unwrap();
            for at in 0..100 {
                let mut rng = made.rng(at);
                let kit = made.kit(&mut rng);
                let Some(Gold { trajectory: gold, question, .. }) = kit.gold(&mut rng, &ThoughtStyle::ADAPTER, 0.0, Split::Train) else {
                    continue;
                };
                documents += 1;
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
    }
}

#[cfg(test)]
#[path = "leak_tests.rs"]
mod leak_tests;
