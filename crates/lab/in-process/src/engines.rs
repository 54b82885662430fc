//! Engines over one model for work in one process.

use autoact_model::{Engine, EngineOptions, LoadError, ModelDir};

/// Weights up to this size get an engine for each core (they share the mapped file), so that no product waits for another thread.
const SMALL: u64 = 200 << 20;
/// Keys and values that an engine of several keeps: the trajectories it works at, and the openings they share.
const CACHE: usize = 128 << 20;

/// One engine on all cores, or one for each core while the model is small; `most` at most.
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
