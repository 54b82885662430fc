//! The choice of the instruction set at run time, for matrix products and all other kernels. This
//! module and its submodules are the only ones with `unsafe` code.
//!
//! All kernels but the products in tiles are safe functions in other modules, written such that
//! the compiler vectorises them. Here each is compiled three times: for AVX-512, AVX2 with FMA, and
//! the baseline.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU8, Ordering};

mod portable;
#[cfg(target_arch = "x86_64")]
mod tile;
#[cfg(any(test, target_arch = "x86_64"))]
mod tiles;

use crate::element::Element;
use crate::optim::adamw;
use crate::product::{Segment, Target};
use crate::{loss, mlp, norm, panels, rope, softmax, vecmath};

/// See [`crate::product::product`], which has checked that everything fits.
pub(crate) fn product<E: Element>(m: usize, n: usize, alpha: f32, segments: &[Segment<'_, E>], target: Target<'_, E>) {
    #[cfg(target_arch = "x86_64")]
    match (level(), E::PER_WORD) {
        // SAFETY: the factors and the target fit (see above), and `level` found the instructions.
        (AMX, 2) => return unsafe { tiles::unit::product(m, n, alpha, segments, target) },
        // SAFETY: as above.
        (AVX512_BF16, _) | (AVX512 | AMX, 1) => return unsafe { tile::avx512::product(m, n, alpha, segments, target) },
        // SAFETY: as above.
        (AVX2, 1) => return unsafe { tile::avx2::product(m, n, alpha, segments, target) },
        _ => {}
    }
    portable_product(m, n, alpha, segments, target);
}

/// The instruction sets that the kernels are compiled for.
const UNKNOWN: u8 = 0;
const BASE: u8 = 1;
const AVX2: u8 = 2;
const AVX512: u8 = 3;
const AVX512_BF16: u8 = 4;
/// All of the above and tiles, for products of bf16.
const AMX: u8 = 5;

static LEVEL: AtomicU8 = AtomicU8::new(UNKNOWN);

#[cfg(test)]
thread_local! {
    /// The instruction set that a test forces on its thread. Products on tiles have other bits than
    /// those on vectors, so that other tests must not see it.
    static FORCED: std::cell::Cell<u8> = const { std::cell::Cell::new(UNKNOWN) };
}

/// The best instruction set of this CPU.
#[inline]
fn level() -> u8 {
    #[cfg(test)]
    if FORCED.get() != UNKNOWN {
        return FORCED.get();
    }
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
        (true, true) if is_x86_feature_detected!("avx512bf16") => {
            // the engine's answer, so that a process asks the kernel for the use of tiles in one place,
            // and `AUTOACT_ISA` turns them off in both
            if autoact_kernels::instruction_set() == "amx" { AMX } else { AVX512_BF16 }
        }
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
    ($($(#[$doc:meta])* fn $name:ident$(<$($of:ident),+>)?($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $($body:ident)::+;)*) => {$(
        $(#[$doc])*
        #[allow(clippy::too_many_arguments)]
        pub(crate) fn $name$(<$($of: Element),+>)?($($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
                fn wide$(<$($of: Element),+>)?($($arg: $ty),*) $(-> $ret)? {
                    $($body)::+::<true $(, $($of),+)?>($($arg),*)
                }
                #[target_feature(enable = "avx2,fma")]
                fn medium$(<$($of: Element),+>)?($($arg: $ty),*) $(-> $ret)? {
                    $($body)::+::<true $(, $($of),+)?>($($arg),*)
                }
                match level() {
                    // SAFETY: `level` found every feature that `wide` is compiled with.
                    AVX512.. => return unsafe { wide$(::<$($of),+>)?($($arg),*) },
                    // SAFETY: `level` found every feature that `medium` is compiled with.
                    AVX2 => return unsafe { medium$(::<$($of),+>)?($($arg),*) },
                    _ => {}
                }
            }
            $($body)::+::<false $(, $($of),+)?>($($arg),*)
        }
    )*};
}

kernels! {
    /// See [`portable::product`].
    fn portable_product<E>(m: usize, n: usize, alpha: f32, segments: &[Segment<'_, E>], target: Target<'_, E>) = portable::product;
    /// See [`panels::pack_transposed`].
    fn pack_transposed<S, E>(rows: &[S], ld: usize, n: usize, k: usize, out: &mut [u32]) = panels::pack_transposed;
    /// See [`panels::pack_rows`].
    fn pack_rows<S, E>(rows: &[S], ld: usize, k: usize, n: usize, out: &mut [u32]) = panels::pack_rows;
    /// See [`panels::interleave`].
    fn interleave<E>(rows: &[E], ld: usize, k: usize, n: usize, out: &mut [u32]) = panels::interleave;
    /// See [`norm::forward`].
    fn norm_forward<E>(x: &[f32], w: &[f32], eps: f32, y: &mut [E], rstd: &mut [f32]) = norm::forward;
    /// See [`norm::backward`].
    fn norm_backward(dy: &[f32], x: &[f32], w: &[f32], rstd: &[f32], dx: &mut [f32], dw: &mut [f32]) = norm::backward;
    /// See [`rope::rotate`].
    fn rotate<E>(x: &[f32], width: usize, turned: usize, dim: usize, positions: &[u32], cos: &[f32], sin: &[f32], out: &mut [E], ld: usize) = rope::rotate;
    /// See [`mlp::swiglu`].
    fn swiglu<E>(gate_up: &[E], act: &mut [E], inner: usize) = mlp::swiglu;
    /// See [`mlp::swiglu_backward`].
    fn swiglu_backward<E>(gate_up: &mut [E], act: &mut [E], inner: usize) = mlp::swiglu_backward;
    /// See [`loss::cross_entropy`].
    fn cross_entropy<E>(logits: &mut [f32], vocab: usize, targets: &[u32], scale: f32, gradient: &mut [E], ld: usize) -> f64 = loss::cross_entropy;
    /// See [`softmax::softmax_tile`].
    fn softmax_tile<E>(s: &mut [f32], ld: usize, first: usize, scale: f32, p: &mut [E], sums: &mut [f32], lse: &mut [f32]) = softmax::softmax_tile;
    /// See [`softmax::gradient_tile`].
    fn gradient_tile<E>(s: &mut [f32], ds: &[f32], ld: usize, first: usize, scale: f32, lse: &[f32], delta: &[f32], p_out: &mut [E], ds_out: &mut [E]) = softmax::gradient_tile;
    /// See [`softmax::row_dots`].
    fn row_dots<E>(a: &[E], b: &[E], ld: usize, dim: usize, out: &mut [f32]) = softmax::row_dots;
    /// See [`softmax::divide_rows`].
    fn divide_rows<E>(x: &[f32], dim: usize, sums: &[f32], out: &mut [E], ld: usize) = softmax::divide_rows;
    /// See [`vecmath::round`].
    fn round<E>(x: &[f32], out: &mut [E]) = vecmath::round;
    /// See [`vecmath::add_into`].
    fn add_into(dst: &mut [f32], src: &[f32]) = vecmath::add_into;
    /// See [`vecmath::sum_squares`].
    fn sum_squares(x: &[f32]) -> f64 = vecmath::sum_squares;
    /// See [`vecmath::exp_slice`].
    #[cfg(test)]
    fn exp_slice(x: &mut [f32]) = vecmath::exp_slice;
    /// See [`vecmath::dropout`].
    fn dropout<E>(src: &[E], dst: &mut [E], mask: vecmath::Mask) = vecmath::dropout;
    /// See [`vecmath::mask_in_place`].
    fn mask_in_place(x: &mut [f32], mask: vecmath::Mask) = vecmath::mask_in_place;
    /// See [`adamw::update`].
    fn adamw_update(p: &mut [f32], m: &mut [f32], v: &mut [f32], g: &[f32], k: &adamw::Coefficients) = adamw::update;
    /// See [`vecmath::scale_add`].
    fn scale_add(dst: &mut [f32], a: f32, src: &[f32], b: f32) = vecmath::scale_add;
}

/// Whether products in bf16 are faster than in f32.
pub(crate) fn has_bf16() -> bool {
    level() >= AVX512_BF16
}

/// Whether products of these elements are computed on tiles.
pub(crate) fn has_tiles<E: Element>() -> bool {
    level() == AMX && E::PER_WORD == 2
}

/// The instruction set in use, by name.
pub(crate) fn name() -> &'static str {
    match level() {
        AMX => "amx",
        AVX512_BF16 => "avx512-bf16",
        AVX512 => "avx512",
        AVX2 => "avx2",
        _ => "portable",
    }
}

#[cfg(test)]
#[path = "simd_tests.rs"]
mod tests;
