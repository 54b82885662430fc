//! Shared by the tests: tiny models and documents.
#![allow(dead_code)]

use autoact_base::random::SplitMix64;
use autoact_train::{Document, ModelConfig};

/// A tiny model. Its sizes are all different, and none is a multiple of the vector width.
pub(crate) fn tiny(tied: bool) -> ModelConfig {
    ModelConfig {
        hidden_size: 24,
        intermediate_size: 40,
        num_hidden_layers: 2,
        num_attention_heads: 4,
        num_key_value_heads: 2,
        head_dim: 6,
        vocab_size: 37,
        rms_norm_eps: 1e-5,
        rope_theta: 10_000.0,
        max_position_embeddings: 256,
        tie_word_embeddings: tied,
        bos_token_id: Some(0),
        eos_token_id: Some(1),
    }
}

/// Random documents with about two thirds of the tokens as targets.
pub(crate) fn documents(lens: &[usize], vocab: usize, seed: u64) -> Vec<Document> {
    let mut rng = SplitMix64::stream(seed, 0);
    let doc = |n: &usize| {
        let tokens = (0..*n).map(|_| rng.below(vocab) as u32).collect();
        let loss = (0..*n).map(|_| rng.below(3) > 0).collect();
        Document { tokens, loss, ..Document::default() }
    };
    lens.iter().map(doc).collect()
}
