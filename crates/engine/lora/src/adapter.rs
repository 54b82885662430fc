//! `adapter_model.safetensors`: the A and B of every adapted layer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use autoact_checkpoint::{self as checkpoint, SaveDtype, Tensor};
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;
use sha2::{Digest, Sha256};

use crate::config::Matcher;
use crate::{AdapterConfig, AdapterError};

/// File name of the configuration inside an adapter's directory.
pub const CONFIG_FILE: &str = "adapter_config.json";
/// File name of the weights inside an adapter's directory.
pub const WEIGHTS_FILE: &str = "adapter_model.safetensors";
/// Optional key in the safetensors metadata: SHA-256 digest (hex) of the `model.safetensors` on
/// which the adapter was trained.
pub const BASE_DIGEST_KEY: &str = "autoact.base_sha256";
/// The prefix that PEFT adds to the base model's module names.
const PREFIX: &str = "base_model.model.";

/// A row-major f32 matrix.
#[derive(Clone, PartialEq)]
pub struct Matrix {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// `rows * cols` values, row after row.
    pub data: Vec<f32>,
}

impl std::fmt::Debug for Matrix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Matrix[{}, {}]", self.rows, self.cols)
    }
}

/// One of the two factors of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Factor {
    /// A, `[r, in]`.
    A,
    /// B, `[out, r]`.
    B,
}

/// One layer's update: `y += scale * B (A x)` (<https://arxiv.org/abs/2106.09685>).
#[derive(Debug, Clone, PartialEq)]
pub struct LoraPair {
    /// A, `[r, in]`.
    pub a: Matrix,
    /// B, `[out, r]`.
    pub b: Matrix,
    /// α/r, or α/√r with rslora.
    pub scale: f32,
}

/// A PEFT LoRA adapter, checked against its own configuration.
#[derive(Debug, Clone)]
pub struct Adapter {
    /// Its directory.
    pub path: PathBuf,
    /// `adapter_config.json`.
    pub config: AdapterConfig,
    /// Updates by the base's module name, such as `model.layers.0.self_attn.q_proj`.
    pub modules: BTreeMap<String, LoraPair>,
    /// SHA-256 digest (hex) of `adapter_config.json` followed by `adapter_model.safetensors`.
    pub digest: String,
    /// SHA-256 digest (hex) of the base's weights, if the file has it under [`BASE_DIGEST_KEY`].
    pub base_digest: Option<String>,
}

/// The properties of a base model that decide whether an adapter fits.
#[derive(Debug, Clone, Default)]
pub struct BaseLayout {
    /// The base's name, for messages.
    pub name: String,
    /// SHA-256 digest (hex) of its weights, if known.
    pub digest: Option<String>,
    /// Numbers of inputs and outputs of every linear layer, by module name.
    pub linears: BTreeMap<String, (usize, usize)>,
}

/// Writes `adapter_config.json` and `adapter_model.safetensors` to `dir`, which is created if
/// necessary.
///
/// `tensors` have PEFT's names, see [`tensor_name`]. With `base_digest`, the SHA-256 digest (hex)
/// of the base's weights, a loader can refuse another base. The same adapter gives the same bytes.
///
/// # Errors
/// A tensor's size does not fit its shape, or a file cannot be written.
pub fn save(
    dir: &Path,
    config: &AdapterConfig,
    tensors: &[Tensor],
    dtype: SaveDtype,
    base_digest: Option<&str>,
) -> Result<(), AdapterError> {
    checkpoint::make_dir(dir)?;
    let notes = [("format", "pt")].into_iter().chain(base_digest.map(|digest| (BASE_DIGEST_KEY, digest)));
    let metadata = notes.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    checkpoint::write_tensors(&dir.join(WEIGHTS_FILE), tensors, dtype, &metadata)?;
    checkpoint::write_whole(&dir.join(CONFIG_FILE), format!("{:#}\n", config.to_json()).as_bytes())?;
    Ok(())
}

