//! Progress reports of a run.

use std::time::Instant;

use crate::packing::PackStats;

/// Weight of the newest loss in the smoothed one.
const EMA: f64 = 0.05;
/// Weight of the newest step in the smoothed speed.
const SPEED_EMA: f64 = 0.1;

/// The state of a run after a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Steps done.
    pub step: u64,
    /// Steps in the whole run.
    pub total: u64,
    /// Tokens computed so far, over all runs of this training.
    pub tokens: u64,
    /// Mean loss per target of this step, in nats.
    pub loss: f64,
    /// Smoothed loss.
    pub loss_ema: f64,
    /// AdamW's learning rate in this step.
    pub lr: f64,
    /// Global gradient norm before clipping.
    pub grad_norm: f64,
    /// Recent speed, data and optimiser included.
    pub tokens_per_second: f64,
    /// Time left at that speed.
    pub eta_seconds: f64,
    /// What happened to the documents so far.
    pub data: PackStats,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Report {
    /// Steps done, those of earlier runs included.
    pub steps: u64,
    /// Tokens computed, those of earlier runs included.
    pub tokens: u64,
    /// Smoothed loss at the end (`NaN` if no step was made).
    pub loss_ema: f64,
    /// Wall time of this run.
    pub seconds: f64,
    /// Whether the caller stopped it early.
    pub stopped: bool,
    /// What happened to the documents.
    pub data: PackStats,
}

/// Follows the speed of a run.
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

    /// Notes a step of `tokens`; returns tokens per second and seconds per step.
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

/// The next smoothed loss.
pub(crate) fn smooth(before: Option<f64>, loss: f64) -> f64 {
    before.map_or(loss, |b| b + EMA * (loss - b))
}
