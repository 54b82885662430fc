//! Linear layers. Several with a common input are computed together, with the updates of adapters.

use std::ops::Range;

use autoact_kernels::{Format, GatedBuffers, Inputs, LowRank, Part, Team, gated, linear};
use autoact_lora::Adapter;

use crate::LoadError;
use crate::weights::{Stored, Weights};

/// One linear layer of the checkpoint.
#[derive(Debug)]
struct Layer {
    /// Module name, such as `model.layers.0.self_attn.q_proj`.
    name: String,
    /// `[out, in]`, as in the checkpoint.
    weight: Stored,
    bias: Option<Vec<f32>>,
}

/// `y = W x + b` for one or more layers with a common input; their outputs are concatenated.
#[derive(Debug)]
pub(crate) struct Linear {
    layers: Vec<Layer>,
    format: Format,
    features_in: usize,
    features_out: usize,
}

impl Linear {
    /// Loads the layers in `parts`, given as name and number of outputs.
    pub(crate) fn load(weights: &Weights, features_in: usize, bias: bool, parts: &[(String, usize)]) -> Result<Self, LoadError> {
        let load = |(name, out): &(String, usize)| {
            let weight = weights.matrix(&format!("{name}.weight"), *out, features_in)?;
            let bias = if bias { Some(weights.vector(&format!("{name}.bias"), *out)?) } else { None };
            Ok(Layer { name: name.clone(), weight, bias })
        };
        let layers = parts.iter().map(load).collect::<Result<Vec<_>, LoadError>>()?;
        let format = layers.first().map_or(Format::F32, |l| l.weight.format());
        if let Some(other) = layers.iter().find(|l| l.weight.format() != format) {
            return Err(LoadError::MixedFormats { tensor: other.name.clone(), found: other.weight.format(), expected: format });
        }
        Ok(Self { format, features_in, features_out: parts.iter().map(|p| p.1).sum(), layers })
    }

    /// A layer over a matrix that is already loaded: the tied output head.
    pub(crate) fn tied(weight: &Stored, features_in: usize, name: &str) -> Self {
        Self {
            format: weight.format(),
            features_in,
            features_out: weight.rows(),
            layers: vec![Layer { name: name.to_owned(), weight: weight.clone(), bias: None }],
        }
    }

    /// Its layers by module name, with numbers of inputs and outputs.
    pub(crate) fn layout(&self) -> impl Iterator<Item = (String, (usize, usize))> {
        self.layers.iter().map(|l| (l.name.clone(), (self.features_in, l.weight.rows())))
    }

    /// Its matrices.
    pub(crate) fn stored(&self) -> impl Iterator<Item = &Stored> {
        self.layers.iter().map(|l| &l.weight)
    }

    /// Forward pass: `x` `[n, in]` to `y` `[n, out]`. `updates` are adapters' updates of ranges of
    /// rows.
    pub(crate) fn forward(&self, team: &Team, inputs: &mut Inputs, x: &[f32], updates: &Updates<'_>, y: &mut [f32]) {
        inputs.set_with(team, self.format, x, self.features_in, !updates.is_empty());
        self.product(team, inputs, updates, y);
    }

    /// [`Linear::forward`] of inputs in its format.
    pub(crate) fn product(&self, team: &Team, inputs: &Inputs, updates: &Updates<'_>, y: &mut [f32]) {
        linear(team, inputs, &self.parts(), &low_rank(updates), y, self.features_out);
    }

    /// Forward pass of a gate and what it gates, in this order, with `inputs` and `buffers` for its
    /// use; the result is the inputs `to` of `next`, whose rows adapters update if `updated`.
    #[allow(clippy::too_many_arguments)] // a layer, the next one, and what lies between
    pub(crate) fn gated(
        &self,
        team: &Team,
        inputs: &mut Inputs,
        x: &[f32],
        updates: &Updates<'_>,
        buffers: &mut GatedBuffers,
        (to, next, updated): (&mut Inputs, &Self, bool),
    ) {
        inputs.set_with(team, self.format, x, self.features_in, !updates.is_empty());
        let [gate, up] = self.parts()[..] else { unreachable!("`{}` layers as a gate and what it gates", self.layers.len()) };
        gated(team, inputs, &[gate, up], &low_rank(updates), buffers, to, next.format, updated);
    }

    fn parts(&self) -> Vec<Part<'_>> {
        let mut column = 0;
        let part = |layer: &'_ Layer, column: &mut usize| {
            let at = *column;
            *column += layer.weight.rows();
            at
        };
        self.layers.iter().map(|l| Part { weight: l.weight.matrix(), bias: l.bias.as_deref(), column: part(l, &mut column) }).collect()
    }
}

/// Updates of ranges of rows.
pub(crate) type Updates<'a> = [(Range<usize>, &'a Update)];

fn low_rank<'a>(updates: &Updates<'a>) -> Vec<LowRank<'a>> {
    let parts = updates.iter().flat_map(|(rows, update)| update.parts.iter().map(|p| (rows.clone(), p)));
    parts.map(|(rows, p)| LowRank { rows, column: p.column, rank: p.rank, a: &p.a, b: &p.b }).collect()
}

/// An adapter's update of one [`Linear`]: `y += B (A x)` for each layer that the adapter changes.
#[derive(Debug)]
pub(crate) struct Update {
    parts: Vec<UpdatePart>,
}

#[derive(Debug)]
struct UpdatePart {
    column: usize,
    rank: usize,
    /// `[r, in]`
    a: Vec<f32>,
    /// `[r, out]`, multiplied by the adapter's scale.
    b: Vec<f32>,
}

impl Update {
    /// `None` if the adapter changes no layer of `linear`. Shapes must have been checked.
    pub(crate) fn new(linear: &Linear, adapter: &Adapter) -> Option<Self> {
        let mut column = 0;
        let mut parts = Vec::new();
        for layer in &linear.layers {
            if let Some(pair) = adapter.modules.get(&layer.name) {
                let (out, rank) = (pair.b.rows, pair.b.cols);
                let b = (0..rank * out).map(|i| pair.scale * pair.b.data[i % out * rank + i / out]).collect();
                parts.push(UpdatePart { column, rank: pair.a.rows, a: pair.a.data.clone(), b });
            }
            column += layer.weight.rows();
        }
        (!parts.is_empty()).then_some(Self { parts })
    }
}