impl Adapter {
    /// Reads `dir/adapter_config.json` and `dir/adapter_model.safetensors`.
    pub fn load(dir: impl AsRef<Path>) -> Result<Self, AdapterError> {
        let dir = dir.as_ref();
        let read = |path: &Path| std::fs::read(path).map_err(|source| AdapterError::Read { path: path.to_owned(), source });
        let config_path = dir.join(CONFIG_FILE);
        let weights_path = dir.join(WEIGHTS_FILE);
        let config_bytes = read(&config_path)?;
        let bytes = read(&weights_path)?;
        let config = AdapterConfig::parse(&String::from_utf8_lossy(&config_bytes), &config_path)?;
        let matcher = Matcher::new(&config, &config_path)?;
        let corrupt = |source| AdapterError::Corrupt { path: weights_path.clone(), bytes: bytes.len(), source };
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(corrupt)?;
        let base_digest = header.metadata().as_ref().and_then(|m| m.get(BASE_DIGEST_KEY)).cloned();
        let tensors = SafeTensors::deserialize(&bytes).map_err(corrupt)?;

        let mut halves: BTreeMap<String, [Option<Matrix>; 2]> = BTreeMap::new();
        for (name, view) in tensors.iter() {
            let (module, factor) =
                split_name(name).filter(|(module, _)| matcher.targets(module)).ok_or_else(|| AdapterError::UnknownTensor {
                    path: weights_path.clone(),
                    tensor: name.to_owned(),
                    expected: format!("`{PREFIX}<module>.lora_A.weight` or `.lora_B.weight` of a module in `target_modules`"),
                })?;
            halves.entry(module.to_owned()).or_default()[factor as usize] = Some(matrix(&weights_path, name, &view)?);
        }
        let found: Vec<&str> = halves.keys().map(String::as_str).collect();
        let missing = |module: &str, factor: Factor| AdapterError::MissingTensor {
            path: weights_path.clone(),
            tensor: tensor_name(module, factor),
            module: module.to_owned(),
        };
        if let Some(name) = matcher.unmatched(&found).first() {
            return Err(missing(name, Factor::A));
        }
        if found.is_empty() {
            return Err(missing("any module", Factor::A));
        }
        let mut modules = BTreeMap::new();
        for (module, [a, b]) in halves {
            let a = a.ok_or_else(|| missing(&module, Factor::A))?;
            let b = b.ok_or_else(|| missing(&module, Factor::B))?;
            let rank = matcher.rank(&module);
            for (factor, m, found) in [(Factor::A, &a, a.rows), (Factor::B, &b, b.cols)] {
                if found != rank {
                    return Err(AdapterError::Shape {
                        path: weights_path,
                        tensor: tensor_name(&module, factor),
                        found: vec![m.rows, m.cols],
                        expected: format!("rank `{rank}` from the configuration"),
                    });
                }
            }
            let scale = matcher.scale(&module) as f32;
            modules.insert(module, LoraPair { a, b, scale });
        }
        let mut sha = Sha256::new();
        sha.update(&config_bytes);
        sha.update(&bytes);
        let digest = format!("{:x}", sha.finalize());
        Ok(Self { path: dir.to_owned(), config, modules, digest, base_digest })
    }

    /// The factor with this name in the file, see [`tensor_name`].
    pub fn tensor(&self, name: &str) -> Option<&Matrix> {
        let (module, factor) = split_name(name)?;
        let pair = self.modules.get(module)?;
        Some(match factor {
            Factor::A => &pair.a,
            Factor::B => &pair.b,
        })
    }

    /// Checks that the adapter belongs to `base`: equal digests if both are known, existing layers,
    /// matching shapes, and an update for every targeted layer.
    pub fn check_base(&self, base: &BaseLayout) -> Result<(), AdapterError> {
        let mismatch = |what: String, found: String, expected: String| AdapterError::BaseMismatch {
            adapter: self.path.display().to_string(),
            base: base.name.clone(),
            what,
            found,
            expected,
        };
        for (module, pair) in &self.modules {
            let found = (pair.a.cols, pair.b.rows);
            match base.linears.get(module) {
                None => {
                    return Err(mismatch(format!("layer `{module}`"), format!("{} -> {}", found.0, found.1), "no such layer".to_owned()));
                }
                Some(expected) if *expected != found => {
                    return Err(mismatch(
                        format!("size of `{module}`"),
                        format!("{} -> {}", found.0, found.1),
                        format!("{} -> {}", expected.0, expected.1),
                    ));
                }
                Some(_) => {}
            }
        }
        let matcher = Matcher::new(&self.config, &self.path.join(CONFIG_FILE))?;
        for module in base.linears.keys() {
            if matcher.targets(module) && !self.modules.contains_key(module) {
                return Err(mismatch("targeted layers".to_owned(), "no update".to_owned(), module.clone()));
            }
        }
        if let (Some(found), Some(expected)) = (&self.base_digest, &base.digest)
            && found != expected
        {
            return Err(mismatch("sha256 of the base's weights".to_owned(), found.clone(), expected.clone()));
        }
        Ok(())
    }
}

