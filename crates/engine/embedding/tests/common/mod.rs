//! Golden texts and models.
#![allow(dead_code)] // each test binary uses its part

use std::path::{Path, PathBuf};

use autoact_embedding::{MiniLm, MiniLmOptions};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A text of a golden file.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Text {
    Whole(String),
    /// What is repeated, how often, and what comes after it.
    Long(String, usize, String),
}

impl Text {
    pub(crate) fn whole(&self) -> String {
        match self {
            Text::Whole(text) => text.clone(),
            Text::Long(unit, times, rest) => unit.repeat(*times) + rest,
        }
    }
}

pub(crate) fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

pub(crate) fn rows<T: DeserializeOwned>(name: &str) -> Vec<T> {
    serde_json::from_slice(&std::fs::read(golden(name)).unwrap()).unwrap()
}

pub(crate) fn tiny() -> MiniLm {
    MiniLm::open(golden("tiny"), MiniLmOptions { threads: 2 }).unwrap()
}

/// The largest difference between two numbers in the same place.
pub(crate) fn apart(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
