//! Engines over one model, for use within one process.

use autoact_model::{Engine, EngineOptions, LoadError, ModelDir};

/// Models with at most this many bytes of weights get one engine per core. The engines share the
/// mapped file, and no matrix product waits for another thread.
const SMALL: u64 = 200 << 20;
/// Bytes of KV cache of each engine if there are several.
const CACHE: usize = 128 << 20;

/// Starts one engine per core for a small model, but at most `most`; else one engine on all cores.
///
/// # Errors
/// The model cannot be loaded.
pub fn engines(dir: &ModelDir, most: usize) -> Result<Vec<Engine>, Box<LoadError>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let count = if dir.weight_bytes() <= SMALL { cores.min(most).max(1) } else { 1 };
    let cache_bytes = if count > 1 { CACHE } else { EngineOptions::default().cache_bytes };
    let options = EngineOptions { threads: (cores / count).max(1), cache_bytes, ..EngineOptions::default() };
    let mut engines = Vec::with_capacity(count);
    for _ in 0..count {
        engines.push(Engine::start(dir, options.clone())?);
    }
    Ok(engines)
}
