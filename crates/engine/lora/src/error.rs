use std::path::PathBuf;

/// Why an adapter could not be read, or does not fit the base it was asked to run on.
#[derive(Debug, thiserror::Error)]
pub enum AdapterError {
    /// A file of the adapter could not be opened or read.
    #[error("cannot read `{}`; an adapter is a directory with `adapter_config.json` and `adapter_model.safetensors`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// `adapter_config.json` is not what PEFT writes.
    #[error("`{}` is not a PEFT adapter configuration", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// Where the JSON went wrong.
        #[source]
        source: serde_json::Error,
    },
    /// The configuration asks for something that changes the maths and that we do not implement.
    #[error("`{}` sets `{option}` to `{found}`, but only {supported} is supported", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The configuration key.
        option: String,
        /// Its value.
        found: String,
        /// What would have been accepted.
        supported: &'static str,
    },
    /// A pattern (`target_modules`, `rank_pattern`, `alpha_pattern`) is not a valid regular
    /// expression.
    #[error("`{}` has an invalid pattern `{pattern}`", path.display())]
    Pattern {
        /// The file.
        path: PathBuf,
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        #[source]
        source: Box<regex::Error>,
    },
    /// The weights are not a complete safetensors file.
    #[error("`{}` ({bytes} bytes) is not a complete safetensors file; copy it again", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Its length.
        bytes: usize,
        /// What the format's reader said.
        #[source]
        source: safetensors::SafeTensorError,
    },
    /// A tensor is in the file that no target module explains.
    #[error("`{}` holds the tensor `{tensor}`, expected {expected}", path.display())]
    UnknownTensor {
        /// The file.
        path: PathBuf,
        /// The tensor's name.
        tensor: String,
        /// What its name or type should have been.
        expected: String,
    },
    /// A target module lacks one or both halves.
    #[error("`{}` has no tensor `{tensor}`, though the configuration targets `{module}`", path.display())]
    MissingTensor {
        /// The file.
        path: PathBuf,
        /// The missing tensor.
        tensor: String,
        /// The module that needs it.
        module: String,
    },
    /// A tensor's shape contradicts the configuration or its other half.
    #[error("`{}`: `{tensor}` has shape `{found:?}`, expected {expected}", path.display())]
    Shape {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// Its shape in the file.
        found: Vec<usize>,
        /// What was expected.
        expected: String,
    },
    /// A tensor cannot be decoded, or a file cannot be written.
    #[error(transparent)]
    File(#[from] autoact_checkpoint::FileError),
    /// The adapter was made for another base model.
    #[error("adapter `{adapter}` does not fit base `{base}`: {what}: the adapter has `{found}`, the base has `{expected}`")]
    BaseMismatch {
        /// The adapter: its directory.
        adapter: String,
        /// The base: its name.
        base: String,
        /// Which property differs.
        what: String,
        /// The adapter's side.
        found: String,
        /// The base's side.
        expected: String,
    },
}
