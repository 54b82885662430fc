//! Reading and writing safetensors files; writes are atomic.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use half::{bf16, f16};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use crate::error::{Result, TrainError};
use crate::layout::TensorSpec;

/// The number format of saved weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaveDtype {
    /// 32-bit floats.
    F32,
    /// bfloat16: half the size.
    Bf16,
}

impl SaveDtype {
    /// The name that Hugging Face's `torch_dtype` uses.
    #[must_use]
    pub fn torch_name(self) -> &'static str {
        match self {
            Self::F32 => "float32",
            Self::Bf16 => "bfloat16",
        }
    }
}

/// Reads a whole file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(TrainError::io("read", path))
}

/// Parses a safetensors buffer.
pub(crate) fn parse<'a>(path: &Path, bytes: &'a [u8]) -> Result<SafeTensors<'a>> {
    SafeTensors::deserialize(bytes).map_err(|e| TrainError::format(path, format!("not a whole safetensors file: {e}")))
}

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

/// Converts one tensor to f32.
pub(crate) fn decode(path: &Path, name: &str, view: &TensorView<'_>, out: &mut [f32]) -> Result<()> {
    let data = view.data();
    let width = match view.dtype() {
        Dtype::F32 => 4,
        Dtype::BF16 | Dtype::F16 => 2,
        other => {
            let m = format!("tensor `{name}` is {other:?}, expected F32, BF16 or F16");
            return Err(TrainError::format(path, m));
        }
    };
    if data.len() != out.len() * width {
        let m = format!("tensor `{name}` has {} bytes, expected {}", data.len(), out.len() * width);
        return Err(TrainError::format(path, m));
    }
    match view.dtype() {
        Dtype::F32 => {
            for (o, b) in out.iter_mut().zip(data.chunks_exact(4)) {
                *o = f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
            }
        }
        Dtype::BF16 => {
            for (o, b) in out.iter_mut().zip(data.chunks_exact(2)) {
                *o = bf16::from_le_bytes([b[0], b[1]]).to_f32();
            }
        }
        _ => {
            for (o, b) in out.iter_mut().zip(data.chunks_exact(2)) {
                *o = f16::from_le_bytes([b[0], b[1]]).to_f32();
            }
        }
    }
    Ok(())
}

/// Converts f32 to the bytes of `dtype`.
pub(crate) fn encode(data: &[f32], dtype: SaveDtype) -> Vec<u8> {
    match dtype {
        SaveDtype::F32 => data.iter().flat_map(|v| v.to_le_bytes()).collect(),
        SaveDtype::Bf16 => data.iter().flat_map(|v| bf16::from_f32(*v).to_le_bytes()).collect(),
    }
}

/// Writes named slices of the flat vector `data` as a safetensors file, with `notes` in its metadata.
pub(crate) fn write_tensors(path: &Path, specs: &[TensorSpec], data: &[f32], dtype: SaveDtype, notes: &[(&str, &str)]) -> Result<()> {
    let encoded: Vec<(String, Vec<usize>, Vec<u8>)> =
        specs.iter().map(|s| (s.name.clone(), s.shape(), encode(&data[s.range()], dtype))).collect();
    let st = match dtype {
        SaveDtype::F32 => Dtype::F32,
        SaveDtype::Bf16 => Dtype::BF16,
    };
    let notes = notes.iter().chain([&("format", "pt")]);
    let meta = notes.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    write_safetensors(path, &encoded, st, &meta)
}

/// Writes encoded tensors and metadata as a safetensors file.
pub(crate) fn write_safetensors(
    path: &Path,
    tensors: &[(String, Vec<usize>, Vec<u8>)],
    dtype: Dtype,
    meta: &BTreeMap<String, String>,
) -> Result<()> {
    let mut views = Vec::with_capacity(tensors.len());
    for (name, shape, bytes) in tensors {
        let view = TensorView::new(dtype, shape.clone(), bytes).map_err(|e| TrainError::format(path, e))?;
        views.push((name.as_str(), view));
    }
    let plain = safetensors::serialize(views, None).map_err(|e| TrainError::format(path, e))?;
    let bytes = with_metadata(&plain, meta).map_err(|e| TrainError::format(path, e))?;
    write_atomic(path, &bytes)
}

/// Puts `meta` into the header of a safetensors file without any, in the order of its keys: the format's own writer takes them in a hash map,
/// and the same adapter would have other bytes each time.
fn with_metadata(plain: &[u8], meta: &BTreeMap<String, String>) -> std::result::Result<Vec<u8>, String> {
    let length = size_of::<u64>();
    let (n, _) = SafeTensors::read_metadata(plain).map_err(|e| e.to_string())?;
    let cut = || "a header that ends before it should".to_owned();
    let header = plain.get(length..length + n).and_then(|h| std::str::from_utf8(h).ok()).ok_or_else(cut)?;
    let tensors = header.trim_end().strip_prefix('{').ok_or_else(cut)?;
    let meta = serde_json::to_string(meta).map_err(|e| e.to_string())?;
    let comma = if tensors == "}" { "" } else { "," };
    let mut header = format!("{{\"__metadata__\":{meta}{comma}{tensors}");
    header.extend(std::iter::repeat_n(' ', header.len().next_multiple_of(length) - header.len()));
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(plain.get(length + n..).unwrap_or_default());
    Ok(bytes)
}

/// Writes to a temporary name, syncs, renames: a reader sees the old file or the new one.
pub(crate) fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut name = path.file_name().map(ToOwned::to_owned).unwrap_or_default();
    name.push(format!(".{}.tmp", std::process::id()));
    let temp = path.with_file_name(name);
    let mut file = std::fs::File::create(&temp).map_err(TrainError::io("create", &temp))?;
    file.write_all(bytes).map_err(TrainError::io("write", &temp))?;
    file.sync_all().map_err(TrainError::io("sync", &temp))?;
    drop(file);
    std::fs::rename(&temp, path).map_err(TrainError::io("rename to", path))?;
    if let Some(dir) = path.parent()
        && let Ok(dir) = std::fs::File::open(if dir.as_os_str().is_empty() { Path::new(".") } else { dir })
    {
        // not every file system can sync a directory; the rename itself has succeeded
        let _ = dir.sync_all();
    }
    Ok(())
}

/// Makes a directory and its parents.
pub(crate) fn make_dir(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(TrainError::io("create directory", path))
}
