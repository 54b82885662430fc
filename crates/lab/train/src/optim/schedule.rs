//! The learning rate schedule.

use crate::config::{Decay, TrainConfig};

/// The fraction of the peak learning rate at `step` (from 0).
pub(crate) fn factor(c: &TrainConfig, step: u64) -> f64 {
    let (total, warmup) = (c.total_steps(), c.total_warmup());
    if step < warmup {
        return (step + 1) as f64 / warmup as f64;
    }
    let length = total.saturating_sub(warmup).max(1) as f64;
    let done = ((step - warmup) as f64 / length).min(1.0);
    let left = match c.decay {
        Decay::Constant => return 1.0,
        Decay::Linear => 1.0 - done,
        Decay::Cosine => 0.5 * (1.0 + (std::f64::consts::PI * done).cos()),
    };
    c.min_lr_ratio + (1.0 - c.min_lr_ratio) * left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Length;

    #[test]
    fn warms_up_and_falls_to_the_floor() {
        let mut c = TrainConfig {
            length: Length::Steps(100),
            warmup_ratio: 0.1,
            min_lr_ratio: 0.2,
            decay: Decay::Linear,
            ..TrainConfig::default()
        };
        assert!((factor(&c, 0) - 0.1).abs() < 1e-12);
        assert!((factor(&c, 9) - 1.0).abs() < 1e-12);
        assert!((factor(&c, 10) - 1.0).abs() < 1e-12);
        assert!((factor(&c, 55) - 0.6).abs() < 1e-12);
        assert!((factor(&c, 100) - 0.2).abs() < 1e-12);
        c.decay = Decay::Cosine;
        assert!((factor(&c, 55) - 0.6).abs() < 1e-12);
        assert!((factor(&c, 1000) - 0.2).abs() < 1e-12);
        c.decay = Decay::Constant;
        assert_eq!(factor(&c, 99), 1.0);
    }
}
