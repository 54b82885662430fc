//! Progress reports of a run.

use std::time::Instant;

use crate::packing::PackStats;

/// Weight of the newest loss in the exponential moving average.
const EMA: f64 = 0.05;
/// Weight of the newest step in the exponential moving average of the speed.
const SPEED_EMA: f64 = 0.1;

/// The state of a run after a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Number of optimiser steps done.
    pub step: u64,
    /// Number of optimiser steps in the run.
    pub total: u64,
    /// Tokens processed, including those before the run was resumed.
    pub tokens: u64,
    /// Mean loss of this step in nats per target.
    pub loss: f64,
    /// Exponential moving average of the loss.
    pub loss_ema: f64,
    /// AdamW's learning rate in this step.
    pub lr: f64,
    /// Global gradient norm before clipping.
    pub grad_norm: f64,
    /// Recent speed, including data and optimiser.
    pub tokens_per_second: f64,
    /// Remaining time at that speed, in seconds.
    pub eta_seconds: f64,
    /// Counts of documents so far.
    pub data: PackStats,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Report {
    /// Number of optimiser steps, including those before the run was resumed.
    pub steps: u64,
    /// Tokens processed, including those before the run was resumed.
    pub tokens: u64,
    /// Exponential moving average of the loss at the end; `NaN` if no step was done.
    pub loss_ema: f64,
    /// Wall-clock time of this run in seconds.
    pub seconds: f64,
    /// Whether the caller stopped it before its end.
    pub stopped: bool,
    /// Counts of documents.
    pub data: PackStats,
}

/// Measures the speed of a run.
pub(crate) struct Speed {
    pub(crate) started: Instant,
    last: Instant,
    seconds_per_token: Option<f64>,
    seconds_per_step: f64,
}

impl Speed {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self { started: now, last: now, seconds_per_token: None, seconds_per_step: 0.0 }
    }

    /// Records a step of `tokens` tokens. Returns tokens per second and seconds per step.
    pub(crate) fn step(&mut self, tokens: u64) -> (f64, f64) {
        let now = Instant::now();
        let step = (now - self.last).as_secs_f64();
        self.last = now;
        let token = step / tokens.max(1) as f64;
        match &mut self.seconds_per_token {
            Some(smooth) => {
                *smooth += SPEED_EMA * (token - *smooth);
                self.seconds_per_step += SPEED_EMA * (step - self.seconds_per_step);
            }
            None => {
                self.seconds_per_token = Some(token);
                self.seconds_per_step = step;
            }
        }
        (1.0 / self.seconds_per_token.unwrap_or(token).max(1e-12), self.seconds_per_step)
    }
}

/// The exponential moving average after a further loss.
pub(crate) fn smooth(before: Option<f64>, loss: f64) -> f64 {
    before.map_or(loss, |b| b + EMA * (loss - b))
}
