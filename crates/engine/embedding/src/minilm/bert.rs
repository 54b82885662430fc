//! The forward pass of BERT (<https://arxiv.org/abs/1810.04805>) on the engine's kernels.
//!
//! Texts lie behind each other without padding: only attention knows where one ends. A kernel's row
//! does not depend on what else is computed, so a text has the same vector in any company, to the
//! bit.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use autoact_kernels::{Format, Inputs, Matrix, Part, ShapeError, Team, add, gelu, layer_norm, linear, softmax};

/// The shape of a model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) width: usize,
    pub(crate) heads: usize,
    pub(crate) inner: usize,
    pub(crate) eps: f32,
}

impl Shape {
    /// Elements of a head.
    fn dim(&self) -> usize {
        self.width / self.heads
    }
}

/// A linear layer: weights `[outputs, inputs]`.
pub(crate) struct Linear {
    pub(crate) weight: Vec<f32>,
    pub(crate) bias: Vec<f32>,
}

/// Layer normalisation.
pub(crate) struct Norm {
    pub(crate) weight: Vec<f32>,
    pub(crate) bias: Vec<f32>,
}

/// A layer of the encoder.
pub(crate) struct Layer {
    /// Queries, keys and values. Queries are scaled by `1 / sqrt(dim)`.
    pub(crate) qkv: Linear,
    pub(crate) attention: Linear,
    pub(crate) attention_norm: Norm,
    pub(crate) up: Linear,
    pub(crate) down: Linear,
    pub(crate) norm: Norm,
}

/// A model's weights.
pub(crate) struct Bert {
    pub(crate) shape: Shape,
    /// Of each word piece: `[vocabulary, width]`.
    pub(crate) words: Vec<f32>,
    /// Of each position, with the first token type's: `[positions, width]`.
    pub(crate) positions: Vec<f32>,
    pub(crate) norm: Norm,
    pub(crate) layers: Vec<Layer>,
}

/// What does not belong to the model.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ForwardError {
    /// A piece or a position that the model does not have.
    #[error("piece {piece} at position {position} is unknown to the model")]
    Piece { piece: u32, position: usize },
    /// A matrix has another size than its shape says.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

impl Bert {
    /// The last states of all pieces, `[pieces, width]`. Calls `between` before each large product.
    pub(crate) fn forward(&self, team: &Team, texts: &[&[u32]], between: &dyn Fn()) -> Result<Vec<f32>, ForwardError> {
        let Shape { width, inner, .. } = self.shape;
        let mut x = self.embed(texts)?;
        let mut spans = Vec::with_capacity(texts.len());
        for text in texts {
            let start = spans.last().map_or(0, |span: &Range<usize>| span.end);
            spans.push(start..start + text.len());
        }
        let rows = x.len() / width;
        let mut inputs = Inputs::new();
        let (mut qkv, mut attended) = (vec![0.0; rows * 3 * width], vec![0.0; rows * width]);
        let (mut y, mut up) = (vec![0.0; rows * width], vec![0.0; rows * inner]);
        self.norm.apply(self.shape.eps, team, &mut x, &mut y);
        for layer in &self.layers {
            between();
            layer.qkv.apply(team, &mut inputs, &x, width, &mut qkv)?;
            between();
            self.attend(team, &qkv, &spans, &mut attended)?;
            layer.attention.apply(team, &mut inputs, &attended, width, &mut y)?;
            add(&mut x, &y);
            layer.attention_norm.apply(self.shape.eps, team, &mut x, &mut y);
            between();
            layer.up.apply(team, &mut inputs, &x, width, &mut up)?;
            team.rows(&mut up, inner, &|_, up| gelu(up));
            between();
            layer.down.apply(team, &mut inputs, &up, inner, &mut y)?;
            add(&mut x, &y);
            layer.norm.apply(self.shape.eps, team, &mut x, &mut y);
        }
        Ok(x)
    }

    /// The sums of the embeddings of pieces and positions.
    fn embed(&self, texts: &[&[u32]]) -> Result<Vec<f32>, ForwardError> {
        let width = self.shape.width;
        let mut x = Vec::with_capacity(texts.iter().map(|text| text.len()).sum::<usize>() * width);
        for text in texts {
            for (position, piece) in text.iter().enumerate() {
                let rows = row(&self.words, *piece as usize, width).zip(row(&self.positions, position, width));
                let (word, place) = rows.ok_or(ForwardError::Piece { piece: *piece, position })?;
                x.extend(word.iter().zip(place).map(|(word, place)| word + place));
            }
        }
        Ok(x)
    }

