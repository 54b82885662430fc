//! Weight files: a safetensors header and its tensors.

use std::path::Path;

use autoact_checkpoint::{decode, parse};

/// A whole `model.safetensors`.
pub fn weights(data: &[u8]) {
    let path = Path::new("model.safetensors");
    let Ok(tensors) = parse(path, data) else { return };
    for (name, view) in tensors.iter() {
        let numbers: usize = view.shape().iter().product();
        let mut out = vec![0.0; numbers.min(data.len())];
        let _ = decode(path, name, &view, &mut out);
    }
}
