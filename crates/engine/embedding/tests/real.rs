//! all-MiniLM-L6-v2 against its golden vectors, where its weights are.
#![allow(clippy::unwrap_used)] // tests

mod common;

use std::path::{Path, PathBuf};

use autoact_embedding::{Embedder, MiniLm, MiniLmOptions};
use common::{Text, apart, dot, rows};
use serde::Deserialize;

const TOLERANCE: f32 = 1e-4;

#[derive(Deserialize)]
struct Row {
    text: Text,
    /// The first numbers of its vector.
    first: Vec<f32>,
    /// With every text of the file.
    cosines: Vec<f32>,
}

/// The weights, if they are there.
fn weights() -> Option<PathBuf> {
    let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../models/all-minilm-l6-v2");
    let dir = std::env::var_os("AUTOACT_TEST_EMBEDDER").map_or(fetched, PathBuf::from);
    dir.join("model.safetensors").exists().then_some(dir)
}

#[test]
fn vectors_are_the_references() {
    let Some(dir) = weights() else {
        println!("skipped: run scripts/fetch-embedder");
        return;
    };
    let model = MiniLm::open(dir, MiniLmOptions::default()).unwrap();
    assert_eq!(model.dimension(), 384);
    let rows: Vec<Row> = rows("minilm.json");
    let texts: Vec<String> = rows.iter().map(|row| row.text.whole()).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let together = model.embed(&texts).unwrap();
    let alone: Vec<Vec<f32>> = texts.iter().map(|text| model.embed(&[text]).unwrap().remove(0)).collect();
    for vectors in [together, alone] {
        for (row, vector) in rows.iter().zip(&vectors) {
            let shown: String = row.text.whole().chars().take(40).collect();
            let first = apart(&vector[..row.first.len()], &row.first);
            assert!(first < TOLERANCE, "{shown:?}: {first}");
            let cosines: Vec<f32> = vectors.iter().map(|other| dot(vector, other)).collect();
            assert!(apart(&cosines, &row.cosines) < TOLERANCE, "{shown:?}: {cosines:?}");
        }
    }
}
