//! The hyperparameters of the bundled model, from `models/stem/recipe/recipe.toml`.

use std::path::{Path, PathBuf};

use autoact_prompt::Role;
use autoact_train::{ModelConfig, TrainConfig};
use serde::Deserialize;

/// A recipe that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecipeError {
    /// The file is missing or unreadable.
    #[error("cannot read the recipe `{}`; name another with `--recipe`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Not TOML, an unknown key, or a value of another type.
    #[error("the recipe `{}` is not valid: {source}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and what.
        source: Box<toml::de::Error>,
    },
}

/// All hyperparameters of the bundled model.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Seed of the model's initial weights, the training data and the training runs.
    pub seed: u64,
    /// The vocabulary.
    pub tokenizer: TokenizerRecipe,
    /// The base model's shape; the tokenizer determines its vocabulary.
    pub model: ShapeRecipe,
    /// The synthetic knowledge bases.
    pub worlds: WorldsRecipe,
    /// The base's training.
    pub base: BaseRecipe,
    /// The adapters' training.
    pub adapters: AdapterRecipe,
}

/// `[tokenizer]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenizerRecipe {
    /// Number of tokens in the vocabulary.
    pub vocab_size: usize,
    /// Number of knowledge bases of each schema to which it is fitted.
    pub worlds: u64,
}

/// `[model]`: the fields of `config.json` that are chosen by hand.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // the names are Hugging Face's
pub struct ShapeRecipe {
    pub hidden_size: usize,
    pub intermediate_size: usize,
    pub num_hidden_layers: usize,
    pub num_attention_heads: usize,
    pub num_key_value_heads: usize,
    pub head_dim: usize,
    pub rms_norm_eps: f64,
    pub rope_theta: f64,
    pub max_position_embeddings: usize,
}

impl ShapeRecipe {
    /// The model's configuration with this tokenizer.
    pub fn config(&self, vocab_size: usize, end: u32) -> ModelConfig {
        ModelConfig {
            hidden_size: self.hidden_size,
            intermediate_size: self.intermediate_size,
            num_hidden_layers: self.num_hidden_layers,
            num_attention_heads: self.num_attention_heads,
            num_key_value_heads: self.num_key_value_heads,
            head_dim: self.head_dim,
            vocab_size,
            rms_norm_eps: self.rms_norm_eps,
            rope_theta: self.rope_theta,
            max_position_embeddings: self.max_position_embeddings,
            tie_word_embeddings: true,
            bos_token_id: None,
            eos_token_id: Some(end),
        }
    }
}

/// `[worlds]`
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorldsRecipe {
    /// Fraction of relations that are renamed in each of the base's knowledge bases.
    pub strange: f64,
    /// Number of documents made from one knowledge base.
    pub documents: u64,
    /// Fraction of questions that are reworded as people type them.
    #[serde(default)]
    pub reworded: f64,
    /// Relative frequency of questions for a difference, beside the other kinds, which make 1.
    #[serde(default)]
    pub differences: f64,
    /// Relative frequency of comparisons of two names, beside the other kinds, which have some.
    #[serde(default)]
    pub comparisons: f64,
    /// Relative frequency of questions from a value to what has it, beside the other kinds.
    pub inverse: f64,
    /// Fraction of questions that the pages do not answer.
    pub unanswerable: f64,
    /// Fraction of questions of arithmetic.
    pub arithmetic: f64,
    /// Fraction of trajectories whose tools cannot say that there is no answer, so that a task
    /// without that tool still works. All of their questions have an answer.
    pub always_answered: f64,
    /// Fraction of trajectories in which a name of the question is first read with words around it,
    /// or without some of its own. The step is no target: they learn to recover.
    pub misread: f64,
    /// Fraction of trajectories that first ask for something else than the question does: another
    /// relation, or words that are no name. The steps are no targets either. Where a question does
    /// not allow it, its trajectory is an ordinary one, so a third fewer come out.
    pub misread_asked: f64,
}

/// `[base]`: the composition of the base's training data. All values are fractions.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BaseRecipe {
    /// Documents in which every token is a target. In the others only the agents' text is.
    pub whole_text: f64,
    /// Plain texts about knowledge bases with the atlas's schema: pages with questions and answers,
    /// without trajectories.
    pub reading: f64,
    /// Of the other documents: such texts over the base's own schema, and texts about tools.
    pub lists: f64,
    /// Of the remaining ones: reading exercises, which ask for every fact of a page.
    pub drills: f64,
    /// Of the remaining ones: trajectories with a rejected answer and then the right one.
    pub repaired: f64,
    /// Of the other trajectories: those that end in a reflection.
    pub judged: f64,
    /// Of those: trajectories with a wrong answer.
    pub spoiled: f64,
    /// The training run.
    pub train: TrainConfig,
}

/// `[adapters]`: the composition of the adapters' training data.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdapterRecipe {
    /// Reading exercises (plan and reflect only).
    pub drills: f64,
    /// Trajectories with a rejected answer and then the right one (plan and tool).
    pub repaired: f64,
    /// Trajectories of which only the first thoughts are kept (plan): reading the question is the
    /// hardest part, and the shortest.
    #[serde(default)]
    pub begun: f64,
    /// Trajectories with a wrong answer (reflect).
    pub spoiled: f64,
    /// Whether adapters act only from their agent's cue on, so that all of them share what the base
    /// has computed before.
    #[serde(default)]
    pub activated: bool,
    /// Ranks that are not the one of `train.lora`.
    #[serde(default)]
    pub ranks: Ranks,
    /// The training run.
    pub train: TrainConfig,
}

/// Ranks of adapters: plan has more to learn than the others, tool less.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // one for each role
pub struct Ranks {
    pub plan: Option<usize>,
    pub tool: Option<usize>,
    pub reflect: Option<usize>,
}

impl AdapterRecipe {
    /// The training run of this role's adapter.
    #[must_use]
    pub fn train_of(&self, role: Role) -> TrainConfig {
        let mut train = self.train.clone();
        let rank = match role {
            Role::Plan => self.ranks.plan,
            Role::Tool => self.ranks.tool,
            Role::Reflect => self.ranks.reflect,
        };
        if let (Some(rank), Some(lora)) = (rank, &mut train.lora) {
            lora.alpha *= rank as f64 / lora.r as f64; // the same scale
            lora.r = rank;
        }
        train
    }
}

impl Recipe {
    /// Reads the recipe.
    pub fn load(path: &Path) -> Result<Recipe, RecipeError> {
        let text = std::fs::read_to_string(path).map_err(|source| RecipeError::Read { path: path.to_owned(), source })?;
        toml::from_str(&text).map_err(|source| RecipeError::Parse { path: path.to_owned(), source: Box::new(source) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_recipe_parses() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../models/stem/recipe/recipe.toml");
        let recipe = Recipe::load(&path).unwrap();
        recipe.base.train.validate().unwrap_or_else(|error| assert!(error.to_string().contains("checkpoint"), "{error}"));
        for (role, rank) in [(Role::Plan, 32), (Role::Tool, 8), (Role::Reflect, 16)] {
            let lora = recipe.adapters.train_of(role).lora.unwrap();
            assert_eq!((lora.r, lora.alpha), (rank, 2.0 * rank as f64));
        }
    }
}
