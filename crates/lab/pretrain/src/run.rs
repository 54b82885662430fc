//! The training runs of the tokenizer, the base and the adapters. The runs of base and adapters
//! resume from the newest checkpoint.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use autoact_model::{LoadError, ModelDir};
use autoact_prompt::Role;
use autoact_train::{
    DocumentSource, Length, LoraConfig, LoraWeights, ModelConfig, Progress, Report, SaveDtype, TrainConfig, TrainError, Trainer, Weights,
};
use tokenizers::Tokenizer;

use crate::documents::{AdapterDocuments, BaseDocuments};
use crate::encode::{EncodeError, Encoder};
use crate::paths::Paths;
use crate::recipe::{Recipe, RecipeError};
use crate::tokenizer;
use crate::worlds::{SourceError, Worlds};

/// A training run that could not start or resume.
#[derive(Debug, thiserror::Error)]
pub enum StemError {
    /// The recipe.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// The synthetic knowledge bases, or the tools over them.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The tokenizer.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The trainer.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// The base model cannot be read to compute its digest.
    #[error(transparent)]
    Model(Box<LoadError>),
    /// A file of the model directory.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The adapter that a training is to start from is of another kind.
    #[error("cannot start from the adapter `{}`: {reason}", path.display())]
    From {
        /// Its directory.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// `tokenizer.json` is missing or unusable.
    #[error("cannot use the tokenizer `{}`: {reason}; make it with `autoact model train tokenizer`", path.display())]
    Tokenizer {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

/// Options of a training run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Length in tokens, instead of the recipe's.
    pub tokens: Option<u64>,
    /// The directory whose weights the training starts from, instead of new ones. For the base: a
    /// model with the recipe's tokenizer and shape; it may have fewer layers. For an adapter: one of
    /// the same base and the recipe's shape, activated or not.
    pub from: Option<PathBuf>,
    /// Train an adapter that always acts, whatever the recipe says. It has its own place.
    pub plain: bool,
    /// Delete earlier checkpoints and start from the beginning.
    pub restart: bool,
}

/// How a run ended.
#[derive(Debug)]
pub enum Outcome {
    /// It is finished and its files are written.
    Done(Report),
    /// It was stopped; a checkpoint holds its state.
    Stopped(Report),
}

/// Fits the tokenizer and writes `tokenizer.json`. Returns the number of tokens.
pub fn train_tokenizer(paths: &Paths) -> Result<usize, StemError> {
    let recipe = Recipe::load(&paths.recipe)?;
    let worlds = Worlds::load(paths, &recipe)?;
    let texts = worlds.texts(&recipe, recipe.tokenizer.worlds)?;
    create_dir(&paths.model)?;
    let fitted = tokenizer::fit(&texts, recipe.tokenizer.vocab_size)
        .map_err(|error| StemError::Tokenizer { path: paths.model.join("tokenizer.json"), reason: error.to_string() })?;
    tokenizer::save(&fitted, &paths.model).map_err(io("write", &paths.model))?;
    Ok(fitted.get_vocab_size(true))
}

/// Trains the base, from random weights unless the options say otherwise; writes `config.json` and `model.safetensors` in bf16.
/// `on_step` is called after every step and can stop the run.
pub fn train_base(paths: &Paths, options: Options, on_step: &mut dyn FnMut(&Progress) -> ControlFlow<()>) -> Result<Outcome, StemError> {
    let recipe = Recipe::load(&paths.recipe)?;
    let encoder = encoder(&paths.model)?;
    let model = recipe.model.config(encoder.vocab_size(), encoder.end());
    let config = configured(&recipe.base.train, recipe.seed, paths.work.join("base"), &options)?;
    let mut source = BaseDocuments::new(Worlds::load(paths, &recipe)?, encoder, &recipe)?;
    let weights = match &options.from {
        Some(from) => {
            let shape = ModelConfig::load(from)?;
            Weights::load(from, &shape)?.deepened(&shape, &model)?
        }
        None => Weights::init(&model, recipe.seed)?,
    };
    let mut trainer = Trainer::new(model.clone(), weights, config)?;
    let report = drive(&mut trainer, &mut source, on_step)?;
    if report.stopped {
        return Ok(Outcome::Stopped(report));
    }
    trainer.weights().save(&paths.model, &model, SaveDtype::Bf16)?;
    Ok(Outcome::Done(report))
}

/// Trains one role's adapter on the base in the model directory. Writes it to `adapters/<role>`
/// (`plain-adapters/<role>` with [`Options::plain`]) in bfloat16, which halves what the repository
/// holds. `on_step` is called after every step and can stop the run.
pub fn train_adapter(
    role: Role,
    paths: &Paths,
    options: Options,
    on_step: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Outcome, StemError> {
    let mut recipe = Recipe::load(&paths.recipe)?;
    recipe.adapters.activated &= !options.plain;
    let encoder = encoder(&paths.model)?;
    let model = ModelConfig::load(&paths.model)?;
    let weights = Weights::load(&paths.model, &model)?;
    let (name, adapters) =
        if options.plain { (format!("plain-{}", role.as_str()), "plain-adapters") } else { (role.as_str().to_owned(), "adapters") };
    let mut config = configured(&recipe.adapters.train_of(role), recipe.seed + role as u64, paths.work.join(name), &options)?;
    let cue = recipe.adapters.activated.then(|| encoder.cue(role)).transpose()?;
    if let Some(lora) = &mut config.lora {
        lora.base_model = Some("models/stem".to_owned());
        lora.alora_invocation_tokens = cue;
    }
    let mut source = AdapterDocuments::new(Worlds::load(paths, &recipe)?, encoder, &recipe, role)?;
    let mut trainer = match (&options.from, &config.lora) {
        (Some(from), Some(lora)) => {
            let adapter = start_from(from, lora, &model, &paths.model)?;
            Trainer::with_adapters(model, weights, adapter, config)?
        }
        _ => Trainer::new(model, weights, config)?,
    };
    let report = drive(&mut trainer, &mut source, on_step)?;
    if report.stopped {
        return Ok(Outcome::Stopped(report));
    }
    let target = paths.model.join(adapters).join(role.as_str());
    create_dir(&target)?;
    if let Some(adapter) = trainer.adapters() {
        save_adapter(adapter, &target, &paths.model)?;
    }
    Ok(Outcome::Done(report))
}

/// The adapter in `from`, to be trained further with the settings `lora`.
fn start_from(from: &Path, lora: &LoraConfig, model: &ModelConfig, base: &Path) -> Result<LoraWeights, StemError> {
    let digest = ModelDir::open(base).and_then(|dir| dir.digest().map(str::to_owned)).map_err(unusable)?;
    let adapter = LoraWeights::load_for_base(from, model, &digest)?;
    let found = adapter.config();
    if (found.r, found.alpha, &found.target_modules) != (lora.r, lora.alpha, &lora.target_modules) {
        let shape = |lora: &LoraConfig| format!("r = {}, alpha = {} and {:?}", lora.r, lora.alpha, lora.target_modules);
        let reason = format!("it has {}, the recipe {}", shape(found), shape(lora));
        return Err(StemError::From { path: from.to_owned(), reason });
    }
    Ok(adapter.activated_by(lora.alora_invocation_tokens.clone()))
}

/// Saves the adapter with the base's digest, so that it cannot be loaded with another base.
fn save_adapter(adapter: &LoraWeights, target: &Path, model: &Path) -> Result<(), StemError> {
    let dir = ModelDir::open(model).map_err(unusable)?;
    Ok(adapter.save_for_base(target, SaveDtype::Bf16, dir.digest().map_err(unusable)?)?)
}

fn unusable(error: LoadError) -> StemError {
    StemError::Model(Box::new(error))
}

fn drive(
    trainer: &mut Trainer,
    source: &mut dyn DocumentSource,
    on_step: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Report, StemError> {
    trainer.resume_latest()?;
    let report = trainer.run(source, on_step)?;
    if report.stopped {
        trainer.checkpoint()?;
    }
    Ok(report)
}

fn configured(train: &TrainConfig, seed: u64, checkpoints: PathBuf, options: &Options) -> Result<TrainConfig, StemError> {
    if options.restart && checkpoints.exists() {
        std::fs::remove_dir_all(&checkpoints).map_err(io("remove", &checkpoints))?;
    }
    create_dir(&checkpoints)?;
    let length = options.tokens.map_or(train.length, Length::Tokens);
    Ok(TrainConfig { seed, length, checkpoint_dir: Some(checkpoints), ..train.clone() })
}

/// The encoder of a model directory's tokenizer.
pub(crate) fn encoder(model: &Path) -> Result<Encoder, StemError> {
    let path = model.join("tokenizer.json");
    let tokenizer = Tokenizer::from_file(&path).map_err(|error| StemError::Tokenizer { path, reason: error.to_string() })?;
    Ok(Encoder::new(tokenizer)?)
}

fn create_dir(path: &Path) -> Result<(), StemError> {
    std::fs::create_dir_all(path).map_err(io("create", path))
}

fn io<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(std::io::Error) -> StemError + 'a {
    move |source| StemError::Io { action, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..")
    }

    #[test]
    fn an_adapter_starts_from_another_of_its_base_and_shape() {
        let (base, recipe) = (root().join("models/stem"), Recipe::load(&root().join("models/stem/recipe/recipe.toml")).unwrap());
        let (from, model) = (base.join("adapters/plan"), ModelConfig::load(&base).unwrap());
        let cue = encoder(&base).unwrap().cue(Role::Plan).unwrap();
        let lora = recipe.adapters.train_of(Role::Plan).lora.unwrap();
        for tokens in [Some(cue), None] {
            let lora = LoraConfig { alora_invocation_tokens: tokens.clone(), ..lora.clone() };
            let adapter = start_from(&from, &lora, &model, &base).unwrap();
            assert_eq!(adapter.config().alora_invocation_tokens, tokens);
            assert_eq!(adapter.data(), LoraWeights::load(&from, &model).unwrap().data());
        }
        let narrow = LoraConfig { r: 8, ..lora.clone() };
        let refused = start_from(&from, &narrow, &model, &base).unwrap_err();
        assert!(refused.to_string().contains("it has r = 32"), "{refused}");
        let other = root().join("tests/golden/fixtures/llama2");
        let refused = start_from(&from, &lora, &model, &other).unwrap_err();
        assert!(refused.to_string().contains("another base"), "{refused}");
    }
}
