//! Engines on the golden fixtures.
#![allow(dead_code)] // each test binary uses its part

use std::path::{Path, PathBuf};

use autoact_model::{Backend, Engine, EngineOptions, GenerateError, GenerateRequest, Generated, ModelDir};

pub(crate) fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../tests/golden/fixtures").join(name)
}

pub(crate) fn engine(name: &str) -> Engine {
    engine_with(name, EngineOptions::default())
}

pub(crate) fn engine_with(name: &str, options: EngineOptions) -> Engine {
    Engine::start(&ModelDir::open(fixture(name)).unwrap(), options).unwrap()
}

pub(crate) fn finish(engine: &Engine, request: GenerateRequest) -> Result<Generated, GenerateError> {
    engine.generate(request)?.blocking_finish()
}

/// A copy of `dir`'s files in a directory that goes away with the handle.
pub(crate) fn copy(dir: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            std::fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    copy
}

/// The fixture's adapter with three times its strength: another adapter for the same base.
pub(crate) fn other_adapter(name: &str) -> tempfile::TempDir {
    let dir = copy(&fixture(name).join("adapter"));
    edit_json(&dir.path().join("adapter_config.json"), |config| {
        config["lora_alpha"] = (config["lora_alpha"].as_f64().unwrap() * 3.0).into();
    });
    dir
}

pub(crate) fn edit_json(path: &Path, change: impl FnOnce(&mut serde_json::Value)) {
    let mut value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    change(&mut value);
    std::fs::write(path, value.to_string()).unwrap();
}
