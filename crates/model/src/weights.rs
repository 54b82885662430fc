//! Tensors by name, read from the mapped weight files and converted to the engine's type.

use std::collections::HashMap;
use std::path::PathBuf;

use candle_core::{DType, Device, Tensor};
use memmap2::Mmap;
use safetensors::tensor::Metadata;
use safetensors::{Dtype, SafeTensors};

use crate::dir::map_weights;
use crate::{LoadError, ModelDir};

struct Shard {
    path: PathBuf,
    map: Mmap,
    /// Bytes before the tensors: the header and its length.
    start: usize,
    header: Metadata,
}

/// The weight files of one model, mapped; no tensor is read before it is asked for.
pub(crate) struct Weights {
    dir: PathBuf,
    shards: Vec<Shard>,
    /// Tensor name -> shard.
    names: HashMap<String, usize>,
    dtype: DType,
    device: Device,
}

impl Weights {
    pub(crate) fn open(dir: &ModelDir, dtype: DType, device: &Device) -> Result<Self, LoadError> {
        let mut shards = Vec::new();
        let mut names = HashMap::new();
        for path in dir.shards() {
            let map = map_weights(path)?;
            let corrupt = |source| LoadError::Corrupt { path: path.clone(), bytes: map.len(), source };
            let (n, header) = SafeTensors::read_metadata(&map).map_err(corrupt)?;
            // `read_metadata` looks at the header alone; this also checks that the tensors are all there.
            SafeTensors::deserialize(&map).map_err(corrupt)?;
            for name in header.tensors().into_keys() {
                names.insert(name, shards.len());
            }
            shards.push(Shard { path: path.clone(), map, start: n + size_of::<u64>(), header });
        }
        Ok(Self { dir: dir.path().to_owned(), shards, names, dtype, device: device.clone() })
    }

    /// The tensor `name`, which must have `shape`.
    pub(crate) fn get(&self, name: &str, shape: &[usize]) -> Result<Tensor, LoadError> {
        let missing = || LoadError::MissingTensor { path: self.dir.clone(), tensor: name.to_owned() };
        let shard = self.names.get(name).and_then(|i| self.shards.get(*i)).ok_or_else(missing)?;
        let info = shard.header.info(name).ok_or_else(missing)?;
        let wrong = |expected: String| LoadError::Tensor {
            path: shard.path.clone(),
            tensor: name.to_owned(),
            found: format!("{:?} {:?}", info.dtype, info.shape),
            expected,
        };
        if info.shape != shape {
            return Err(wrong(format!("{shape:?}")));
        }
        let dtype = match info.dtype {
            Dtype::F32 => DType::F32,
            Dtype::F16 => DType::F16,
            Dtype::BF16 => DType::BF16,
            _ => return Err(wrong("F32, F16 or BF16".to_owned())),
        };
        let (begin, end) = info.data_offsets;
        let bytes = shard.map.get(shard.start + begin..shard.start + end).ok_or_else(missing)?;
        Ok(Tensor::from_raw_buffer(bytes, dtype, shape, &self.device)?.to_dtype(self.dtype)?)
    }
}
