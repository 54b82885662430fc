//! Conversion of a model to another number format, in which the engine can use it memory-mapped.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use autoact_kernels::Format;
use safetensors::tensor::{TensorView, View};
use safetensors::{Dtype, SafeTensors};

use crate::dir::{SOURCE_DIGEST_KEY, map_weights};
use crate::weights::{floats, narrow};
use crate::{LoadError, ModelDir};

/// The result of a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conversion {
    /// Bytes of all weight files before.
    pub before: u64,
    /// Bytes of the weight file after.
    pub after: u64,
    /// Number of matrices that were converted.
    pub matrices: usize,
    /// Number of matrices left unchanged, because their rows are not a multiple of a block.
    pub left: usize,
}

/// A tensor that is converted when it is written, so that only one at a time is in memory.
struct Converted<'a> {
    view: TensorView<'a>,
    /// The new format; `None`: unchanged.
    format: Option<Format>,
    shape: Vec<usize>,
}

impl View for Converted<'_> {
    fn dtype(&self) -> Dtype {
        match self.format {
            None => self.view.dtype(),
            Some(Format::F32) => Dtype::F32,
            Some(Format::Bf16) => Dtype::BF16,
            Some(Format::Q8_0) => Dtype::U8,
        }
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        match (self.format, floats(self.view.dtype(), self.view.data())) {
            (Some(format), Some(values)) => {
                let cols = self.view.shape().last().copied().unwrap_or(1);
                Cow::Owned(narrow(format, &values, cols))
            }
            _ => Cow::Borrowed(self.view.data()),
        }
    }

    fn data_len(&self) -> usize {
        match (self.format, self.view.shape()) {
            (Some(format), [rows, cols]) => rows * format.row_bytes(*cols).unwrap_or(0),
            _ => self.view.data().len(),
        }
    }
}

/// Writes the model in `from` to the directory `to` with its matrices in `format`:
/// `model.safetensors` and copies of the small files.
///
/// Q8_0 blocks (GGUF: 32 values as an f16 scale and 32 signed bytes) are stored as U8 tensors of
/// the rows' bytes. The metadata contains the digest of the original weights, so that adapters
/// trained on those can be loaded.
pub fn convert(from: &ModelDir, to: &Path, format: Format) -> Result<Conversion, LoadError> {
    let write = |path: &Path| {
        let path = path.to_owned();
        move |source: std::io::Error| LoadError::Write { path, source }
    };
    std::fs::create_dir_all(to).map_err(write(to))?;
    let maps = from.shards().iter().map(|path| Ok((path, map_weights(path)?))).collect::<Result<Vec<_>, LoadError>>()?;
    let mut tensors = Vec::new();
    let mut done = Conversion { before: 0, after: 0, matrices: 0, left: 0 };
    for (path, map) in &maps {
        done.before += map.len() as u64;
        let corrupt = |source| LoadError::Corrupt { path: (*path).clone(), bytes: map.len(), source };
        for (name, view) in SafeTensors::deserialize(map).map_err(corrupt)?.tensors() {
            let shape = view.shape().to_vec();
            let plain = matches!(view.dtype(), Dtype::F32 | Dtype::F16 | Dtype::BF16);
            let row = if let ([_, cols], true) = (shape.as_slice(), plain) { format.row_bytes(*cols) } else { None };
            match (row, shape.as_slice()) {
                (Some(bytes), [rows, cols]) => {
                    done.matrices += 1;
                    let shape = vec![*rows, if format == Format::Q8_0 { bytes } else { *cols }];
                    tensors.push((name, Converted { view, format: Some(format), shape }));
                }
                _ => {
                    done.left += usize::from(shape.len() == 2);
                    tensors.push((name, Converted { view, format: None, shape }));
                }
            }
        }
    }
    let metadata = HashMap::from([
        ("format".to_owned(), "pt".to_owned()),
        ("autoact.weights".to_owned(), format.to_string()),
        (SOURCE_DIGEST_KEY.to_owned(), from.base_digest()?.to_owned()),
    ]);
    // Written under a temporary name and renamed, so that a reader never sees an incomplete file
    // and an interrupted conversion keeps the old one.
    let (part, whole) = (to.join("model.safetensors.part"), to.join("model.safetensors"));
    safetensors::serialize_to_file(tensors, Some(metadata), &part)
        .map_err(|e| LoadError::Write { path: part.clone(), source: std::io::Error::other(e) })?;
    for file in ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"] {
        let source = from.path().join(file);
        if source.is_file() {
            std::fs::copy(&source, to.join(file)).map_err(write(&to.join(file)))?;
        }
    }
    std::fs::rename(&part, &whole).map_err(write(&whole))?;
    done.after = std::fs::metadata(&whole).map_err(write(&whole))?.len();
    Ok(done)
}
