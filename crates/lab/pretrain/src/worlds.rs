//! Synthetic knowledge bases ("worlds") with the real tools over them.

use std::path::PathBuf;
use std::sync::Arc;

use autoact_base::random::Rng;
use autoact_synthetic_kb::{
    Atlas, AtlasError, KnowledgeBase, Mix, NameMaker, Nouns, Schema, SchemaError, Split, ThoughtStyle, World, WorldSize, question_list,
    tool_choice,
};
use autoact_tools::ToolLibrary;

use crate::encode::EncodeError;
use crate::environment::{Tools, ToolsError};
use crate::kit::{DETOURS, Kit};
use crate::paths::Paths;
use crate::recipe::{Recipe, WorldsRecipe};

/// Number of questions in a list; each stands after its pages.
pub(crate) const LIST_QUESTIONS: usize = 4;
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
    pub(crate) base: Arc<Schema>,
    /// Nouns for renamed relations in the base's knowledge bases, and the fraction renamed.
    nouns: Arc<Nouns>,
    recipe: WorldsRecipe,
    pub(crate) atlas: Arc<Schema>,
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
pub(crate) struct Made {
    pub(crate) base: KnowledgeBase,
    pub(crate) tools: Tools,
    pub(crate) recipe: WorldsRecipe,
    seed: u64,
    label: &'static str,
    /// Its number in its stream.
    pub(crate) number: u64,
}

impl Made {
    pub(crate) fn new(worlds: &Worlds, schema: &Arc<Schema>, label: &'static str, seed: u64, number: u64) -> Result<Made, SourceError> {
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
    pub(crate) fn rng(&self, at: u64) -> Rng {
        Rng::labelled(self.seed.wrapping_add(at.wrapping_mul(0x2545_f491_4f6c_dd1d)), self.label)
    }

    /// The tools and the questions of one document.
    pub(crate) fn kit(&self, rng: &mut Rng) -> Kit<'_> {
        let WorldsRecipe { differences, comparisons, inverse, unanswerable, arithmetic, always_answered, .. } = self.recipe;
        let usual = Mix::default();
        let of_pages = Mix { difference: differences, comparison: usual.comparison + comparisons, inverse, ..usual };
        let (mut specs, mut mix) = (self.tools.specs().to_vec(), of_pages.with(arithmetic, unanswerable));
        if rng.chance(always_answered) {
            specs.retain(|spec| !spec.is_no_answer());
            mix = of_pages.with(arithmetic, 0.0);
        }
        Kit { world: self, specs, mix }
    }

    /// A plain text: either pages with questions and answers, in the form that self-instruct uses,
    /// or questions with the tools that they need.
    pub(crate) fn plain(&self, rng: &mut Rng) -> Option<String> {
        if rng.chance(TOOL_CHOICES) {
            return tool_choice(&self.base, self.tools.specs(), Split::Train, rng);
        }
        question_list(&self.base, LIST_QUESTIONS, Split::Train, self.recipe.reworded, rng)
    }
}
