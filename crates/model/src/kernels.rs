//! Fused operations for the CPU, where a small model spends its time on the overhead of many small ones.
//! Every other device gets the same result from the tensor library's own operations.
//!
//! Products of a few rows have kernels of their own for two reasons: the library's product is made for blocks, and
//! with one row spends most of its time around the arithmetic; and it asks for the number of CPUs at every call, which
//! reads `/proc/cpuinfo` unless `RAYON_NUM_THREADS` is set.

use candle_core::{CpuStorage, CustomOp1, CustomOp2, CustomOp3, D, DType, Device, InplaceOp1, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

/// Up to this many rows (tokens) go through the kernels for few rows.
const FEW: usize = 8;

fn on_cpu(x: &Tensor) -> bool {
    matches!(x.device(), Device::Cpu) && x.dtype() == DType::F32
}

/// Whether a block of `rows` tokens is small enough for [`attend_few`].
pub(crate) fn few(x: &Tensor, rows: usize) -> bool {
    on_cpu(x) && rows <= FEW
}

/// `x W^T`: [n, in] and a contiguous [out, in] give [n, out].
pub(crate) fn product(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    if few(x, x.dim(0)?) { x.apply_op2_no_bwd(weight, &FewRows) } else { x.matmul(&weight.t()?) }
}

struct FewRows;

/// Multiplications below which waking another thread costs more than it saves, and the rows of work one task gets.
const PARALLEL: usize = 1 << 20;
const TASK: usize = 64;

impl CustomOp2 for FewRows {
    fn name(&self) -> &'static str {
        "few-rows"
    }

    fn cpu_fwd(&self, x: &CpuStorage, x_layout: &Layout, w: &CpuStorage, w_layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (x, &[n, width]) = (contiguous(x, x_layout)?, x_layout.dims()) else { bail!("few-rows needs two dimensions") };
        let (w, &[out, w_width]) = (contiguous(w, w_layout)?, w_layout.dims()) else { bail!("few-rows needs two dimensions") };
        if width != w_width || width == 0 {
            bail!("few-rows needs equal widths, got {width} and {w_width}");
        }
        let mut y = vec![0f32; n * out];
        for (x, y) in x.chunks_exact(width).zip(y.chunks_exact_mut(out)) {
            let task = |(y, w): (&mut [f32], &[f32])| {
                for (y, w) in y.iter_mut().zip(w.chunks_exact(width)) {
                    *y = dot(x, w);
                }
            };
            if out * width < PARALLEL {
                task((y, w));
            } else {
                y.par_chunks_mut(TASK).zip(w.par_chunks(TASK * width)).for_each(task);
            }
        }
        Ok((CpuStorage::F32(y), Shape::from((n, out))))
    }
}

fn contiguous<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    match (storage, layout.contiguous_offsets()) {
        (CpuStorage::F32(data), Some((start, end))) => Ok(&data[start..end]),
        _ => bail!("expected contiguous f32"),
    }
}

/// Independent sums, so that the compiler makes vectors of them.
const LANES: usize = 16;

#[inline]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut acc = [0f32; LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f32 = a_chunks.remainder().iter().zip(b_chunks.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a_chunks.zip(b_chunks) {
        for ((acc, a), b) in acc.iter_mut().zip(a).zip(b) {
            *acc += a * b;
        }
    }
    acc.iter().sum::<f32>() + rest
}

/// Attention of a few queries: q [heads, n, dim] over k and v [kv_heads, keys, dim] gives [n, heads * dim]; scores
/// are scaled by 1/√dim.
pub(crate) fn attend_few(q: &Tensor, k: &Tensor, v: &Tensor, causal: Causal) -> Result<Tensor> {
    q.apply_op3_no_bwd(k, v, &Attend(causal))
}

struct Attend(Causal);

impl CustomOp3 for Attend {
    fn name(&self) -> &'static str {
        "attend-few"
    }

    fn cpu_fwd(
        &self,
        q: &CpuStorage,
        q_layout: &Layout,
        k: &CpuStorage,
        k_layout: &Layout,
        v: &CpuStorage,
        v_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (q, &[heads, n, dim], &[kv_heads, keys, _]) = (contiguous(q, q_layout)?, q_layout.dims(), k_layout.dims()) else {
            bail!("attend-few needs three dimensions");
        };
        // Views of the cache: each head's keys lie together, the heads further apart.
        let head = |data: &CpuStorage, layout: &Layout, i: usize| -> Result<std::ops::Range<usize>> {
            let (CpuStorage::F32(data), &[apart, row, 1]) = (data, layout.stride()) else { bail!("expected f32 heads") };
            let start = layout.start_offset() + i * apart;
            if row != dim || start + keys * dim > data.len() {
                bail!("expected {keys} rows of {dim} together");
            }
            Ok(start..start + keys * dim)
        };
        let (CpuStorage::F32(k_data), CpuStorage::F32(v_data)) = (k, v) else { bail!("expected f32 heads") };
        let scale = 1.0 / (dim as f32).sqrt();
        let mut out = vec![0f32; n * heads * dim];
        let mut scores = Vec::with_capacity(keys);
        for h in 0..heads {
            let kv = h / (heads / kv_heads);
            let (k, v) = (&k_data[head(k, k_layout, kv)?], &v_data[head(v, v_layout, kv)?]);
            for i in 0..n {
                let q = &q[(h * n + i) * dim..][..dim];
                let seen = self.0.columns(i, keys);
                let (k, v) = (&k[seen.start * dim..seen.end * dim], &v[seen.start * dim..seen.end * dim]);
                scores.clear();
                scores.extend(k.chunks_exact(dim).map(|k| dot(q, k) * scale));
                softmax(&mut scores);
                let out = &mut out[(i * heads + h) * dim..][..dim];
                for (p, v) in scores.iter().zip(v.chunks_exact(dim)) {
                    for (o, v) in out.iter_mut().zip(v) {
                        *o += p * v;
                    }
                }
            }
        }
        Ok((CpuStorage::F32(out), Shape::from((n, heads * dim))))
    }
}

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
    if on_cpu(&scores) {
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

/// Reduces in independent lanes, which the compiler can turn into vector instructions.
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
    if on_cpu(gate_up) {
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
    fn few_rows_agree_with_the_library() {
        for (n, width, out) in [(1, 1, 1), (3, 37, 50), (8, 1_030, 1_100)] {
            let x = Tensor::randn(0f32, 1.0, (n, width), &Device::Cpu).unwrap();
            let w = Tensor::randn(0f32, 1.0, (out, width), &Device::Cpu).unwrap();
            let gap = (product(&x, &w).unwrap() - x.matmul(&w.t().unwrap()).unwrap()).unwrap().abs().unwrap().max_all().unwrap();
            assert!(gap.to_scalar::<f32>().unwrap() < 1e-3);
        }
    }

    #[test]
    fn swiglu_agrees_with_its_parts() {
        let x = Tensor::randn(0f32, 2.0, (3, 20), &Device::Cpu).unwrap();
        let expected = (x.narrow(1, 0, 10).unwrap().silu().unwrap() * x.narrow(1, 10, 10).unwrap()).unwrap();
        let gap = (swiglu(&x).unwrap() - expected).unwrap().abs().unwrap().max_all().unwrap();
        assert!(gap.to_scalar::<f32>().unwrap() < 1e-5);
    }
}
