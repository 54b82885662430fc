//! Tensors by name, in the memory-mapped weight files.
//!
//! A matrix in the engine's number format stays in the mapping, so that processes share its pages.
//! Only a matrix that has to be converted takes additional memory.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use autoact_kernels::{Format, Matrix, quantize_q8_0, to_bf16};
use memmap2::Mmap;
use safetensors::tensor::{Metadata, TensorInfo};
use safetensors::{Dtype, SafeTensors};

use crate::dir::map_weights;
use crate::{LoadError, ModelDir};

/// A matrix `[rows, cols]`, memory-mapped or in memory. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Stored {
    bytes: Bytes,
    format: Format,
    rows: usize,
    cols: usize,
}

#[derive(Clone)]
enum Bytes {
    Mapped(Arc<Mmap>, Range<usize>),
    Own(Arc<Vec<u8>>),
}

impl std::fmt::Debug for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = if self.mapped() { "mapped" } else { "converted" };
        write!(f, "Stored[{}, {}] {} {place}", self.rows, self.cols, self.format)
    }
}

impl Stored {
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// Whether it is memory-mapped.
    pub(crate) fn mapped(&self) -> bool {
        matches!(self.bytes, Bytes::Mapped(..))
    }

    /// The matrix for the kernels.
    pub(crate) fn matrix(&self) -> Matrix<'_> {
        let bytes = match &self.bytes {
            Bytes::Mapped(map, range) => &map[range.clone()],
            Bytes::Own(bytes) => bytes.as_slice(),
        };
        match Matrix::new(self.format, bytes, self.rows, self.cols) {
            Ok(matrix) => matrix,
            Err(e) => unreachable!("its shape was checked when it was loaded: {e}"),
        }
    }
}

struct Shard {
    path: PathBuf,
    map: Arc<Mmap>,
    /// Number of bytes before the tensors: the header and its length.
    start: usize,
    header: Metadata,
}

/// The mapped weight files of one model.
pub(crate) struct Weights {
    dir: PathBuf,
    shards: Vec<Shard>,
    /// Index of the shard by tensor name.
    names: HashMap<String, usize>,
    /// The number format of matrices; `None`: as in the file.
    wanted: Option<Format>,
}

impl Weights {
    pub(crate) fn open(dir: &ModelDir, wanted: Option<Format>) -> Result<Self, LoadError> {
        let mut shards = Vec::new();
        let mut names = HashMap::new();
        for path in dir.shards() {
            let map = map_weights(path)?;
            let corrupt = |source| LoadError::Corrupt { path: path.clone(), bytes: map.len(), source };
            let (n, header) = SafeTensors::read_metadata(&map).map_err(corrupt)?;
            // `read_metadata` reads only the header; this also checks that all tensors are
            // complete.
            SafeTensors::deserialize(&map).map_err(corrupt)?;
            for name in header.tensors().into_keys() {
                names.insert(name, shards.len());
            }
            shards.push(Shard { path: path.clone(), map: Arc::new(map), start: n + size_of::<u64>(), header });
        }
        Ok(Self { dir: dir.path().to_owned(), shards, names, wanted })
    }

    fn find(&self, name: &str) -> Result<(&Shard, &TensorInfo, Range<usize>), LoadError> {
        let missing = || LoadError::MissingTensor { path: self.dir.clone(), tensor: name.to_owned() };
        let shard = self.names.get(name).and_then(|i| self.shards.get(*i)).ok_or_else(missing)?;
        let info = shard.header.info(name).ok_or_else(missing)?;
        let (begin, end) = info.data_offsets;
        let range = shard.start + begin..shard.start + end;
        if range.end > shard.map.len() || range.start > range.end {
            return Err(missing());
        }
        Ok((shard, info, range))
    }

    /// The vector `name` of length `n`, in f32. Norms and biases are too small for sharing to
    /// matter.
    pub(crate) fn vector(&self, name: &str, n: usize) -> Result<Vec<f32>, LoadError> {
        let (shard, info, range) = self.find(name)?;
        match (info.shape.as_slice(), floats(info.dtype, &shard.map[range])) {
            ([len], Some(values)) if *len == n => Ok(values),
            _ => Err(wrong(shard, name, info, format!("F32, F16 or BF16 [{n}]"))),
        }
    }

    /// The matrix `name` `[rows, cols]`.
    pub(crate) fn matrix(&self, name: &str, rows: usize, cols: usize) -> Result<Stored, LoadError> {
        let (shard, info, range) = self.find(name)?;
        let found = match info.dtype {
            Dtype::F32 => Some(Format::F32),
            Dtype::BF16 => Some(Format::Bf16),
            // The only block format that `autoact model quantize` writes.
            Dtype::U8 => Some(Format::Q8_0),
            Dtype::F16 => None,
            _ => return Err(wrong(shard, name, info, "F32, F16, BF16 or Q8_0 blocks".to_owned())),
        };
        let expected = match found {
            Some(Format::Q8_0) => [rows, Format::Q8_0.row_bytes(cols).unwrap_or(0)],
            _ => [rows, cols],
        };
        if info.shape != expected {
            return Err(wrong(shard, name, info, format!("{expected:?}")));
        }
        let format = self.wanted.or(found).unwrap_or(Format::F32);
        if Some(format) == found {
            return Ok(Stored { bytes: Bytes::Mapped(shard.map.clone(), range), format, rows, cols });
        }
        if format.row_bytes(cols).is_none() {
            return Err(wrong(shard, name, info, format!("rows of a multiple of 32 for `{format}`")));
        }
        let values = match found {
            Some(Format::Q8_0) => widen(Format::Q8_0, &shard.map[range], rows, cols),
            _ => floats(info.dtype, &shard.map[range]),
        };
        let values = values.ok_or_else(|| wrong(shard, name, info, format!("{expected:?}")))?;
        let bytes = Bytes::Own(Arc::new(narrow(format, &values, cols)));
        Ok(Stored { bytes, format, rows, cols })
    }
}

fn wrong(shard: &Shard, name: &str, info: &TensorInfo, expected: String) -> LoadError {
    LoadError::Tensor { path: shard.path.clone(), tensor: name.to_owned(), found: format!("{:?} {:?}", info.dtype, info.shape), expected }
}

/// The values of a tensor with a float type.
pub(crate) fn floats(dtype: Dtype, bytes: &[u8]) -> Option<Vec<f32>> {
    match dtype {
        Dtype::F32 => Some(bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()),
        Dtype::BF16 => Some(bytes.as_chunks().0.iter().map(|b| f32::from_bits(u32::from(u16::from_le_bytes(*b)) << 16)).collect()),
        Dtype::F16 => Some(bytes.as_chunks().0.iter().map(|b| half::f16::from_le_bytes(*b).to_f32()).collect()),
        _ => None,
    }
}

fn widen(format: Format, bytes: &[u8], rows: usize, cols: usize) -> Option<Vec<f32>> {
    let matrix = Matrix::new(format, bytes, rows, cols).ok()?;
    let mut values = vec![0.0; rows * cols];
    for (row, out) in values.chunks_exact_mut(cols).enumerate() {
        matrix.row_to_f32(row, out);
    }
    Some(values)
}

/// `values` as rows of `cols` numbers in `format`.
pub(crate) fn narrow(format: Format, values: &[f32], cols: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for row in values.chunks_exact(cols) {
        match format {
            Format::F32 => row.iter().for_each(|v| bytes.extend_from_slice(&v.to_le_bytes())),
            Format::Bf16 => to_bf16(row, &mut bytes),
            Format::Q8_0 => quantize_q8_0(row, &mut bytes),
        }
    }
    bytes
}
