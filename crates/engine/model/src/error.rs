use std::path::PathBuf;

use autoact_checkpoint::ConfigError;

/// What a model directory needs, for messages.
pub(crate) const FIX_DIR: &str = "a model is a Hugging Face directory with `config.json`, `tokenizer.json` and `model.safetensors`";

/// Why a model could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file is missing or cannot be read.
    #[error("cannot read `{}`; {fix}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What to do about it.
        fix: &'static str,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// A converted model cannot be written.
    #[error("cannot write `{}`", path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// A JSON file is not what Hugging Face writes.
    #[error("`{}` is not a valid {what}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// What it should be.
        what: &'static str,
        /// Where the JSON went wrong.
        #[source]
        source: serde_json::Error,
    },
    /// `config.json` describes a model this engine does not compute.
    #[error("`{}` sets `{key}` to `{found}`, expected {expected}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The configuration key.
        key: &'static str,
        /// Its value.
        found: String,
        /// What would have been accepted.
        expected: String,
    },
    /// A weight file is not a complete safetensors file.
    #[error("`{}` ({bytes} bytes) is not a complete safetensors file; download it again", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Its length.
        bytes: usize,
        /// What the format's reader said.
        #[source]
        source: safetensors::SafeTensorError,
    },
    /// A tensor the architecture needs is in none of the weight files.
    #[error("`{}` has no tensor `{tensor}`, which `config.json` promises", path.display())]
    MissingTensor {
        /// The model's directory.
        path: PathBuf,
        /// The tensor.
        tensor: String,
    },
    /// A tensor's shape or type contradicts `config.json`.
    #[error("`{}`: tensor `{tensor}` is `{found}`, expected `{expected}` from `config.json`", path.display())]
    Tensor {
        /// The weight file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// Its type and shape.
        found: String,
        /// What the configuration says.
        expected: String,
    },
    /// `tokenizer.json` cannot be used.
    #[error("`{}` cannot be used as a tokenizer: {reason}", path.display())]
    Tokenizer {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The chat template does not parse.
    #[error("the chat template in `{}` does not parse", path.display())]
    Template {
        /// The file.
        path: PathBuf,
        /// Where it went wrong.
        #[source]
        source: minijinja::Error,
    },
    /// An adapter could not be loaded or does not fit.
    #[error(transparent)]
    Adapter(#[from] autoact_lora::AdapterError),
    /// Layers that are computed together are stored differently.
    #[error("`{tensor}` is stored as `{found}`, the layers beside it as `{expected}`; say which one to compute in, or convert the model")]
    MixedFormats {
        /// The layer.
        tensor: String,
        /// How it is stored.
        found: autoact_kernels::Format,
        /// How the others are.
        expected: autoact_kernels::Format,
    },
    /// The vocabulary cannot be used for grammars.
    #[error("grammars cannot be compiled for this tokenizer: {reason}")]
    Grammars {
        /// Why.
        reason: String,
    },
    /// The model's thread could not be started.
    #[error("cannot start the model's thread")]
    Thread(#[source] std::io::Error),
}

impl From<ConfigError> for LoadError {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::Read { path, source } => Self::Read { path, fix: FIX_DIR, source },
            ConfigError::Json { path, source } => Self::Json { path, what: "model configuration", source },
            ConfigError::Unsupported { path, key, found, expected } => Self::Unsupported { path, key, found, expected },
        }
    }
}
