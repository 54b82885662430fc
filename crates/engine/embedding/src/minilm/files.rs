//! The files of a model's directory, as sentence-transformers writes them.

use std::path::Path;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::EmbedError;

/// Word pieces that sentence-transformers reads of a text, if the model's files say nothing else.
const DEFAULT_LENGTH: usize = 256;
/// The marks of the beginning and of the end, and a piece between them.
const LEAST_LENGTH: usize = 3;
/// More than any size of a BERT, and its square is no overflow.
const LARGEST: usize = 1 << 24;
/// Characters of the digest in the name.
const SHOWN_DIGEST: usize = 12;

pub(super) const REFETCH: &str = "fetch the model again with `scripts/fetch-embedder`";
const OTHER: &str = "use all-MiniLM-L6-v2 (`scripts/fetch-embedder`), or another BERT whose vectors are the mean over its pieces";

/// What is read from a model's directory.
pub(crate) struct Files {
    pub(crate) config: Config,
    /// Word pieces that are read of a text.
    pub(crate) length: usize,
    pub(crate) tokenizer: Vec<u8>,
    pub(crate) weights: Vec<u8>,
    /// The digest of all that a vector depends on.
    pub(crate) digest: String,
}

/// `config.json`.
#[derive(Deserialize)]
pub(crate) struct Config {
    pub(crate) vocab_size: usize,
    pub(crate) hidden_size: usize,
    pub(crate) num_hidden_layers: usize,
    pub(crate) num_attention_heads: usize,
    pub(crate) intermediate_size: usize,
    pub(crate) max_position_embeddings: usize,
    pub(crate) type_vocab_size: usize,
    pub(crate) layer_norm_eps: f32,
    hidden_act: String,
    position_embedding_type: Option<String>,
}

/// `sentence_bert_config.json`.
#[derive(Deserialize)]
struct Sentences {
    max_seq_length: Option<usize>,
}

/// What every `config.json` has.
#[derive(Deserialize)]
struct Kind {
    model_type: Option<String>,
}

impl Files {
    pub(crate) fn read(dir: &Path) -> Result<Files, EmbedError> {
        let path = dir.join("config.json");
        let json = read(&path)?;
        let config = config(&path, &json)?;
        let length = length(dir, config.max_position_embeddings)?;
        pooling(dir)?;
        let tokenizer = read(&dir.join("tokenizer.json"))?;
        let weights = read(&dir.join("model.safetensors"))?;
        let mut digest = Sha256::new();
        for part in [json.as_slice(), length.to_string().as_bytes(), &tokenizer, &weights] {
            // each with its length, so that nothing can move from one to the next
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        let mut digest: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        digest.truncate(SHOWN_DIGEST);
        Ok(Files { config, length, tokenizer, weights, digest })
    }
}

fn config(path: &Path, json: &[u8]) -> Result<Config, EmbedError> {
    let broken = |error: serde_json::Error| model(path, format!("not the configuration of a BERT: {error}"), OTHER);
    let Kind { model_type } = serde_json::from_slice(json).map_err(broken)?;
    if let Some(other) = model_type.filter(|kind| kind != "bert") {
        return Err(model(path, format!("its `model_type` is `{other}`, expected `bert`"), OTHER));
    }
    let config: Config = serde_json::from_slice(json).map_err(broken)?;
    for (key, found, expected) in
        [("hidden_act", Some(&config.hidden_act), "gelu"), ("position_embedding_type", config.position_embedding_type.as_ref(), "absolute")]
    {
        if let Some(found) = found.filter(|found| *found != expected) {
            return Err(model(path, format!("its `{key}` is `{found}`, expected `{expected}`"), OTHER));
        }
    }
    let (width, heads) = (config.hidden_size, config.num_attention_heads);
    let sizes = [width, heads, config.intermediate_size, config.vocab_size, config.type_vocab_size];
    if sizes.contains(&0) || sizes.iter().any(|size| *size > LARGEST) || !width.is_multiple_of(heads) {
        let reason = format!("its sizes {sizes:?} are not those of a model, or `hidden_size` is no multiple of `num_attention_heads`");
        return Err(model(path, reason, REFETCH));
    }
    Ok(config)
}

/// How many pieces of a text are read.
fn length(dir: &Path, positions: usize) -> Result<usize, EmbedError> {
    let path = dir.join("sentence_bert_config.json");
    let said = if path.exists() {
        let said: Sentences = parse(&path)?;
        said.max_seq_length
    } else {
        None
    };
    let length = said.unwrap_or(DEFAULT_LENGTH.min(positions));
    if !(LEAST_LENGTH..=positions).contains(&length) {
        let reason = format!("`max_seq_length` is {length}, expected {LEAST_LENGTH} to {positions}, the positions of the model");
        return Err(model(&path, reason, REFETCH));
    }
    Ok(length)
}

/// Vectors are the mean over the pieces; a model that was trained for something else is refused.
fn pooling(dir: &Path) -> Result<(), EmbedError> {
    let path = dir.join("1_Pooling").join("config.json");
    if !path.exists() {
        return Ok(());
    }
    let modes: serde_json::Map<String, serde_json::Value> = parse(&path)?;
    let on = |(name, value): (&String, &serde_json::Value)| (*value == true && name.starts_with("pooling_mode_")).then(|| name.clone());
    let modes: Vec<String> = modes.iter().filter_map(on).collect();
    if modes != ["pooling_mode_mean_tokens"] {
        return Err(model(&path, format!("it has `{}`, expected `pooling_mode_mean_tokens` alone", modes.join("`, `")), OTHER));
    }
    Ok(())
}

fn parse<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T, EmbedError> {
    serde_json::from_slice(&read(path)?).map_err(|error| model(path, format!("not the expected JSON: {error}"), REFETCH))
}

fn read(path: &Path) -> Result<Vec<u8>, EmbedError> {
    std::fs::read(path).map_err(|source| EmbedError::Read { path: path.to_owned(), source })
}

/// The error of a file that does not fit.
pub(super) fn model(path: &Path, reason: String, fix: &'static str) -> EmbedError {
    EmbedError::Model { path: path.to_owned(), reason, fix }
}
