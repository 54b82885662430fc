//! Weights of a checkpoint.

use std::path::Path;

use autoact_checkpoint::{FileError, decode, parse};
use safetensors::SafeTensors;

use super::bert::{Bert, Layer, Linear, Norm, Shape};
use super::files::{Config, REFETCH, model};
use crate::EmbedError;

/// What a checkpoint with a head (`BertForMaskedLM`) puts before each name.
const PREFIX: &str = "bert.";

struct Tensors<'a> {
    path: &'a Path,
    tensors: SafeTensors<'a>,
    prefix: &'static str,
}

impl Bert {
    /// Reads the weights of a `model.safetensors`.
    pub(crate) fn load(path: &Path, bytes: &[u8], config: &Config) -> Result<Bert, EmbedError> {
        let tensors = parse(path, bytes).map_err(|error| unfit(path, &error))?;
        let prefix = if tensors.names().iter().any(|name| name.starts_with(PREFIX)) { PREFIX } else { "" };
        let tensors = Tensors { path, tensors, prefix };
        let (width, inner) = (config.hidden_size, config.intermediate_size);
        let shape = Shape { width, heads: config.num_attention_heads, inner, eps: config.layer_norm_eps };
        let words = tensors.read("embeddings.word_embeddings.weight", &[config.vocab_size, width])?;
        let mut positions = tensors.read("embeddings.position_embeddings.weight", &[config.max_position_embeddings, width])?;
        let types = tensors.read("embeddings.token_type_embeddings.weight", &[config.type_vocab_size, width])?;
        for row in positions.chunks_exact_mut(width) {
            for (x, first) in row.iter_mut().zip(&types) {
                *x += first;
            }
        }
        let norm = tensors.norm("embeddings.LayerNorm", width)?;
        let layer = |n| tensors.layer(&format!("encoder.layer.{n}"), &shape);
        let layers = (0..config.num_hidden_layers).map(layer).collect::<Result<_, _>>()?;
        Ok(Bert { shape, words, positions, norm, layers })
    }
}

impl Tensors<'_> {
    fn layer(&self, name: &str, shape: &Shape) -> Result<Layer, EmbedError> {
        let (width, inner) = (shape.width, shape.inner);
        let mut qkv = self.linear(&format!("{name}.attention.self.query"), width, width)?;
        let scale = 1.0 / ((width / shape.heads) as f32).sqrt();
        qkv.weight.iter_mut().chain(&mut qkv.bias).for_each(|x| *x *= scale);
        for other in ["key", "value"] {
            let other = self.linear(&format!("{name}.attention.self.{other}"), width, width)?;
            qkv.weight.extend(other.weight);
            qkv.bias.extend(other.bias);
        }
        Ok(Layer {
            qkv,
            attention: self.linear(&format!("{name}.attention.output.dense"), width, width)?,
            attention_norm: self.norm(&format!("{name}.attention.output.LayerNorm"), width)?,
            up: self.linear(&format!("{name}.intermediate.dense"), inner, width)?,
            down: self.linear(&format!("{name}.output.dense"), width, inner)?,
            norm: self.norm(&format!("{name}.output.LayerNorm"), width)?,
        })
    }

    fn linear(&self, name: &str, outputs: usize, inputs: usize) -> Result<Linear, EmbedError> {
        let weight = self.read(&format!("{name}.weight"), &[outputs, inputs])?;
        Ok(Linear { weight, bias: self.read(&format!("{name}.bias"), &[outputs])? })
    }

    fn norm(&self, name: &str, width: usize) -> Result<Norm, EmbedError> {
        Ok(Norm { weight: self.read(&format!("{name}.weight"), &[width])?, bias: self.read(&format!("{name}.bias"), &[width])? })
    }

    fn read(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, EmbedError> {
        let name = format!("{}{name}", self.prefix);
        let view = self.tensors.tensor(&name).map_err(|_| model(self.path, format!("it has no tensor `{name}`"), REFETCH))?;
        if view.shape() != shape {
            let reason = format!("tensor `{name}` is {:?}, but `config.json` says {shape:?}", view.shape());
            return Err(model(self.path, reason, REFETCH));
        }
        let mut numbers = vec![0.0; shape.iter().product()];
        decode(self.path, &name, &view, &mut numbers).map_err(|error| unfit(self.path, &error))?;
        Ok(numbers)
    }
}

fn unfit(path: &Path, error: &FileError) -> EmbedError {
    let reason = if let FileError::Format { message, .. } = error { message.clone() } else { error.to_string() };
    model(path, reason, REFETCH)
}
