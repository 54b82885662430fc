//! Matrix products, and the choice of the instruction set for the elementwise kernels at run time.
//! This module and its submodules are the only ones with `unsafe` code.
//!
//! The elementwise kernels are safe functions in other modules, written such that the compiler
//! vectorises them. Here each is compiled three times: for AVX-512, AVX2 with FMA, and the
//! baseline.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU8, Ordering};

#[cfg(target_arch = "x86_64")]
mod blocked;
#[cfg(target_arch = "x86_64")]
mod pack;

use crate::config::Precision;
use crate::optim::adamw;
use crate::{loss, mlp, norm, rope, softmax, vecmath};

/// A matrix inside a slice: element `(i, j)` is at `i * rs + j * cs`.
#[derive(Clone, Copy)]
pub(crate) struct Mat<'a> {
    data: &'a [f32],
    rs: usize,
    cs: usize,
}

impl<'a> Mat<'a> {
    /// Contiguous rows that are `rs` elements apart.
    pub(crate) fn rows(data: &'a [f32], rs: usize) -> Self {
        Self { data, rs, cs: 1 }
    }

    /// The transpose.
    pub(crate) fn t(self) -> Self {
        Self { data: self.data, rs: self.cs, cs: self.rs }
    }
}

/// `dst = (accumulate ? dst : 0) + alpha * a * b` with `dst` `[m, n]` (rows `rs` elements apart),
/// `a` `[m, k]` and `b` `[k, n]`, on this thread only. With AVX-512 it uses the blocked kernels,
/// which round the factors to bf16 if `precision` asks for it and the CPU supports it. Otherwise it
/// uses the `gemm` crate.
///
/// # Panics
/// If a matrix does not fit in its slice.
#[allow(clippy::too_many_arguments)]
pub(crate) fn gemm(
    precision: Precision,
    (m, n, k): (usize, usize, usize),
    dst: &mut [f32],
    rs: usize,
    a: Mat<'_>,
    b: Mat<'_>,
    alpha: f32,
    accumulate: bool,
) {
    if m == 0 || n == 0 {
        return;
    }
    let fits = |len: usize, r: usize, c: usize, rs: usize, cs: usize| r == 0 || c == 0 || (r - 1) * rs + (c - 1) * cs < len;
    assert!(n <= rs || m == 1, "the rows of the product overlap");
    assert!(fits(dst.len(), m, n, rs, 1), "the product does not fit");
    assert!(fits(a.data.len(), m, k, a.rs, a.cs), "the left factor does not fit");
    assert!(fits(b.data.len(), k, n, b.rs, b.cs), "the right factor does not fit");
    #[cfg(target_arch = "x86_64")]
    if level() >= AVX512 && k > 0 {
        // SAFETY: the matrices lie inside their slices (checked just above), the rows of `dst` do
        // not overlap, and `level` found the instructions.
        return unsafe {
            if precision == Precision::Bf16 && level() == AVX512_BF16 {
                blocked::gemm::<true>((m, n, k), dst, rs, a, b, alpha, accumulate)
            } else {
                blocked::gemm::<false>((m, n, k), dst, rs, a, b, alpha, accumulate)
            }
        };
    }
    let _ = precision;
    // SAFETY: all three matrices lie inside their slices (checked just above), `dst` is borrowed
    // mutably so that it overlaps neither factor, and its rows do not overlap each other.
    // Strides are below `isize::MAX` because slices are.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            dst.as_mut_ptr(),
            1,
            rs as isize,
            accumulate,
            a.data.as_ptr(),
            a.cs as isize,
            a.rs as isize,
            b.data.as_ptr(),
            b.cs as isize,
            b.rs as isize,
            1.0,
            alpha,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

/// The instruction sets that the kernels are compiled for.
const UNKNOWN: u8 = 0;
const BASE: u8 = 1;
const AVX2: u8 = 2;
const AVX512: u8 = 3;
const AVX512_BF16: u8 = 4;

static LEVEL: AtomicU8 = AtomicU8::new(UNKNOWN);

/// The best instruction set of this CPU.
#[inline]
fn level() -> u8 {
    match LEVEL.load(Ordering::Relaxed) {
        UNKNOWN => {
            let found = detect();
            LEVEL.store(found, Ordering::Relaxed);
            found
        }
        known => known,
    }
}

#[cfg(target_arch = "x86_64")]
fn detect() -> u8 {
    let wide = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512bw");
    match (wide, is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")) {
        (true, true) if is_x86_feature_detected!("avx512bf16") => AVX512_BF16,
        (true, true) => AVX512,
        (false, true) => AVX2,
        _ => BASE,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> u8 {
    BASE
}

/// Compiles a kernel once per instruction set and picks one at run time.
macro_rules! kernels {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $($body:ident)::+;)*) => {$(
        $(#[$doc])*
        #[allow(clippy::too_many_arguments)]
        pub(crate) fn $name($($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
                fn wide($($arg: $ty),*) $(-> $ret)? {
                    $($body)::+::<true>($($arg),*)
                }
                #[target_feature(enable = "avx2,fma")]
                fn medium($($arg: $ty),*) $(-> $ret)? {
                    $($body)::+::<true>($($arg),*)
                }
                match level() {
                    // SAFETY: `level` found every feature that `wide` is compiled with.
                    AVX512.. => return unsafe { wide($($arg),*) },
                    // SAFETY: `level` found every feature that `medium` is compiled with.
                    AVX2 => return unsafe { medium($($arg),*) },
                    _ => {}
                }
            }
            $($body)::+::<false>($($arg),*)
        }
    )*};
}

kernels! {
    /// See [`norm::forward`].
    fn norm_forward(x: &[f32], w: &[f32], eps: f32, y: &mut [f32], rstd: &mut [f32]) = norm::forward;
    /// See [`norm::backward`].
    fn norm_backward(dy: &[f32], x: &[f32], w: &[f32], rstd: &[f32], dx: &mut [f32], dw: &mut [f32]) = norm::backward;
    /// See [`rope::rotate`].
    fn rotate(x: &mut [f32], ld: usize, heads: usize, dim: usize, positions: &[u32], cos: &[f32], sin: &[f32]) = rope::rotate;
    /// See [`mlp::swiglu`].
    fn swiglu(gate_up: &[f32], act: &mut [f32], inner: usize) = mlp::swiglu;
    /// See [`mlp::swiglu_backward`].
    fn swiglu_backward(gate_up: &mut [f32], act: &mut [f32], inner: usize) = mlp::swiglu_backward;
    /// See [`loss::cross_entropy`].
    fn cross_entropy(logits: &mut [f32], vocab: usize, targets: &[u32], scale: f32) -> f64 = loss::cross_entropy;
    /// See [`softmax::softmax_tile`].
    fn softmax_tile(s: &mut [f32], ld: usize, first: usize, scale: f32, sums: &mut [f32], lse: &mut [f32]) = softmax::softmax_tile;
    /// See [`softmax::probabilities_tile`].
    fn probabilities_tile(s: &mut [f32], ld: usize, first: usize, scale: f32, lse: &[f32]) = softmax::probabilities_tile;
    /// See [`softmax::dscores_tile`].
    fn dscores_tile(p: &[f32], ds: &mut [f32], ld: usize, first: usize, scale: f32, delta: &[f32]) = softmax::dscores_tile;
    /// See [`softmax::row_dots`].
    fn row_dots(a: &[f32], b: &[f32], ld: usize, dim: usize, out: &mut [f32]) = softmax::row_dots;
    /// See [`softmax::scale_rows`].
    fn scale_rows(x: &mut [f32], ld: usize, dim: usize, sums: &[f32]) = softmax::scale_rows;
    /// See [`vecmath::add_into`].
    fn add_into(dst: &mut [f32], src: &[f32]) = vecmath::add_into;
    /// See [`vecmath::sum_squares`].
    fn sum_squares(x: &[f32]) -> f64 = vecmath::sum_squares;
    /// See [`vecmath::exp_slice`].
    #[cfg(test)]
    fn exp_slice(x: &mut [f32]) = vecmath::exp_slice;
    /// See [`vecmath::dropout`].
    fn dropout(src: &[f32], dst: &mut [f32], key: u32, threshold: u32, scale: f32, add: bool) = vecmath::dropout;
    /// See [`adamw::update`].
    fn adamw_update(p: &mut [f32], m: &mut [f32], v: &mut [f32], g: &[f32], k: &adamw::Coefficients) = adamw::update;
    /// See [`vecmath::scale_add`].
    fn scale_add(dst: &mut [f32], a: f32, src: &[f32], b: f32) = vecmath::scale_add;
}

#[cfg(test)]
#[path = "simd_tests.rs"]
mod tests;
