//! AdamW (<https://arxiv.org/abs/1711.05101>), as PyTorch computes it.

use crate::config::TrainConfig;
use crate::vecmath::fma;

/// The coefficients of one step.
#[derive(Debug, Clone)]
pub(crate) struct Coefficients {
    beta1: f32,
    beta2: f32,
    /// `lr / (1 - beta1^t)`.
    step_size: f32,
    /// `1 / sqrt(1 - beta2^t)`.
    inv_sqrt_bias2: f32,
    eps: f32,
    /// `1 - lr * weight_decay`.
    shrink: f32,
    grad_scale: f32,
}

impl Coefficients {
    /// For step `t` (from 1), with `factor` times the peak learning rate.
    pub(crate) fn new(c: &TrainConfig, factor: f64, t: u64, weight_decay: f64, grad_scale: f32) -> Self {
        let lr = c.lr * factor;
        let (b1, b2) = c.betas;
        let t = t as f64;
        Self {
            beta1: b1 as f32,
            beta2: b2 as f32,
            step_size: (lr / (1.0 - b1.powf(t))) as f32,
            inv_sqrt_bias2: (1.0 / (1.0 - b2.powf(t)).sqrt()) as f32,
            eps: c.eps as f32,
            shrink: (1.0 - lr * weight_decay) as f32,
            grad_scale,
        }
    }
}

/// Updates `p` and the moments `m`, `v` from the gradient `g`.
#[inline(always)]
pub(crate) fn update<const FMA: bool>(p: &mut [f32], m: &mut [f32], v: &mut [f32], g: &[f32], k: &Coefficients) {
    for (((p, m), v), g) in p.iter_mut().zip(m).zip(v).zip(g) {
        let g = g * k.grad_scale;
        *m = fma::<FMA>(k.beta1, *m, (1.0 - k.beta1) * g);
        *v = fma::<FMA>(k.beta2, *v, (1.0 - k.beta2) * g * g);
        let step = k.step_size * *m / fma::<FMA>(v.sqrt(), k.inv_sqrt_bias2, k.eps);
        *p = fma::<FMA>(*p, k.shrink, -step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two steps computed in f64, as `torch.optim.AdamW` is documented.
    #[test]
    fn agrees_with_the_definition() {
        let c = TrainConfig { lr: 0.1, betas: (0.9, 0.999), eps: 1e-8, ..TrainConfig::default() };
        let (mut p, mut m, mut v) = (vec![1.0f32, -2.0, 0.5], vec![0.0f32; 3], vec![0.0f32; 3]);
        let grads = [[0.1f32, -0.2, 3.0], [0.3f32, 0.1, -1.0], [0.0f32, 0.0, 0.0]];
        let mut want: Vec<f64> = p.iter().map(|x| f64::from(*x)).collect();
        let (mut wm, mut wv) = (vec![0.0f64; 3], vec![0.0f64; 3]);
        for (t, g) in grads.iter().enumerate() {
            let t = t as i32 + 1;
            let k = Coefficients::new(&c, 1.0, t as u64, 0.01, 1.0);
            crate::simd::adamw_update(&mut p, &mut m, &mut v, g, &k);
            for i in 0..3 {
                let g = f64::from(g[i]);
                want[i] *= 1.0 - 0.1 * 0.01;
                wm[i] = 0.9 * wm[i] + 0.1 * g;
                wv[i] = 0.999 * wv[i] + 0.001 * g * g;
                let denom = wv[i].sqrt() / (1.0 - 0.999f64.powi(t)).sqrt() + 1e-8;
                want[i] -= 0.1 / (1.0 - 0.9f64.powi(t)) * wm[i] / denom;
            }
        }
        for (a, b) in p.iter().zip(&want) {
            assert!((f64::from(*a) - b).abs() < 2e-6, "{a} {b}");
        }
        // the first step moves each weight by lr * sign(g), after the decay
        let (mut p, mut m, mut v) = (vec![1.0f32], vec![0.0f32], vec![0.0f32]);
        let k = Coefficients::new(&c, 1.0, 1, 0.01, 1.0);
        crate::simd::adamw_update(&mut p, &mut m, &mut v, &[0.37], &k);
        assert!((p[0] - 0.899).abs() < 1e-6, "{}", p[0]);
    }
}
