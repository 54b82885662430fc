//! Model directories in the Hugging Face layout.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use autoact_base::progress::Progress;
use autoact_checkpoint::TokenIds;
use safetensors::SafeTensors;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::error::FIX_DIR;
use crate::{ChatTemplate, Digests, LoadError, ModelConfig, Tokenizer, map};

const GENERATION: &str = "generation_config.json";
const TOKENIZER: &str = "tokenizer.json";
const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
const TEMPLATE: &str = "chat_template.jinja";
const WEIGHTS: &str = "model.safetensors";
/// Key in the safetensors metadata of converted weights: SHA-256 digest (hex) of the originals.
pub(crate) const SOURCE_DIGEST_KEY: &str = "autoact.source_sha256";
const INDEX: &str = "model.safetensors.index.json";

pub(crate) const FIX_WEIGHTS: &str = "put `model.safetensors`, or the shards and `model.safetensors.index.json`, beside `config.json`";

/// A Hugging Face model directory. The small files are read and checked; the weights stay on disk.
#[derive(Debug)]
pub struct ModelDir {
    path: PathBuf,
    name: String,
    config: ModelConfig,
    eos: Vec<u32>,
    tokenizer_config: TokenizerConfig,
    template: Option<(PathBuf, String)>,
    shards: Vec<PathBuf>,
    digests: Digests,
    progress: Progress,
    digest: OnceLock<String>,
    base_digest: OnceLock<String>,
}

/// The fields of `tokenizer_config.json` that are used.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TokenizerConfig {
    pub(crate) bos_token: Option<SpecialToken>,
    pub(crate) eos_token: Option<SpecialToken>,
    pub(crate) add_bos_token: Option<bool>,
    chat_template: Option<TemplateField>,
}

/// A special token: its text, or an object that holds it.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum SpecialToken {
    Text(String),
    Object { content: String },
}

impl SpecialToken {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Object { content: text } => text,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum TemplateField {
    One(String),
    Named(Vec<NamedTemplate>),
}

#[derive(Debug, Deserialize)]
struct NamedTemplate {
    name: String,
    template: String,
}

#[derive(Deserialize)]
struct Generation {
    eos_token_id: Option<TokenIds>,
}

#[derive(Deserialize)]
struct Index {
    weight_map: std::collections::BTreeMap<String, String>,
}

impl ModelDir {
    /// Reads all files except the weights and `tokenizer.json`. Errors name the file and the fix.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        let path = path.as_ref().to_owned();
        let config = ModelConfig::load(&path)?;
        let mut eos = config.eos.clone();
        if let Some(generation) = read_json::<Generation>(&path.join(GENERATION), "generation configuration")? {
            for id in generation.eos_token_id.map(TokenIds::into_vec).unwrap_or_default() {
                if !eos.contains(&id) {
                    eos.push(id);
                }
            }
        }
        let tokenizer_config_path = path.join(TOKENIZER_CONFIG);
        let tokenizer_config = read_json::<TokenizerConfig>(&tokenizer_config_path, "tokenizer configuration")?.unwrap_or_default();
        let template_path = path.join(TEMPLATE);
        let template = if template_path.is_file() {
            let text = read(&template_path, FIX_DIR)?;
            Some((template_path, text))
        } else {
            tokenizer_config.chat_template.as_ref().and_then(|field| match field {
                TemplateField::One(text) => Some((tokenizer_config_path, text.clone())),
                TemplateField::Named(all) => all.iter().find(|t| t.name == "default").map(|t| (tokenizer_config_path, t.template.clone())),
            })
        };
        let shards = shards(&path)?;
        let name = path.canonicalize().unwrap_or_else(|_| path.clone());
        let name = name.file_name().map_or_else(|| "model".to_owned(), |n| n.to_string_lossy().into_owned());
        let (digests, progress) = (Digests::forgotten(), Progress::default());
        let (digest, base_digest) = (OnceLock::new(), OnceLock::new());
        Ok(Self { path, name, config, eos, tokenizer_config, template, shards, digests, progress, digest, base_digest })
    }

