//! all-MiniLM-L6-v2 in the process.

mod bert;
mod files;
mod pieces;
mod turns;
mod weights;

use std::num::NonZero;
use std::path::Path;

use autoact_kernels::Team;

use crate::vector::normalize;
use crate::{EmbedError, Embedder};
use bert::Bert;
use files::Files;
use pieces::Pieces;
use turns::Turns;

/// Word pieces that are computed together, or one text: bounds the memory of a call.
const BATCH_PIECES: usize = 512;
/// Word pieces of a call that goes before longer ones: a query of 40 words.
const SHORT: usize = 64;

/// Options of [`MiniLm`].
#[derive(Debug, Clone, Copy, Default)]
pub struct MiniLmOptions {
    /// Threads that compute, with the caller's; 0: one for each processor.
    pub threads: usize,
}

/// A BERT whose vectors are the mean over its word pieces, such as all-MiniLM-L6-v2.
///
/// Of a text, it reads the first 256 word pieces, about 200 words. A text's vector has the same bits
/// alone and together with any others, on any number of threads; machines with other instruction sets
/// may differ in the last bits. A query goes before longer calls of other threads, which stop for it
/// at the next matrix product.
pub struct MiniLm {
    name: String,
    pieces: Pieces,
    bert: Bert,
    team: Team,
    turns: Turns,
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
        let bert = Bert::load(&dir.join("model.safetensors"), &weights, &config)?;
        let threads = NonZero::new(options.threads).or_else(|| std::thread::available_parallelism().ok());
        let team = Team::new(threads.map_or(1, NonZero::get)).map_err(|error| EmbedError::Compute { reason: error.to_string() })?;
        let name = format!("bert-{}x{}@{digest}", config.num_hidden_layers, config.hidden_size);
        Ok(MiniLm { name, pieces, bert, team, turns: Turns::default() })
    }

    /// The vectors of texts as pieces.
    fn batch(&self, texts: &[Vec<u32>]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let failed = |reason: String| EmbedError::Compute { reason };
        let rows: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
        let short = (rows.iter().map(|row| row.len()).sum::<usize>() <= SHORT).then(|| self.turns.short());
        let between = || {
            if short.is_none() {
                self.turns.give_way()
            }
        };
        let states = self.bert.forward(&self.team, &rows, &between).map_err(|error| failed(error.to_string()))?;
        let mut rest = states.as_slice();
        let mut vectors = Vec::with_capacity(texts.len());
        for text in texts {
            let (own, others) = rest.split_at(text.len() * self.dimension());
            rest = others;
            let mut vector = sum(own, self.dimension());
            normalize(&mut vector).map_err(|flaw| failed(format!("a vector cannot be used: {flaw}")))?;
            vectors.push(vector);
        }
        Ok(vectors)
    }
}

impl std::fmt::Debug for MiniLm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MiniLm").field("name", &self.name).field("threads", &self.team.threads()).finish_non_exhaustive()
    }
}

impl Embedder for MiniLm {
    fn name(&self) -> &str {
        &self.name
    }

    fn dimension(&self) -> usize {
        self.bert.shape.width
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut vectors = Vec::with_capacity(texts.len());
        let (mut batch, mut size) = (Vec::new(), 0);
        for text in texts {
            let pieces = self.pieces.of(text)?;
            if size + pieces.len() > BATCH_PIECES && !batch.is_empty() {
                vectors.extend(self.batch(&batch)?);
                batch.clear();
                size = 0;
            }
            size += pieces.len();
            batch.push(pieces);
        }
        if !batch.is_empty() {
            vectors.extend(self.batch(&batch)?);
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
