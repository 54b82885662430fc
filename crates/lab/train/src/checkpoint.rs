//! Checkpoints: one safetensors file with the trained parameters, the optimiser's moments and the
//! position in the run. A resumed run gives the same bits as one without interruption.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use autoact_checkpoint::{SaveDtype, Tensor, decode, encode, make_dir, parse, read, write_tensors};
use serde::{Deserialize, Serialize};

use crate::error::{Result, TrainError};
use crate::packing::{DataPosition, PackStats};

const PREFIX: &str = "checkpoint-";
const SUFFIX: &str = ".safetensors";
const META: &str = "autoact_train";

/// The metadata of a checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Meta {
    /// Number of optimiser steps done.
    pub(crate) step: u64,
    /// Number of tokens processed.
    pub(crate) tokens: u64,
    /// Exponential moving average of the loss.
    pub(crate) loss_ema: Option<f64>,
    pub(crate) position: DataPosition,
    pub(crate) stats: PackStats,
    /// The settings that must be equal on resumption: see `Trainer::fingerprint`.
    pub(crate) fingerprint: String,
}

/// A whole checkpoint.
pub(crate) struct Checkpoint {
    pub(crate) meta: Meta,
    pub(crate) params: Vec<f32>,
    pub(crate) m: Vec<f32>,
    pub(crate) v: Vec<f32>,
}

/// The file of the checkpoint of `step`.
pub(crate) fn file_name(dir: &Path, step: u64) -> PathBuf {
    dir.join(format!("{PREFIX}{step:08}{SUFFIX}"))
}

/// The checkpoints in `dir` with their steps, oldest first; empty if there is no such directory.
pub(crate) fn list(dir: &Path) -> Result<Vec<(u64, PathBuf)>> {
    if !dir.exists() {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(dir).map_err(TrainError::io("list", dir))?;
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(TrainError::io("list", dir))?;
        let name = entry.file_name();
        let step = name.to_str().and_then(|n| n.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse::<u64>().ok());
        if let Some(step) = step {
            found.push((step, entry.path()));
        }
    }
    found.sort();
    Ok(found)
}

/// Writes a checkpoint atomically, then deletes all but the newest `keep`.
pub(crate) fn save(dir: &Path, meta: &Meta, [params, m, v]: [&[f32]; 3], keep: usize) -> Result<PathBuf> {
    make_dir(dir)?;
    let path = file_name(dir, meta.step);
    let tensors: Vec<_> = [("params", params), ("m", m), ("v", v)]
        .into_iter()
        .map(|(name, data)| Tensor { name: name.to_owned(), shape: vec![data.len()], data: encode(data, SaveDtype::F32) })
        .collect();
    let json = serde_json::to_string(meta).map_err(|e| TrainError::format(&path, e))?;
    let meta = BTreeMap::from([(META.to_owned(), json)]);
    write_tensors(&path, &tensors, SaveDtype::F32, &meta)?;
    let all = list(dir)?;
    for (_, old) in all.iter().take(all.len().saturating_sub(keep.max(1))) {
        std::fs::remove_file(old).map_err(TrainError::io("delete", old))?;
    }
    Ok(path)
}

/// Reads a checkpoint of `len` trained parameters.
pub(crate) fn load(path: &Path, len: usize) -> Result<Checkpoint> {
    let bytes = read(path)?;
    let file = parse(path, &bytes)?;
    let (_, header) = safetensors::SafeTensors::read_metadata(&bytes).map_err(|e| TrainError::format(path, e))?;
    let json = header
        .metadata()
        .as_ref()
        .and_then(|m| m.get(META))
        .ok_or_else(|| TrainError::format(path, format!("not a training checkpoint: no `{META}` metadata")))?;
    let meta = serde_json::from_str(json).map_err(|e| TrainError::format(path, e))?;
    let tensor = |name: &str| {
        let view = file.tensor(name).map_err(|_| TrainError::MissingTensor { path: path.to_path_buf(), name: name.to_owned() })?;
        if view.shape() != [len] {
            return Err(TrainError::Shape {
                path: path.to_path_buf(),
                name: name.to_owned(),
                expected: vec![len],
                found: view.shape().to_vec(),
            });
        }
        let mut out = vec![0.0; len];
        decode(path, name, &view, &mut out)?;
        Ok(out)
    };
    Ok(Checkpoint { meta, params: tensor("params")?, m: tensor("m")?, v: tensor("v")? })
}
