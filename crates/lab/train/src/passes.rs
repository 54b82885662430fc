//! Runs micro-batches on the worker threads, in one number format.

use std::sync::Arc;

use autoact_base::random::mix;

use crate::config::{Precision, TrainConfig};
use crate::element::{Bf16, Element};
use crate::histories::Histories;
use crate::lora::LoraWeights;
use crate::lora_panels::LoraPanels;
use crate::lora_pass::LoraPass;
use crate::model::{Gradient, Net};
use crate::model_config::ModelConfig;
use crate::packed::PackedWeights;
use crate::packing::MicroBatch;
use crate::pool;
use crate::rope::RopeTable;
use crate::timing::Timings;
use crate::weights::Weights;
use crate::workspace::Workspace;

/// The parameters of a pass.
#[derive(Clone, Copy)]
pub(crate) struct Parameters<'a> {
    pub(crate) model: &'a ModelConfig,
    pub(crate) weights: &'a Weights,
    pub(crate) lora: Option<&'a LoraWeights>,
}

/// Forward and backward passes.
pub(crate) trait Passes: Send {
    /// Computes the gradient of each shard: of the mean loss over `loss_tokens` targets. `key` is
    /// the seed of the dropout masks, if there is dropout. Returns the sum of the losses in nats.
    fn gradients(
        &mut self,
        parameters: Parameters<'_>,
        micros: &[MicroBatch],
        loss_tokens: u64,
        key: Option<u64>,
        shards: &mut [Vec<f32>],
    ) -> f64;

    /// The sum of the losses in nats.
    fn losses(&mut self, parameters: Parameters<'_>, micros: &[MicroBatch]) -> f64;

    /// Time spent so far, summed over the workers.
    fn timings(&self) -> Timings;
}

/// The passes of a training with `threads` workers.
pub(crate) fn new(model: &ModelConfig, config: &TrainConfig, weights: &Weights, threads: usize) -> Box<dyn Passes> {
    match config.precision {
        Precision::F32 => Box::new(Runner::<f32>::new(model, config, weights, threads)),
        Precision::Bf16 => Box::new(Runner::<Bf16>::new(model, config, weights, threads)),
    }
}

struct Runner<E> {
    workers: Vec<Workspace<E>>,
    rope: RopeTable,
    packed: PackedWeights,
}

impl<E: Element> Runner<E> {
    fn new(model: &ModelConfig, config: &TrainConfig, weights: &Weights, threads: usize) -> Self {
        let histories = Arc::new(Histories::new(if config.lora.is_some() { config.history_bytes } else { 0 }));
        let mut workers: Vec<_> = (0..threads).map(|_| Workspace::new(model, config, histories.clone())).collect();
        let mut packed = PackedWeights::new::<E>(model);
        packed.pack::<E, _>(model, weights.layout(), weights.data(), &mut workers);
        Self { workers, rope: RopeTable::new(config.seq_len, model.head_dim, model.rope_theta), packed }
    }

    /// The packed adapters; without adapters the weights are packed anew, because they change.
    fn packed(&mut self, p: Parameters<'_>) -> Option<LoraPanels> {
        let adapters = p.lora.map(LoraPanels::pack::<E>);
        if adapters.is_none() {
            self.packed.pack::<E, _>(p.model, p.weights.layout(), p.weights.data(), &mut self.workers);
        }
        adapters
    }
}

/// The model as workers see it.
fn net<'a>(p: Parameters<'a>, packed: &'a PackedWeights, rope: &'a RopeTable, panels: Option<&'a LoraPanels>, key: Option<u64>) -> Net<'a> {
    Net {
        config: p.model,
        layout: p.weights.layout(),
        weights: p.weights.data(),
        packed,
        rope,
        lora: p.lora.zip(panels).map(|(weights, panels)| LoraPass::new(weights, panels, key)),
    }
}

impl<E: Element> Passes for Runner<E> {
    fn gradients(&mut self, p: Parameters<'_>, micros: &[MicroBatch], loss_tokens: u64, key: Option<u64>, shards: &mut [Vec<f32>]) -> f64 {
        let adapters = self.packed(p);
        let scale = (1.0 / loss_tokens.max(1) as f64) as f32;
        let count = shards.len();
        let mut losses = vec![0.0f64; count];
        let (packed, rope) = (&self.packed, &self.rope);
        let tasks: Vec<_> = shards.iter_mut().zip(&mut losses).enumerate().collect();
        pool::run(&mut self.workers, tasks, |worker, (shard, (grad, loss))| {
            grad.fill(0.0);
            for (i, micro) in micros.iter().enumerate().skip(shard).step_by(count) {
                let net = net(p, packed, rope, adapters.as_ref(), key.map(|key| mix(key ^ mix(i as u64))));
                let grad = match p.lora {
                    Some(_) => Gradient::Lora(grad),
                    None => Gradient::Full(grad),
                };
                *loss += net.run(worker, micro, scale, grad);
            }
        });
        losses.iter().sum()
    }

    fn losses(&mut self, p: Parameters<'_>, micros: &[MicroBatch]) -> f64 {
        let adapters = self.packed(p);
        let net = net(p, &self.packed, &self.rope, adapters.as_ref(), None);
        let mut losses = vec![0.0f64; micros.len()];
        let tasks: Vec<_> = micros.iter().zip(&mut losses).collect();
        pool::run(&mut self.workers, tasks, |worker, (micro, loss)| {
            *loss = net.run(worker, micro, 0.0, Gradient::None);
        });
        losses.iter().sum()
    }

    fn timings(&self) -> Timings {
        let mut all = Timings::default();
        self.workers.iter().for_each(|w| all.merge(&w.watch.timings));
        all
    }
}
