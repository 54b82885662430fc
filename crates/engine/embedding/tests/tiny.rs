//! A tiny model against its golden vectors.
#![allow(clippy::unwrap_used)] // tests

mod common;

use autoact_embedding::Embedder;
use common::{Text, apart, dot, rows, tiny};
use proptest::prelude::*;
use serde::Deserialize;

/// Vectors are the reference's to this much.
const TOLERANCE: f32 = 1e-5;

#[derive(Deserialize)]
struct Row {
    text: Text,
    vector: Vec<f32>,
}

fn golden() -> (Vec<String>, Vec<Vec<f32>>) {
    rows::<Row>("tiny.json").into_iter().map(|row| (row.text.whole(), row.vector)).unzip()
}

#[test]
fn vectors_are_the_references_alone_and_together() {
    let model = tiny();
    let (texts, expected) = golden();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let together = model.embed(&texts).unwrap();
    assert_eq!(together.len(), texts.len());
    for ((text, expected), together) in texts.iter().zip(&expected).zip(&together) {
        let shown: String = text.chars().take(40).collect();
        let alone = &model.embed(&[text]).unwrap()[0];
        assert!(apart(alone, expected) < TOLERANCE, "{shown:?} alone: {}", apart(alone, expected));
        assert_eq!(alone, together, "{shown:?}");
        assert_eq!(alone.len(), model.dimension());
        assert!((dot(alone, alone) - 1.0).abs() < TOLERANCE);
    }
    // the fixture tells its texts apart
    assert!(apart(&expected[0], &expected[2]) > 0.05);
}

#[test]
fn no_texts_have_no_vectors() {
    assert_eq!(tiny().embed(&[]).unwrap(), Vec::<Vec<f32>>::new());
}

#[test]
fn a_text_beyond_the_length_does_not_count() {
    let model = tiny();
    let (long, longer) = ("the river ".repeat(48), "the river ".repeat(4800) + "memory");
    let vectors = model.embed(&[&long, &longer]).unwrap();
    assert_eq!(vectors[0], vectors[1]);
}

#[test]
fn threads_share_a_model() {
    let model = tiny();
    let (texts, _) = golden();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let expected = model.embed(&texts).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                assert_eq!(model.embed(&texts).unwrap(), expected);
            });
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn company_does_not_change_a_vector(texts in prop::collection::vec("[a-z A-Z,.\u{e9}\u{6771}]{0,80}|\\PC{0,12}", 1..40)) {
        let model = tiny();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let together = model.embed(&texts).unwrap();
        for (text, together) in texts.iter().zip(&together) {
            prop_assert_eq!(&model.embed(&[text]).unwrap()[0], together, "{:?}", text);
        }
    }
}
