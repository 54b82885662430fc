//! Directories that are no model.
#![allow(clippy::unwrap_used)] // tests

mod common;

use std::path::Path;

use autoact_embedding::{EmbedError, Embedder, MiniLm, MiniLmOptions};
use common::{golden, tiny};
use serde_json::{Value, json};

/// The files of the tiny model.
const FILES: [&str; 5] = ["config.json", "tokenizer.json", "model.safetensors", "sentence_bert_config.json", "1_Pooling/config.json"];

fn copy() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("1_Pooling")).unwrap();
    for file in FILES {
        std::fs::copy(golden("tiny").join(file), dir.path().join(file)).unwrap();
    }
    dir
}

fn open(dir: &Path) -> Result<MiniLm, EmbedError> {
    MiniLm::open(dir, MiniLmOptions { threads: 1 })
}

fn edit(dir: &Path, file: &str, change: impl FnOnce(&mut Value)) {
    let path = dir.join(file);
    let mut json = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    change(&mut json);
    std::fs::write(path, json.to_string()).unwrap();
}

/// Opens a copy after a change, and expects an error about `file` that has `words`.
#[track_caller]
fn refused(file: &str, words: &str, change: impl FnOnce(&Path)) {
    let dir = copy();
    change(dir.path());
    let error = open(dir.path()).unwrap_err();
    let (path, text) = match &error {
        EmbedError::Read { path, .. } | EmbedError::Model { path, .. } => (path, error.to_string()),
        other => panic!("{other}"),
    };
    assert_eq!(path, &dir.path().join(file), "{text}");
    assert!(text.contains(words) && text.contains("fix: "), "{text}");
}

#[test]
fn missing_files_are_named_with_what_to_do() {
    for file in &FILES[..3] {
        refused(file, "scripts/fetch-embedder", |dir| std::fs::remove_file(dir.join(file)).unwrap());
    }
    // the others may be missing
    let dir = copy();
    for file in &FILES[3..] {
        std::fs::remove_file(dir.path().join(file)).unwrap();
    }
    assert_eq!(open(dir.path()).unwrap().dimension(), 32);
}

#[test]
fn other_models_are_refused() {
    let config = |key: &'static str, value: Value| move |dir: &Path| edit(dir, "config.json", |json| json[key] = value);
    refused("config.json", "`llama`, expected `bert`", config("model_type", json!("llama")));
    refused("config.json", "`relu`, expected `gelu`", config("hidden_act", json!("relu")));
    refused("config.json", "expected `absolute`", config("position_embedding_type", json!("relative_key")));
    refused("config.json", "num_attention_heads", config("num_attention_heads", json!(5)));
    refused("config.json", "hidden_size", |dir| edit(dir, "config.json", |json| drop(json.as_object_mut().unwrap().remove("hidden_size"))));
    refused("1_Pooling/config.json", "pooling_mode_cls_token", |dir| {
        edit(dir, "1_Pooling/config.json", |json| json["pooling_mode_cls_token"] = json!(true));
    });
    for length in [2, 65] {
        refused("sentence_bert_config.json", "expected 3 to 64", move |dir| {
            edit(dir, "sentence_bert_config.json", |json| json["max_seq_length"] = json!(length));
        });
    }
}

#[test]
fn files_that_do_not_fit_together_are_refused() {
    let config = |key: &'static str, value: Value| move |dir: &Path| edit(dir, "config.json", |json| json[key] = value);
    refused("model.safetensors", "is [88, 32], but `config.json` says [89, 32]", config("vocab_size", json!(89)));
    refused("tokenizer.json", "it has the piece 87, but the model knows 80", config("vocab_size", json!(80)));
    refused("model.safetensors", "encoder.layer.2.", config("num_hidden_layers", json!(3)));
    refused("model.safetensors", "not a whole safetensors file", |dir| {
        let bytes = std::fs::read(dir.join("model.safetensors")).unwrap();
        std::fs::write(dir.join("model.safetensors"), &bytes[..bytes.len() - 1]).unwrap();
    });
    refused("tokenizer.json", "not a tokenizer", |dir| std::fs::write(dir.join("tokenizer.json"), "{}").unwrap());
}

#[test]
fn the_name_tells_models_apart() {
    let (name, dir) = (tiny().name().to_owned(), copy());
    assert!(name.starts_with("bert-2x32@"), "{name}");
    assert_eq!(open(dir.path()).unwrap().name(), name);
    // reads more of a text, so its vectors are others
    edit(dir.path(), "sentence_bert_config.json", |json| json["max_seq_length"] = json!(49));
    let longer = open(dir.path()).unwrap().name().to_owned();
    assert_ne!(longer, name);
    let path = dir.path().join("model.safetensors");
    let mut weights = std::fs::read(&path).unwrap();
    *weights.last_mut().unwrap() ^= 1;
    std::fs::write(path, weights).unwrap();
    assert_ne!(open(dir.path()).unwrap().name(), longer);
}
