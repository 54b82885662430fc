//! Two fused operations for the CPU, where a small model spends its time on the overhead of many small ones.
//! Every other device gets the same result from the tensor library's own operations.

use candle_core::{CpuStorage, CustomOp1, D, DType, Device, InplaceOp1, Layout, Result, Shape, Tensor, bail};

/// Which keys a block of queries may look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Causal {
    /// Queries in the block.
    pub(crate) queries: usize,
    /// Position of the first query in its sequence.
    pub(crate) first_query: usize,
    /// Position of the first key.
    pub(crate) first_key: usize,
    /// A query sees this many positions, its own included.
    pub(crate) window: usize,
}

impl Causal {
    /// Keys (as columns) that query `i` of the block may see, out of `keys`.
    fn columns(&self, i: usize, keys: usize) -> std::ops::Range<usize> {
        let end = self.first_query + i + 1;
        let start = end.saturating_sub(self.window).saturating_sub(self.first_key);
        let end = (end - self.first_key).min(keys);
        start.min(end)..end
    }
}

/// Softmax over the keys each query may see, zero elsewhere. Takes and gives [heads, group * queries, keys], where a
/// row's query is its index modulo `queries`. Consumes its input, whose storage it reuses.
pub(crate) fn causal_softmax(scores: Tensor, causal: Causal) -> Result<Tensor> {
    if matches!(scores.device(), Device::Cpu) && scores.dtype() == DType::F32 {
        scores.inplace_op1(&causal)?;
        return Ok(scores);
    }
    if causal.queries == 1 {
        return candle_nn::ops::softmax_last_dim(&scores);
    }
    let (heads, rows, keys) = scores.dims3()?;
    let mut mask = vec![f32::NEG_INFINITY; causal.queries * keys];
    for (i, row) in mask.chunks_exact_mut(keys).enumerate() {
        row[causal.columns(i, keys)].fill(0.0);
    }
    let mask = Tensor::from_vec(mask, (1, causal.queries, keys), scores.device())?.to_dtype(scores.dtype())?;
    let scores = scores.reshape((heads * rows / causal.queries, causal.queries, keys))?.broadcast_add(&mask)?;
    candle_nn::ops::softmax_last_dim(&scores)?.reshape((heads, rows, keys))
}

impl InplaceOp1 for Causal {
    fn name(&self) -> &'static str {
        "causal-softmax"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let keys = layout.dims().last().copied().unwrap_or(0);
        let (CpuStorage::F32(data), Some((start, end))) = (storage, layout.contiguous_offsets()) else {
            bail!("causal-softmax needs contiguous f32 scores");
        };
        for (r, row) in data[start..end].chunks_exact_mut(keys).enumerate() {
            let seen = self.columns(r % self.queries, keys);
            row[..seen.start].fill(0.0);
            row[seen.end..].fill(0.0);
            softmax(&mut row[seen]);
        }
        Ok(())
    }
}

const LANES: usize = 8;

/// In place; an empty row stays empty.
fn softmax(row: &mut [f32]) {
    let max = lanes(row, f32::NEG_INFINITY, f32::max);
    for v in row.iter_mut() {
        *v = exp(*v - max);
    }
    let scale = 1.0 / lanes(row, 0.0, |a, b| a + b);
    for v in row.iter_mut() {
        *v *= scale;
    }
}

/// Reduces in eight independent lanes, which the compiler can turn into vector instructions.
fn lanes(row: &[f32], start: f32, f: impl Fn(f32, f32) -> f32) -> f32 {
    let mut acc = [start; LANES];
    let chunks = row.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (a, v) in acc.iter_mut().zip(chunk) {
            *a = f(*a, *v);
        }
    }
    acc.iter().chain(rest).fold(start, |a, v| f(a, *v))
}

