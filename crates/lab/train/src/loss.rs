//! Softmax cross-entropy. The gradient replaces the logits.

use crate::vecmath::{exp_sum, max};

/// Sum of the losses of `logits` `[M, V]` for `targets` `[M]`, in nats. Each row of `logits` is
/// replaced by its gradient times `scale`.
#[inline(always)]
pub(crate) fn cross_entropy<const FMA: bool>(logits: &mut [f32], vocab: usize, targets: &[u32], scale: f32) -> f64 {
    let mut total = 0.0f64;
    for (row, target) in logits.chunks_exact_mut(vocab).zip(targets) {
        let target = *target as usize;
        let picked = row[target];
        let top = max(row);
        let sum = exp_sum::<FMA>(row, 1.0, top);
        total += f64::from(sum.ln() + top - picked);
        let k = scale / sum;
        for v in row.iter_mut() {
            *v *= k;
        }
        row[target] -= scale;
    }
    total
}
