//! The model's matrices, packed for products in both directions. Frozen ones are packed once.

use crate::element::Element;
use crate::layout::{LayerOffsets, Layout};
use crate::lora::Linear;
use crate::model_config::ModelConfig;
use crate::panels::Panels;
use crate::pool;

/// The packed matrices of one layer.
#[derive(Debug)]
pub(crate) struct PackedLayer {
    /// `W^T` of each linear layer, for the forward pass.
    forward: [Panels; 7],
    /// `W` of the products that give the gradient of an input: all of an input's matrices in one.
    pub(crate) qkv_back: Panels,
    pub(crate) o_back: Panels,
    pub(crate) gate_up_back: Panels,
    pub(crate) down_back: Panels,
}

impl PackedLayer {
    fn new<E: Element>(m: &ModelConfig) -> Self {
        let (c, inner) = (m.hidden_size, m.intermediate_size);
        let room = |linear: Linear| {
            let (inputs, outputs) = linear.dims(m);
            Panels::room::<E>(inputs, outputs)
        };
        Self {
            forward: Linear::ALL.map(room),
            qkv_back: Panels::room::<E>(m.qkv_width(), c),
            o_back: Panels::room::<E>(c, m.q_width()),
            gate_up_back: Panels::room::<E>(2 * inner, c),
            down_back: Panels::room::<E>(c, inner),
        }
    }

    fn pack<E: Element>(&mut self, m: &ModelConfig, at: &LayerOffsets, weights: &[f32]) {
        let (c, q, kv, inner) = (m.hidden_size, m.q_width(), m.kv_width(), m.intermediate_size);
        let starts = [at.qkv, at.qkv + q * c, at.qkv + (q + kv) * c, at.o, at.gate_up, at.gate_up + inner * c, at.down];
        for ((panels, linear), start) in self.forward.iter_mut().zip(Linear::ALL).zip(starts) {
            let (inputs, outputs) = linear.dims(m);
            panels.pack_transposed::<f32, E>(&weights[start..], inputs, outputs, inputs);
        }
        self.qkv_back.pack_rows::<f32, E>(&weights[at.qkv..], c, m.qkv_width(), c);
        self.o_back.pack_rows::<f32, E>(&weights[at.o..], q, c, q);
        self.gate_up_back.pack_rows::<f32, E>(&weights[at.gate_up..], c, 2 * inner, c);
        self.down_back.pack_rows::<f32, E>(&weights[at.down..], inner, c, inner);
    }

    pub(crate) fn forward(&self, linear: Linear) -> &Panels {
        &self.forward[linear as usize]
    }
}

/// All packed matrices of a model.
#[derive(Debug)]
pub(crate) struct PackedWeights {
    pub(crate) layers: Vec<PackedLayer>,
    pub(crate) head: Panels,
    pub(crate) head_back: Panels,
}

impl PackedWeights {
    /// Room for a model's matrices.
    pub(crate) fn new<E: Element>(m: &ModelConfig) -> Self {
        Self {
            layers: (0..m.num_hidden_layers).map(|_| PackedLayer::new::<E>(m)).collect(),
            head: Panels::room::<E>(m.hidden_size, m.vocab_size),
            head_back: Panels::room::<E>(m.vocab_size, m.hidden_size),
        }
    }

    /// Packs the weights as they are now, on the threads of `workers`.
    pub(crate) fn pack<E: Element, W: Send>(&mut self, m: &ModelConfig, layout: &Layout, weights: &[f32], workers: &mut [W]) {
        enum Task<'a> {
            Head(&'a mut Panels),
            HeadBack(&'a mut Panels),
            Layer(&'a mut PackedLayer, &'a LayerOffsets),
        }
        let (c, vocab) = (m.hidden_size, m.vocab_size);
        let head = &weights[layout.head..];
        let mut tasks = vec![Task::Head(&mut self.head), Task::HeadBack(&mut self.head_back)];
        tasks.extend(self.layers.iter_mut().zip(&layout.layers).map(|(layer, at)| Task::Layer(layer, at)));
        pool::run(workers, tasks, |_, task| match task {
            Task::Head(panels) => panels.pack_transposed::<f32, E>(head, c, vocab, c),
            Task::HeadBack(panels) => panels.pack_rows::<f32, E>(head, c, vocab, c),
            Task::Layer(layer, at) => layer.pack::<E>(m, at, weights),
        });
    }
}
