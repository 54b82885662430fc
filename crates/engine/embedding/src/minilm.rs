//! all-MiniLM-L6-v2 in the process.

mod batches;
mod files;
mod pieces;

use std::path::Path;

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::BertModel;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::vector::normalize;
use crate::{EmbedError, Embedder};
use batches::batches;
use files::{Files, REFETCH, model};
use pieces::Pieces;

/// Word pieces of a batch, with padding: bounds the memory of a call.
const BATCH_PIECES: usize = 1024;

/// Options of [`MiniLm`].
#[derive(Debug, Clone, Copy, Default)]
pub struct MiniLmOptions {
    /// Threads that compute; 0: one for each processor.
    pub threads: usize,
}

/// A BERT whose vectors are the mean over its word pieces, such as all-MiniLM-L6-v2.
///
/// Of a text, it reads the first 256 word pieces, about 200 words.
pub struct MiniLm {
    name: String,
    dimension: usize,
    padding: u32,
    pieces: Pieces,
    bert: BertModel,
    pool: ThreadPool,
}

impl MiniLm {
    /// Reads a model from its directory: `config.json`, `tokenizer.json` and `model.safetensors`.
    /// `sentence_bert_config.json` and `1_Pooling/config.json` are read if they are there.
    ///
    /// # Errors
    /// A file is missing, or does not belong to such a model.
    pub fn open(dir: impl AsRef<Path>, options: MiniLmOptions) -> Result<MiniLm, EmbedError> {
        let dir = dir.as_ref();
        let Files { config, length, tokenizer, weights, digest } = Files::read(dir)?;
        let pieces = Pieces::new(&dir.join("tokenizer.json"), &tokenizer, length, config.vocab_size)?;
        let load = |weights| BertModel::load(VarBuilder::from_buffered_safetensors(weights, DType::F32, &Device::Cpu)?, &config);
        let bert = load(weights).map_err(|error| model(&dir.join("model.safetensors"), error.to_string(), REFETCH))?;
        let pool = ThreadPoolBuilder::new().num_threads(options.threads).thread_name(|n| format!("embedder-{n}")).build();
        let pool = pool.map_err(|error| EmbedError::Compute { reason: error.to_string() })?;
        let (dimension, padding) = (config.hidden_size, config.pad_token_id as u32);
        let name = format!("bert-{}x{dimension}@{digest}", config.num_hidden_layers);
        Ok(MiniLm { name, dimension, padding, pieces, bert, pool })
    }

    /// The vectors of texts as pieces, which are all padded to the first.
    fn batch(&self, texts: &[&[u32]]) -> candle_core::Result<Vec<Vec<f32>>> {
        let (rows, columns) = (texts.len(), texts.first().map_or(0, |text| text.len()));
        let mut ids = vec![self.padding; rows * columns];
        let mut mask = vec![0_u32; rows * columns];
        for (row, text) in texts.iter().enumerate() {
            ids[row * columns..][..text.len()].copy_from_slice(text);
            mask[row * columns..][..text.len()].fill(1);
        }
        let ids = Tensor::from_vec(ids, (rows, columns), &Device::Cpu)?;
        let mask = Tensor::from_vec(mask, (rows, columns), &Device::Cpu)?;
        let states = self.bert.forward(&ids, &ids.zeros_like()?, Some(&mask))?.flatten_all()?.to_vec1::<f32>()?;
        let states = states.chunks_exact(columns * self.dimension);
        Ok(states.zip(texts).map(|(states, text)| sum(&states[..text.len() * self.dimension], self.dimension)).collect())
    }
}

impl std::fmt::Debug for MiniLm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MiniLm").field("name", &self.name).field("dimension", &self.dimension).finish_non_exhaustive()
    }
}

impl Embedder for MiniLm {
    fn name(&self) -> &str {
        &self.name
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut pieces = Vec::with_capacity(texts.len());
        for (at, text) in texts.iter().enumerate() {
            pieces.push((at, self.pieces.of(text)?));
        }
        pieces.sort_by_key(|(_, pieces)| std::cmp::Reverse(pieces.len()));
        let lengths: Vec<usize> = pieces.iter().map(|(_, pieces)| pieces.len()).collect();
        let mut vectors = vec![Vec::new(); texts.len()];
        for batch in batches(&lengths, BATCH_PIECES) {
            let batch = &pieces[batch];
            let rows: Vec<&[u32]> = batch.iter().map(|(_, pieces)| pieces.as_slice()).collect();
            let found = self.pool.install(|| self.batch(&rows)).map_err(|error| EmbedError::Compute { reason: error.to_string() })?;
            for ((at, _), mut vector) in batch.iter().zip(found) {
                normalize(&mut vector).map_err(|flaw| EmbedError::Compute { reason: format!("a vector has no direction: {flaw}") })?;
                vectors[*at] = vector;
            }
        }
        Ok(vectors)
    }
}

/// The sum of vectors that lie behind each other. Its direction is the mean's.
fn sum(states: &[f32], width: usize) -> Vec<f32> {
    let mut sum = vec![0.0_f32; width];
    for state in states.chunks_exact(width) {
        for (sum, x) in sum.iter_mut().zip(state) {
            *sum += x;
        }
    }
    sum
}
