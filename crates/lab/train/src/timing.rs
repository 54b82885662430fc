//! Time measurement of the phases of a training step.

use std::time::{Duration, Instant};

/// A phase of a training step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Matrix products of the forward pass.
    ForwardGemm,
    /// Attention, forward.
    AttentionForward,
    /// Norms, rotary embedding, SwiGLU, copies, in both directions.
    Elementwise,
    /// The output head and the loss, in both directions.
    Loss,
    /// Matrix products of the backward pass.
    BackwardGemm,
    /// Attention, backward.
    AttentionBackward,
    /// The adapters' own products, in both directions. Their term of a base's output or input
    /// gradient counts as the base's product.
    Lora,
    /// Summing the shards' gradients, clipping and the optimiser's update (wall-clock time).
    Optimizer,
    /// Waiting for the next batch (wall-clock time).
    Data,
}

impl Phase {
    /// All phases in order.
    pub const ALL: [Self; 9] = [
        Self::ForwardGemm,
        Self::AttentionForward,
        Self::Elementwise,
        Self::Loss,
        Self::BackwardGemm,
        Self::AttentionBackward,
        Self::Lora,
        Self::Optimizer,
        Self::Data,
    ];
}

/// Time per phase, summed over workers unless the phase is in wall-clock time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timings([Duration; Phase::ALL.len()]);

impl Timings {
    /// The time of one phase.
    #[must_use]
    pub fn get(&self, phase: Phase) -> Duration {
        self.0[phase as usize]
    }

    pub(crate) fn add(&mut self, phase: Phase, time: Duration) {
        self.0[phase as usize] += time;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (a, b) in self.0.iter_mut().zip(other.0) {
            *a += b;
        }
    }
}

/// A stopwatch that adds each lap to a phase.
pub(crate) struct Stopwatch {
    last: Instant,
    pub(crate) timings: Timings,
}

impl Stopwatch {
    pub(crate) fn new() -> Self {
        Self { last: Instant::now(), timings: Timings::default() }
    }

    pub(crate) fn start(&mut self) {
        self.last = Instant::now();
    }

    pub(crate) fn lap(&mut self, phase: Phase) {
        let now = Instant::now();
        self.timings.add(phase, now - self.last);
        self.last = now;
    }
}
