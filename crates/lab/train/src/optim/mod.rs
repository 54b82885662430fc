//! The optimisers.

pub(crate) mod adamw;
pub(crate) mod muon;
pub(crate) mod schedule;

use crate::config::{Optimizer, TrainConfig};
use crate::layout::{TensorKind, TensorSpec};
use crate::pool;

/// Elements in one task. The size is fixed, so that sums have a fixed order.
const BLOCK: usize = 1 << 16;

/// The optimiser's state of all trained parameters.
pub(crate) struct OptimState {
    /// First moment (AdamW) or momentum (Muon).
    pub(crate) m: Vec<f32>,
    /// Second moment (AdamW); unused for parameters that Muon updates.
    pub(crate) v: Vec<f32>,
    /// Number of steps done.
    pub(crate) step: u64,
}

impl OptimState {
    pub(crate) fn new(len: usize) -> Self {
        Self { m: vec![0.0; len], v: vec![0.0; len], step: 0 }
    }
}

/// Sums the shards' gradients into the first one, in shard order; returns the sum of squares.
pub(crate) fn reduce<W: Send>(workers: &mut [W], shards: &mut [Vec<f32>]) -> f64 {
    let Some((first, rest)) = shards.split_first_mut() else { return 0.0 };
    let mut sums = vec![0.0f64; first.len().div_ceil(BLOCK)];
    let tasks: Vec<_> = first.chunks_mut(BLOCK).zip(&mut sums).enumerate().collect();
    let rest = &*rest;
    pool::run(workers, tasks, |_, (i, (block, sum))| {
        let at = i * BLOCK;
        for shard in rest {
            crate::simd::add_into(block, &shard[at..at + block.len()]);
        }
        *sum = crate::simd::sum_squares(block);
    });
    sums.iter().sum()
}

/// One task of an update.
enum Task<'a> {
    AdamW(Slices<'a>, adamw::Coefficients),
    Muon(Slices<'a>, &'a TensorSpec),
}

/// The same range of parameters, moments and gradient.
struct Slices<'a> {
    p: &'a mut [f32],
    m: &'a mut [f32],
    v: &'a mut [f32],
    g: &'a mut [f32],
}

impl<'a> Slices<'a> {
    fn split(self, at: usize) -> (Self, Self) {
        let (p, p2) = self.p.split_at_mut(at);
        let (m, m2) = self.m.split_at_mut(at);
        let (v, v2) = self.v.split_at_mut(at);
        let (g, g2) = self.g.split_at_mut(at);
        (Self { p, m, v, g }, Self { p: p2, m: m2, v: v2, g: g2 })
    }
}

/// Updates `params` from the gradient `grad` times `grad_scale`. The learning rates are `factor`
/// times their peaks. `tensors` must cover the vector without gaps.
#[allow(clippy::too_many_arguments)]
pub(crate) fn update(
    scratch: &mut [muon::Scratch],
    config: &TrainConfig,
    tensors: &[TensorSpec],
    params: &mut [f32],
    grad: &mut [f32],
    state: &mut OptimState,
    factor: f64,
    grad_scale: f32,
) {
    state.step += 1;
    let coefficients = |decay: f64| adamw::Coefficients::new(config, factor, state.step, decay, grad_scale);
    let (plain, decayed) = (coefficients(0.0), coefficients(config.weight_decay));
    let mut rest = Slices { p: params, m: &mut state.m, v: &mut state.v, g: grad };
    let mut tasks = Vec::new();
    for spec in tensors {
        let (mut part, tail) = rest.split(spec.len());
        rest = tail;
        if config.optimizer == Optimizer::Muon && spec.kind == TensorKind::Matrix {
            tasks.push(Task::Muon(part, spec));
            continue;
        }
        let k = if spec.kind == TensorKind::Norm { &plain } else { &decayed };
        while part.p.len() > BLOCK {
            let (block, tail) = part.split(BLOCK);
            tasks.push(Task::AdamW(block, k.clone()));
            part = tail;
        }
        tasks.push(Task::AdamW(part, k.clone()));
    }
    // the longest tasks first, so that all workers end at about the same time
    tasks.sort_by_key(|t| {
        std::cmp::Reverse(match t {
            Task::AdamW(..) => 0,
            Task::Muon(_, spec) => spec.len(),
        })
    });
    let lr = (config.muon_lr * factor) as f32;
    pool::run(scratch, tasks, |scratch, task| match task {
        Task::AdamW(s, k) => crate::simd::adamw_update(s.p, s.m, s.v, s.g, &k),
        Task::Muon(s, spec) => {
            let k = muon::Coefficients {
                lr,
                momentum: config.muon_momentum as f32,
                weight_decay: config.weight_decay as f32,
                grad_scale,
                precision: config.precision,
            };
            muon::update(s.p, s.m, s.g, spec.rows, spec.cols, &k, scratch);
        }
    });
}
