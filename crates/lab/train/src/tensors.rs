//! Conversion between tensors in the flat vector and in safetensors files.

use std::path::Path;

use autoact_checkpoint::{SaveDtype, Tensor, decode, encode};
use safetensors::SafeTensors;

use crate::error::{Result, TrainError};
use crate::layout::TensorSpec;

/// Reads every tensor of `specs` from `file` into the flat vector `out`.
pub(crate) fn read_tensors(path: &Path, file: &SafeTensors<'_>, specs: &[TensorSpec], out: &mut [f32]) -> Result<()> {
    for spec in specs {
        let view = file.tensor(&spec.name).map_err(|_| TrainError::MissingTensor { path: path.to_path_buf(), name: spec.name.clone() })?;
        if view.shape() != spec.shape() {
            return Err(TrainError::Shape {
                path: path.to_path_buf(),
                name: spec.name.clone(),
                expected: spec.shape(),
                found: view.shape().to_vec(),
            });
        }
        decode(path, &spec.name, &view, &mut out[spec.range()])?;
    }
    Ok(())
}

/// Encodes the tensors `specs` of the flat vector `data` for a file.
pub(crate) fn encode_all(specs: &[TensorSpec], data: &[f32], dtype: SaveDtype) -> Vec<Tensor> {
    specs.iter().map(|s| Tensor { name: s.name.clone(), shape: s.shape(), data: encode(&data[s.range()], dtype) }).collect()
}
