//! Safetensors files, written whole or not at all.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use half::{bf16, f16};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use crate::error::FileError;

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

    fn of_file(self) -> Dtype {
        match self {
            Self::F32 => Dtype::F32,
            Self::Bf16 => Dtype::BF16,
        }
    }
}

/// Reads a whole file.
///
/// # Errors
/// The file cannot be read.
pub fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    std::fs::read(path).map_err(FileError::io("read", path))
}

/// Parses a safetensors buffer.
///
/// # Errors
/// It is not a whole safetensors file.
pub fn parse<'a>(path: &Path, bytes: &'a [u8]) -> Result<SafeTensors<'a>, FileError> {
    SafeTensors::deserialize(bytes).map_err(|e| FileError::format(path, format!("not a whole safetensors file: {e}")))
}

/// Converts one tensor to f32.
///
/// # Errors
/// The tensor holds other numbers than f32, bf16 or f16, or not as many as `out`.
pub fn decode(path: &Path, name: &str, view: &TensorView<'_>, out: &mut [f32]) -> Result<(), FileError> {
    let data = view.data();
    let width = match view.dtype() {
        Dtype::F32 => 4,
        Dtype::BF16 | Dtype::F16 => 2,
        other => {
            let m = format!("tensor `{name}` is {other:?}, expected F32, BF16 or F16");
            return Err(FileError::format(path, m));
        }
    };
    if data.len() != out.len() * width {
        let m = format!("tensor `{name}` has {} bytes, expected {}", data.len(), out.len() * width);
        return Err(FileError::format(path, m));
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
pub fn encode(data: &[f32], dtype: SaveDtype) -> Vec<u8> {
    match dtype {
        SaveDtype::F32 => data.iter().flat_map(|v| v.to_le_bytes()).collect(),
        SaveDtype::Bf16 => data.iter().flat_map(|v| bf16::from_f32(*v).to_le_bytes()).collect(),
    }
}

/// A tensor in the bytes of a file.
#[derive(Debug, Clone)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// Its dimensions.
    pub shape: Vec<usize>,
    /// Its numbers, as [`encode`] makes them.
    pub data: Vec<u8>,
}

/// Writes tensors of one number format as a safetensors file with `metadata`.
///
/// # Errors
/// A tensor's size does not fit its shape, or the file cannot be written.
pub fn write_tensors(path: &Path, tensors: &[Tensor], dtype: SaveDtype, metadata: &BTreeMap<String, String>) -> Result<(), FileError> {
    let mut views = Vec::with_capacity(tensors.len());
    for Tensor { name, shape, data } in tensors {
        let view = TensorView::new(dtype.of_file(), shape.clone(), data).map_err(|e| FileError::format(path, e))?;
        views.push((name.as_str(), view));
    }
    let plain = safetensors::serialize(views, None).map_err(|e| FileError::format(path, e))?;
    let bytes = with_metadata(&plain, metadata).map_err(|e| FileError::format(path, e))?;
    write_whole(path, &bytes)
}

/// Puts `meta` into the header of a safetensors file without any, in the order of its keys.
/// The format's own writer takes a hash map: the same file would have other bytes each time.
fn with_metadata(plain: &[u8], meta: &BTreeMap<String, String>) -> Result<Vec<u8>, String> {
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
///
/// # Errors
/// A step fails; the old file, if any, is still there.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let mut name = path.file_name().map(ToOwned::to_owned).unwrap_or_default();
    name.push(format!(".{}.tmp", std::process::id()));
    let temp = path.with_file_name(name);
    let mut file = std::fs::File::create(&temp).map_err(FileError::io("create", &temp))?;
    file.write_all(bytes).map_err(FileError::io("write", &temp))?;
    file.sync_all().map_err(FileError::io("sync", &temp))?;
    drop(file);
    std::fs::rename(&temp, path).map_err(FileError::io("rename to", path))?;
    if let Some(dir) = path.parent()
        && let Ok(dir) = std::fs::File::open(if dir.as_os_str().is_empty() { Path::new(".") } else { dir })
    {
        // not every file system can sync a directory; the rename itself has succeeded
        let _ = dir.sync_all();
    }
    Ok(())
}

/// Makes a directory and its parents.
///
/// # Errors
/// It cannot be made.
pub fn make_dir(path: &Path) -> Result<(), FileError> {
    std::fs::create_dir_all(path).map_err(FileError::io("create directory", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(name: &str, data: &[f32], dtype: SaveDtype) -> Tensor {
        Tensor { name: name.to_owned(), shape: vec![data.len()], data: encode(data, dtype) }
    }

    #[test]
    fn tensors_are_read_back_and_have_the_same_bytes_each_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.safetensors");
        let metadata = BTreeMap::from([("format".to_owned(), "pt".to_owned()), ("a key".to_owned(), "\"quoted\"".to_owned())]);
        let numbers = [1.5, -0.25, 3.0];
        for dtype in [SaveDtype::F32, SaveDtype::Bf16] {
            let tensors = [tensor("a", &numbers, dtype), tensor("b", &[], dtype)];
            let mut files = Vec::new();
            for _ in 0..4 {
                write_tensors(&path, &tensors, dtype, &metadata).unwrap();
                files.push(read(&path).unwrap());
            }
            assert!(files.windows(2).all(|pair| pair[0] == pair[1]));
            let file = parse(&path, &files[0]).unwrap();
            let mut back = [0.0; 3];
            decode(&path, "a", &file.tensor("a").unwrap(), &mut back).unwrap();
            assert_eq!(back, numbers);
            assert!(decode(&path, "a", &file.tensor("a").unwrap(), &mut [0.0; 2]).is_err(), "another size");
            let (_, header) = SafeTensors::read_metadata(&files[0]).unwrap();
            assert_eq!(header.metadata().as_ref().and_then(|all| all.get("a key")).map(String::as_str), Some("\"quoted\""));
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file stays");
    }

    #[test]
    fn what_does_not_fit_or_is_cut_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.safetensors");
        let wrong = Tensor { shape: vec![4], ..tensor("a", &[1.0; 3], SaveDtype::F32) };
        assert!(matches!(write_tensors(&path, &[wrong], SaveDtype::F32, &BTreeMap::new()), Err(FileError::Format { .. })));
        write_tensors(&path, &[tensor("a", &[1.0; 3], SaveDtype::F32)], SaveDtype::F32, &BTreeMap::new()).unwrap();
        let bytes = read(&path).unwrap();
        assert!(matches!(parse(&path, &bytes[..bytes.len() - 1]), Err(FileError::Format { .. })));
        assert!(matches!(read(&dir.path().join("none")), Err(FileError::Io { .. })));
    }
}
