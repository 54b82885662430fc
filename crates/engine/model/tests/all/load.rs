//! Errors of missing, invalid and mismatched files.

use std::path::Path;

use autoact_lora::{Adapter, AdapterError};
use autoact_model::{LoadError, ModelDir, Transformer};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use crate::common::{copy, edit_json, engine, fixture};

fn load(dir: &Path) -> Result<(), LoadError> {
    let dir = ModelDir::open(dir)?;
    Transformer::load(&dir, None)?;
    dir.tokenizer()?;
    dir.chat_template()?;
    Ok(())
}

fn truncate(path: &Path, by: usize) {
    let bytes = std::fs::read(path).unwrap();
    std::fs::write(path, &bytes[..bytes.len() - by]).unwrap();
}

#[test]
fn a_missing_file_is_named_with_the_fix() {
    for file in ["config.json", "tokenizer.json", "model.safetensors"] {
        let dir = copy(&fixture("llama2"));
        std::fs::remove_file(dir.path().join(file)).unwrap();
        let error = load(dir.path()).unwrap_err();
        assert!(matches!(&error, LoadError::Read { path, .. } if path.ends_with(file)), "{error}");
    }
}

#[test]
fn broken_files_are_told_apart() {
    let broken = |file: &str, text: &str| {
        let dir = copy(&fixture("mistral"));
        std::fs::write(dir.path().join(file), text).unwrap();
        load(dir.path()).unwrap_err()
    };
    assert!(matches!(broken("config.json", "{"), LoadError::Json { .. }));
    assert!(matches!(broken("generation_config.json", "[1"), LoadError::Json { .. }));
    assert!(matches!(broken("tokenizer_config.json", "x"), LoadError::Json { .. }));
    assert!(matches!(broken("tokenizer.json", "{}"), LoadError::Tokenizer { .. }));
    assert!(matches!(broken("chat_template.jinja", "{% if %}"), LoadError::Template { .. }));
    assert!(matches!(broken("model.safetensors", "short"), LoadError::Corrupt { .. }));
    assert!(matches!(broken("model.safetensors", ""), LoadError::Corrupt { .. } | LoadError::Read { .. }));
}

#[test]
fn truncated_weights_are_corrupt() {
    for by in [1, 5_000] {
        let dir = copy(&fixture("llama2"));
        truncate(&dir.path().join("model.safetensors"), by);
        let error = load(dir.path()).unwrap_err();
        assert!(matches!(error, LoadError::Corrupt { .. }), "{error}");
    }
}

#[test]
fn weights_that_contradict_the_configuration_are_named() {
    let dir = copy(&fixture("llama2"));
    edit_json(&dir.path().join("config.json"), |c| c["intermediate_size"] = 48.into());
    let error = load(dir.path()).unwrap_err();
    assert!(matches!(&error, LoadError::Tensor { tensor, .. } if tensor == "model.layers.0.mlp.gate_proj.weight"), "{error}");
    edit_json(&dir.path().join("config.json"), |c| {
        c["intermediate_size"] = 40.into();
        c["num_hidden_layers"] = 3.into();
    });
    let error = load(dir.path()).unwrap_err();
    assert!(matches!(&error, LoadError::MissingTensor { tensor, .. } if tensor.starts_with("model.layers.2.")), "{error}");
}

#[test]
fn shards_load_like_one_file() {
    let dir = copy(&fixture("qwen3"));
    let whole = ModelDir::open(dir.path()).unwrap().digest().unwrap().to_owned();
    let weights = dir.path().join("model.safetensors");
    let tensors = read_tensors(&weights);
    let mut shards = [Tensors::new(), Tensors::new()];
    let mut map = serde_json::Map::new();
    for (i, (name, tensor)) in tensors.into_iter().enumerate() {
        map.insert(name.clone(), format!("model-{}.safetensors", i % 2).into());
        shards[i % 2].insert(name, tensor);
    }
    for (i, shard) in shards.iter().enumerate() {
        write_tensors(shard, &dir.path().join(format!("model-{i}.safetensors")));
    }
    std::fs::remove_file(weights).unwrap();
    std::fs::write(dir.path().join("model.safetensors.index.json"), serde_json::json!({"weight_map": map}).to_string()).unwrap();
    load(dir.path()).unwrap();
    assert_ne!(ModelDir::open(dir.path()).unwrap().digest().unwrap(), whole);
    std::fs::remove_file(dir.path().join("model-1.safetensors")).unwrap();
    assert!(matches!(load(dir.path()), Err(LoadError::Read { .. })));
}