    /// The same, with digests of weights remembered in `digests` and their computation counted by
    /// `progress`. Otherwise each [`ModelDir`] reads all weights for its digest.
    #[must_use]
    pub fn with_digests(self, digests: Digests, progress: Progress) -> Self {
        Self { digests, progress, ..self }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory's own name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `config.json`, checked.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The weight files: one, or the shards in order of their names.
    pub fn shards(&self) -> &[PathBuf] {
        &self.shards
    }

    /// Total size of the weight files in bytes.
    pub fn weight_bytes(&self) -> u64 {
        self.shards.iter().filter_map(|shard| shard.metadata().ok()).map(|file| file.len()).sum()
    }

    /// Loads `tokenizer.json`.
    pub fn tokenizer(&self) -> Result<Tokenizer, LoadError> {
        let path = self.path.join(TOKENIZER);
        let text = read(&path, FIX_DIR)?;
        Tokenizer::new(&text, &path, &self.tokenizer_config, &self.config, &self.eos)
    }

    /// The chat template; `None` if the model has none.
    pub fn chat_template(&self) -> Result<Option<ChatTemplate>, LoadError> {
        let Some((path, source)) = &self.template else { return Ok(None) };
        let text = |t: &Option<SpecialToken>| t.as_ref().map(|t| t.text().to_owned()).unwrap_or_default();
        let (bos, eos) = (text(&self.tokenizer_config.bos_token), text(&self.tokenizer_config.eos_token));
        ChatTemplate::new(source.clone(), bos, eos).map(Some).map_err(|source| LoadError::Template { path: path.clone(), source })
    }

    /// SHA-256 digest (hex) of `model.safetensors`; for a sharded model, of the concatenated
    /// digests of its shards. The first call reads all weights, unless their digests are remembered
    /// ([`with_digests`](Self::with_digests)). It can take minutes.
    pub fn digest(&self) -> Result<&str, LoadError> {
        if let Some(digest) = self.digest.get() {
            return Ok(digest);
        }
        let each = self.digests.of_files(&self.shards, &self.progress)?;
        let digest = match each.as_slice() {
            [one] => one.clone(),
            many => format!("{:x}", Sha256::digest(many.concat())),
        };
        Ok(self.digest.get_or_init(|| digest))
    }

    /// The digest that adapters name as their base: that of the original weights if these were
    /// converted, else their own.
    pub fn base_digest(&self) -> Result<&str, LoadError> {
        if let Some(digest) = self.base_digest.get() {
            return Ok(digest);
        }
        let mut found = None;
        if let [path] = self.shards.as_slice() {
            let map = map_weights(path)?;
            let corrupt = |source| LoadError::Corrupt { path: path.clone(), bytes: map.len(), source };
            let (_, header) = SafeTensors::read_metadata(&map).map_err(corrupt)?;
            found = header.metadata().as_ref().and_then(|m| m.get(SOURCE_DIGEST_KEY)).cloned();
        }
        let digest = match found {
            Some(digest) => digest,
            None => self.digest()?.to_owned(),
        };
        Ok(self.base_digest.get_or_init(|| digest))
    }
}

pub(crate) fn map_weights(path: &Path) -> Result<memmap2::Mmap, LoadError> {
    map::map(path, FIX_WEIGHTS)
}

fn read(path: &Path, fix: &'static str) -> Result<String, LoadError> {
    std::fs::read_to_string(path).map_err(|source| LoadError::Read { path: path.to_owned(), fix, source })
}

/// Parses a JSON file; `None` if it does not exist.
fn read_json<T: DeserializeOwned>(path: &Path, what: &'static str) -> Result<Option<T>, LoadError> {
    if !path.is_file() {
        return Ok(None);
    }
    let text = read(path, FIX_DIR)?;
    serde_json::from_str(&text).map(Some).map_err(|source| LoadError::Json { path: path.to_owned(), what, source })
}

fn shards(dir: &Path) -> Result<Vec<PathBuf>, LoadError> {
    let single = dir.join(WEIGHTS);
    if single.is_file() {
        return Ok(vec![single]);
    }
    match read_json::<Index>(&dir.join(INDEX), "weight index")? {
        Some(index) => {
            let mut names: Vec<&String> = index.weight_map.values().collect();
            names.sort();
            names.dedup();
            Ok(names.into_iter().map(|name| dir.join(name)).collect())
        }
        None => Err(LoadError::Read { path: single, fix: FIX_WEIGHTS, source: std::io::Error::from(std::io::ErrorKind::NotFound) }),
    }
}