    /// Attention of each text to itself.
    fn attend(&self, team: &Team, qkv: &[f32], texts: &[Range<usize>], out: &mut [f32]) -> Result<(), ForwardError> {
        let Shape { width, heads, .. } = self.shape;
        let dim = self.shape.dim();
        // head after head, so that threads write apart from each other
        let mut apart = vec![0.0; out.len()];
        let mut rest = apart.as_mut_slice();
        let mut tasks = Vec::with_capacity(texts.len() * heads);
        for text in texts {
            for _ in 0..heads {
                let (own, others) = rest.split_at_mut(text.len() * dim);
                rest = others;
                tasks.push(Mutex::new((own, Ok(()))));
            }
        }
        team.run(tasks.len(), &|i| {
            let (text, head) = (&texts[i / heads], i % heads);
            let mut task = tasks[i].lock().unwrap_or_else(PoisonError::into_inner);
            task.1 = self.head(team, &qkv[text.start * 3 * width..text.end * 3 * width], head, task.0);
        });
        for (i, task) in tasks.into_iter().enumerate() {
            let (rows, done) = task.into_inner().unwrap_or_else(PoisonError::into_inner);
            done?;
            let (text, head) = (&texts[i / heads], i % heads);
            let out = out[text.start * width..text.end * width].chunks_exact_mut(width);
            for (out, row) in out.zip(rows.chunks_exact(dim)) {
                out[head * dim..][..dim].copy_from_slice(row);
            }
        }
        Ok(())
    }

    /// One head's attention. Both products are linear layers: the keys are the weights of the
    /// scores, the transposed values those of the result.
    fn head(&self, team: &Team, qkv: &[f32], head: usize, out: &mut [f32]) -> Result<(), ShapeError> {
        let (width, dim) = (self.shape.width, self.shape.dim());
        let n = qkv.len() / (3 * width);
        let column = |kind: usize| qkv.chunks_exact(3 * width).map(move |row| &row[kind * width + head * dim..][..dim]);
        let (mut queries, mut keys) = (Vec::with_capacity(n * dim), Vec::with_capacity(n * dim));
        column(0).for_each(|row| queries.extend_from_slice(row));
        column(1).for_each(|row| keys.extend_from_slice(row));
        let mut values = vec![0.0; n * dim];
        for (i, row) in column(2).enumerate() {
            for (values, x) in values.chunks_exact_mut(n).zip(row) {
                values[i] = *x;
            }
        }
        let (mut inputs, mut scores) = (Inputs::new(), vec![0.0; n * n]);
        inputs.set(Format::F32, &queries, dim);
        linear(team, &inputs, &[part(&keys, n, dim, None)?], &[], &mut scores, n);
        softmax(&mut scores, n);
        inputs.set(Format::F32, &scores, n);
        linear(team, &inputs, &[part(&values, dim, n, None)?], &[], out, dim);
        Ok(())
    }
}

impl Linear {
    fn apply(&self, team: &Team, inputs: &mut Inputs, x: &[f32], cols: usize, y: &mut [f32]) -> Result<(), ShapeError> {
        inputs.set_with(team, Format::F32, x, cols, false);
        let outputs = self.bias.len();
        linear(team, inputs, &[part(&self.weight, outputs, cols, Some(&self.bias))?], &[], y, outputs);
        Ok(())
    }
}

impl Norm {
    /// Normalises `x`, with `buffer` of the same size.
    fn apply(&self, eps: f32, team: &Team, x: &mut Vec<f32>, buffer: &mut Vec<f32>) {
        let width = self.weight.len();
        team.rows(buffer, width, &|row, y| layer_norm(&x[row * width..][..y.len()], &self.weight, &self.bias, eps, y));
        std::mem::swap(x, buffer);
    }
}

/// A row of a table.
fn row(table: &[f32], row: usize, width: usize) -> Option<&[f32]> {
    table.get(row * width..(row + 1) * width)
}

fn part<'a>(weight: &'a [f32], rows: usize, cols: usize, bias: Option<&'a [f32]>) -> Result<Part<'a>, ShapeError> {
    Ok(Part { weight: Matrix::new(Format::F32, bytemuck::cast_slice(weight), rows, cols)?, bias, column: 0 })
}
