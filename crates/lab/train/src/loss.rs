//! Softmax cross-entropy, and its gradient.

use crate::element::Element;
use crate::vecmath::{exp_sum, max};

/// Sum of the losses of `logits` `[M, V]`, which are overwritten, for `targets` `[M]`, in nats.
/// `gradient` (rows `ld` elements apart, padded with zeros) gets the gradient of the logits times
/// `scale`; it is empty if it is not wanted.
#[inline(always)]
pub(crate) fn cross_entropy<const FMA: bool, E: Element>(
    logits: &mut [f32],
    vocab: usize,
    targets: &[u32],
    scale: f32,
    gradient: &mut [E],
    ld: usize,
) -> f64 {
    let mut total = 0.0f64;
    let mut gradients = gradient.chunks_exact_mut(ld);
    for (row, target) in logits.chunks_exact_mut(vocab).zip(targets) {
        let target = *target as usize;
        let picked = row[target];
        let top = max(row);
        let sum = exp_sum::<FMA>(row, 1.0, top);
        total += f64::from(sum.ln() + top - picked);
        let Some(gradient) = gradients.next() else { continue };
        let k = scale / sum;
        for (g, v) in gradient.iter_mut().zip(&*row) {
            *g = E::round(v * k);
        }
        gradient[target] = E::round(row[target] * k - scale);
        gradient[vocab..].fill(E::default());
    }
    total
}