/// PEFT's name for a factor of the update of `module`, such as `model.layers.0.self_attn.q_proj`.
pub fn tensor_name(module: &str, factor: Factor) -> String {
    format!("{PREFIX}{module}.lora_{factor:?}.weight")
}

/// `base_model.model.<module>.lora_A.weight` -> (`<module>`, A)
fn split_name(name: &str) -> Option<(&str, Factor)> {
    let rest = name.strip_prefix(PREFIX)?;
    if let Some(module) = rest.strip_suffix(".lora_A.weight") {
        return Some((module, Factor::A));
    }
    rest.strip_suffix(".lora_B.weight").map(|module| (module, Factor::B))
}

fn matrix(path: &Path, name: &str, view: &TensorView<'_>) -> Result<Matrix, AdapterError> {
    let [rows, cols] = *view.shape() else {
        return Err(AdapterError::Shape {
            path: path.to_owned(),
            tensor: name.to_owned(),
            found: view.shape().to_vec(),
            expected: "two dimensions".to_owned(),
        });
    };
    let mut data = vec![0.0; rows * cols];
    checkpoint::decode(path, name, view, &mut data)?;
    Ok(Matrix { rows, cols, data })
}

#[cfg(test)]
mod tests {
    use super::*;

    const Q: &str = "model.layers.0.self_attn.q_proj";

    /// An adapter of rank 2 on one layer with 3 inputs and 4 outputs, without the given factors.
    fn tensors(without: &[Factor]) -> Vec<Tensor> {
        let all = [(Factor::A, [2, 3]), (Factor::B, [4, 2])].into_iter().filter(|(factor, _)| !without.contains(factor));
        all.map(|(factor, shape)| {
            let data: Vec<f32> = (0..shape[0] * shape[1]).map(|i| i as f32 - 2.5).collect();
            Tensor { name: tensor_name(Q, factor), shape: shape.to_vec(), data: checkpoint::encode(&data, SaveDtype::F32) }
        })
        .collect()
    }

    #[test]
    fn what_is_saved_is_loaded() {
        let dir = tempfile::tempdir().unwrap();
        let config = AdapterConfig::new(2, 8.0, vec!["q_proj".to_owned()]);
        save(dir.path(), &config, &tensors(&[]), SaveDtype::F32, Some("abc")).unwrap();
        let adapter = Adapter::load(dir.path()).unwrap();
        assert_eq!((&adapter.config, adapter.base_digest.as_deref()), (&config, Some("abc")));
        let pair = &adapter.modules[Q];
        assert_eq!((pair.a.rows, pair.a.cols, pair.b.rows, pair.b.cols, pair.scale), (2, 3, 4, 2, 4.0));
        assert_eq!(adapter.tensor(&tensor_name(Q, Factor::B)), Some(&pair.b));
        assert_eq!(pair.b.data, [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5, 4.5]);
        assert_eq!(adapter.tensor("model.layers.0.self_attn.q_proj.weight"), None);
    }

    #[test]
    fn half_an_update_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let config = AdapterConfig::new(2, 8.0, vec!["q_proj".to_owned()]);
        save(dir.path(), &config, &tensors(&[Factor::B]), SaveDtype::F32, None).unwrap();
        let error = Adapter::load(dir.path()).unwrap_err();
        assert!(matches!(&error, AdapterError::MissingTensor { tensor, .. } if *tensor == tensor_name(Q, Factor::B)), "{error}");
    }
}
