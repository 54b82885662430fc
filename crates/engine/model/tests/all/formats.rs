//! Number formats: conversion on disk, conversion while loading, and their difference from f32.

use std::path::Path;

use crate::common::{finish, fixture};
use autoact_model::{
    Engine, EngineOptions, Format, GenerateRequest, Item, KvFormat, LoadError, Logits, ModelDir, Scratch, Team, Transformer, convert,
};

const PROMPT: [u32; 12] = [1, 20, 33, 7, 90, 41, 5, 17, 60, 2, 11, 3];

fn logits(dir: &Path, wanted: Option<Format>) -> (Transformer, Vec<f32>) {
    let model = Transformer::load(&ModelDir::open(dir).unwrap(), wanted).unwrap();
    let logits = logits_of(&model);
    (model, logits)
}

fn logits_of(model: &Transformer) -> Vec<f32> {
    let mut cache = model.new_cache();
    let item = Item { tokens: &PROMPT, cache: &mut cache, adapter: None, adapter_from: 0, logits: Logits::All };
    model.forward(&Team::new(1).unwrap(), &mut [item], &mut Scratch::default()).to_vec()
}

/// Root mean square of the difference, relative to that of the values.
fn gap(a: &[f32], b: &[f32]) -> f32 {
    let square = |values: &mut dyn Iterator<Item = f32>| values.map(|v| v * v).sum::<f32>();
    (square(&mut a.iter().zip(b).map(|(a, b)| a - b)) / square(&mut a.iter().copied())).sqrt()
}

/// The bundled model. Its widths are multiples of 32, as in real models.
fn stem() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../models/stem")
}

#[test]
fn a_converted_file_gives_what_converting_while_loading_gives() {
    let (_, exact) = logits(&stem(), Some(Format::F32));
    for (format, most) in [(Format::F32, 0.0), (Format::Bf16, 0.03), (Format::Q8_0, 0.03)] {
        let out = tempfile::tempdir().unwrap();
        let source = ModelDir::open(stem()).unwrap();
        let done = convert(&source, out.path(), format).unwrap();
        assert!(done.matrices > 0 && done.left == 0, "{done:?}");
        let (mapped, on_disk) = logits(out.path(), None);
        let (converted, in_memory) = logits(&stem(), Some(format));
        assert!(mapped.mapped() && mapped.format() == format);
        assert_eq!(converted.mapped(), format == Format::Bf16, "the bundled model is stored in bf16");
        assert_eq!(on_disk, in_memory, "{format}");
        assert_eq!(mapped.kv_format() == KvFormat::F32, format == Format::F32, "the reference is in f32 all through");
        let gap = gap(&exact, &on_disk);
        assert!(gap <= most, "{format}: differs by {gap}");
        let converted = ModelDir::open(out.path()).unwrap();
        assert_eq!(converted.base_digest().unwrap(), source.digest().unwrap());
        assert_ne!(converted.digest().unwrap(), source.digest().unwrap());
    }
}

#[test]
fn keys_and_values_in_16_bits_change_less_than_the_weights() {
    let (reference, exact) = logits(&stem(), Some(Format::F32));
    let narrow = logits_of(&reference.with_kv(KvFormat::Bf16));
    let gap_of_kv = gap(&exact, &narrow);
    let (model, both) = logits(&stem(), Some(Format::Bf16));
    let weights = logits_of(&model.with_kv(KvFormat::F32));
    let (gap_of_weights, gap_of_both) = (gap(&exact, &weights), gap(&exact, &both));
    assert!(0.0 < gap_of_kv && gap_of_kv < gap_of_weights, "{gap_of_kv} {gap_of_weights}");
    assert!(gap_of_both < 1.5 * gap_of_weights, "{gap_of_both} {gap_of_weights}");
}

#[test]
fn adapters_of_the_source_speak_on_the_converted() {
    let out = tempfile::tempdir().unwrap();
    convert(&ModelDir::open(stem()).unwrap(), out.path(), Format::Q8_0).unwrap();
    let engine = Engine::start(&ModelDir::open(out.path()).unwrap(), EngineOptions::default()).unwrap();
    assert_eq!(engine.weights(), Format::Q8_0);
    engine.load_adapter("plan", stem().join("adapters/plan")).unwrap();
    let prompt = "Tools: Search[query] Retrieve[title] Finish[answer]\nQuestion: What is the capital of France?\nThought:";
    let request = GenerateRequest { adapter: Some("plan".to_owned()), max_tokens: 12, ..GenerateRequest::new(prompt) };
    assert!(finish(&engine, request).unwrap().completion_tokens > 0);
}

#[test]
fn rows_that_are_no_whole_blocks_are_refused() {
    // The fixture's rows have 32 elements, but those of its feed-forward layer have 40.
    let dir = ModelDir::open(fixture("llama2")).unwrap();
    let error = Transformer::load(&dir, Some(Format::Q8_0)).unwrap_err();
    assert!(matches!(&error, LoadError::Tensor { tensor, .. } if tensor.ends_with("down_proj.weight")), "{error}");
}