#[test]
fn an_adapter_for_another_base_is_refused() {
    let engine = engine("llama2");
    let mismatch = |path: &Path| match engine.load_adapter("x", path) {
        Err(LoadError::Adapter(AdapterError::BaseMismatch { what, .. })) => what,
        other => panic!("{other:?}"),
    };
    // Trained on the other Llama, according to its metadata; the shapes would fit.
    assert_eq!(mismatch(&fixture("llama3").join("adapter")), "sha256 of the base's weights");
    let deeper = copy(&fixture("llama2").join("adapter"));
    rename(&deeper.path().join("adapter_model.safetensors"), "layers.1", "layers.2");
    assert_eq!(mismatch(deeper.path()), "layer `model.layers.2.self_attn.q_proj`");
    // Qwen 3's heads have 12 elements, so its `q_proj` does not fit a model with 8.
    let narrow = crate::common::engine("qwen3");
    let error = narrow.load_adapter("x", fixture("llama2").join("adapter")).unwrap_err();
    let LoadError::Adapter(AdapterError::BaseMismatch { what, found, expected, .. }) = error else { panic!("{error}") };
    assert_eq!(what, "size of `model.layers.0.self_attn.q_proj`");
    assert_eq!((found.as_str(), expected.as_str()), ("32 -> 32", "32 -> 48"));
}

#[test]
fn an_adapter_that_is_not_whole_is_refused() {
    let adapter = |change: &dyn Fn(&Path)| {
        let dir = copy(&fixture("qwen2").join("adapter"));
        change(dir.path());
        Adapter::load(dir.path()).unwrap_err()
    };
    let config =
        |change: &dyn Fn(&mut serde_json::Value)| adapter(&|dir: &Path| edit_json(&dir.join("adapter_config.json"), |c| change(c)));
    let half = "base_model.model.model.layers.1.self_attn.q_proj.lora_B.weight";
    assert!(
        matches!(adapter(&|d: &Path| drop_tensor(&d.join("adapter_model.safetensors"), half)), AdapterError::MissingTensor { tensor, .. } if tensor == half)
    );
    assert!(matches!(adapter(&|d: &Path| truncate(&d.join("adapter_model.safetensors"), 9)), AdapterError::Corrupt { .. }));
    let missing = adapter(&|d: &Path| std::fs::remove_file(d.join("adapter_config.json")).unwrap());
    assert!(matches!(missing, AdapterError::Read { .. }));
    assert!(matches!(config(&|c| c["target_modules"] = ["q_proj"].into()), AdapterError::UnknownTensor { .. }));
    assert!(matches!(config(&|c| c["rank_pattern"] = serde_json::json!({})), AdapterError::Shape { .. }));
    assert!(matches!(config(&|c| c["target_modules"] = "(".into()), AdapterError::Pattern { .. }));
    let more = ["q_proj", "k_proj", "v_proj", "o_proj", "up_proj"];
    assert!(matches!(config(&|c| c["target_modules"] = more.into()), AdapterError::MissingTensor { .. }));
}

/// A missing layer is noticed only with the base, because the adapter's own files are consistent.
#[test]
fn a_layer_without_its_update_is_seen_against_the_base() {
    let dir = copy(&fixture("qwen2").join("adapter"));
    for half in ["A", "B"] {
        let name = format!("base_model.model.model.layers.1.self_attn.q_proj.lora_{half}.weight");
        drop_tensor(&dir.path().join("adapter_model.safetensors"), &name);
    }
    let error = engine("qwen2").load_adapter("x", dir.path()).unwrap_err();
    assert!(
        matches!(&error, LoadError::Adapter(AdapterError::BaseMismatch { expected, .. }) if expected.ends_with("1.self_attn.q_proj")),
        "{error}"
    );
}

fn rename(path: &Path, from: &str, to: &str) {
    let tensors: Tensors = read_tensors(path).into_iter().map(|(k, v)| (k.replace(from, to), v)).collect();
    write_tensors(&tensors, path);
}

fn drop_tensor(path: &Path, name: &str) {
    let mut tensors = read_tensors(path);
    assert!(tensors.remove(name).is_some());
    write_tensors(&tensors, path);
}

/// Type, shape and bytes by tensor name.
type Tensors = std::collections::BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>;

fn read_tensors(path: &Path) -> Tensors {
    let bytes = std::fs::read(path).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    tensors.iter().map(|(name, view)| (name.to_owned(), (view.dtype(), view.shape().to_vec(), view.data().to_vec()))).collect()
}

/// Without the metadata.
fn write_tensors(tensors: &Tensors, path: &Path) {
    let views = tensors.iter().map(|(name, (dtype, shape, data))| (name, TensorView::new(*dtype, shape.clone(), data).unwrap()));
    std::fs::write(path, safetensors::serialize(views, None).unwrap()).unwrap();
}