/// e^x within 2 units in the last place for -87 <= x <= 88, clamped outside; branch-free, so that loops over it
/// become vector code. Range reduction by ln 2, then Cephes' polynomial (<https://www.netlib.org/cephes/>, `expf`).
// The digits are Cephes' own; trimming them to f32's precision would hide where they come from.
#[allow(clippy::excessive_precision)]
#[inline(always)]
fn exp(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0; // 1.5 * 2^23: adding it rounds to an integer
    let x = x.clamp(-87.0, 88.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = x - n * 0.693_359_375 - n * -2.121_944_4e-4;
    let p = 1.987_569_150_0e-4f32;
    let p = p * r + 1.398_199_950_7e-3;
    let p = p * r + 8.333_451_907_3e-3;
    let p = p * r + 4.166_579_589_4e-2;
    let p = p * r + 1.666_666_545_9e-1;
    let p = p * r + 5.000_000_120_1e-1;
    let y = p * r * r + r + 1.0;
    // The low bits of `shifted` hold n; the rest of its bits shift out.
    let power = f32::from_bits((shifted.to_bits().wrapping_add(127)) << 23);
    y * power
}

/// `silu(gate) * up` of [n, 2 * width], gate first: [n, width].
pub(crate) fn swiglu(gate_up: &Tensor) -> Result<Tensor> {
    if matches!(gate_up.device(), Device::Cpu) && gate_up.dtype() == DType::F32 {
        return gate_up.apply_op1_no_bwd(&SwiGlu);
    }
    let width = gate_up.dim(D::Minus1)? / 2;
    gate_up.narrow(D::Minus1, 0, width)?.silu()? * gate_up.narrow(D::Minus1, width, width)?
}

struct SwiGlu;

impl CustomOp1 for SwiGlu {
    fn name(&self) -> &'static str {
        "swiglu"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (CpuStorage::F32(data), Some((start, end)), &[rows, both]) = (storage, layout.contiguous_offsets(), layout.dims()) else {
            bail!("swiglu needs contiguous f32 of two dimensions");
        };
        let width = both / 2;
        let mut out = vec![0f32; rows * width];
        for (row, out) in data[start..end].chunks_exact(both).zip(out.chunks_exact_mut(width)) {
            let (gate, up) = row.split_at(width);
            for ((o, g), u) in out.iter_mut().zip(gate).zip(up) {
                *o = g / (1.0 + exp(-g)) * u;
            }
        }
        Ok((CpuStorage::F32(out), Shape::from((rows, width))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_agrees_with_the_library() {
        for i in -8_600..8_700 {
            let x = i as f32 / 100.0;
            let (found, expected) = (exp(x), x.exp());
            assert!((found - expected).abs() <= 3e-7 * expected, "{x}: {found} {expected}");
        }
        assert!(exp(-1000.0) < 1e-37 && exp(1000.0).is_finite());
    }

    #[test]
    fn softmax_sees_the_past_within_its_window() {
        let causal = Causal { queries: 2, first_query: 3, first_key: 1, window: 3 };
        let scores = Tensor::zeros((1, 4, 4), DType::F32, &Device::Cpu).unwrap();
        let rows = causal_softmax(scores, causal).unwrap().squeeze(0).unwrap().to_vec2::<f32>().unwrap();
        let third = 1.0 / 3.0;
        // Query at 3 sees 1, 2, 3; query at 4 sees 2, 3, 4; twice, for the group's two heads.
        assert_eq!(rows[0], [third, third, third, 0.0]);
        assert_eq!(rows[1], [0.0, third, third, third]);
        assert_eq!(rows[0], rows[2]);
    }

    #[test]
    fn swiglu_agrees_with_its_parts() {
        let x = Tensor::randn(0f32, 2.0, (3, 20), &Device::Cpu).unwrap();
        let expected = (x.narrow(1, 0, 10).unwrap().silu().unwrap() * x.narrow(1, 10, 10).unwrap()).unwrap();
        let gap = (swiglu(&x).unwrap() - expected).unwrap().abs().unwrap().max_all().unwrap();
        assert!(gap.to_scalar::<f32>().unwrap() < 1e-5);
    }
}
