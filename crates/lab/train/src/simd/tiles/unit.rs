//! The machine's tile unit.

use std::arch::x86_64::*;
use std::cell::RefCell;

use autoact_kernels::tile_instructions::{self as instructions, Configuration};

use super::{Scratch, Tiles};
use crate::element::Element;
use crate::product::{Segment, Target};

thread_local! {
    static SCRATCH: RefCell<Box<Scratch>> = RefCell::new(Scratch::new());
}

/// See [`super::product`].
///
/// # Safety
/// The machine must have tiles for bf16 (AMX), which this process may use, and AVX-512 F, BW, DQ
/// and VL. Factors and target must fit, as `product::product` checks.
pub(in crate::simd) unsafe fn product<E: Element>(m: usize, n: usize, alpha: f32, segments: &[Segment<'_, E>], mut target: Target<'_, E>) {
    // SAFETY: as the caller guarantees.
    SCRATCH.with_borrow_mut(|scratch| unsafe { compute(scratch, m, n, alpha, segments, &mut target) });
}

/// # Safety
/// As for [`product`].
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
unsafe fn compute<E: Element>(s: &mut Scratch, m: usize, n: usize, alpha: f32, segments: &[Segment<'_, E>], target: &mut Target<'_, E>) {
    // SAFETY: as the caller guarantees; no other unit of this thread exists.
    unsafe { super::product(&mut Unit::new(), s, (m, n), alpha, segments, target) }
}

/// The tile unit of this thread. Tiles are released when it is dropped, so that the kernel has
/// nothing to save for a thread that computes something else.
struct Unit(());

impl Unit {
    /// # Safety
    /// The machine must have tiles, and the thread no other value.
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: as the caller guarantees.
        unsafe { instructions::configure(&Configuration::WHOLE) };
        Self(())
    }
}

impl Drop for Unit {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the machine has tiles (see `new`).
        unsafe { instructions::release() };
    }
}

// SAFETY (all functions of this implementation): reads and writes are those that the trait's
// contract allows, and so is the use of the instructions. The compiler never uses tiles itself.
impl Tiles for Unit {
    #[inline(always)]
    unsafe fn zero<const T: usize>(&mut self) {
        // SAFETY: see above.
        unsafe { instructions::zero::<T>() };
    }

    #[inline(always)]
    unsafe fn load<const T: usize>(&mut self, p: *const u32, stride: usize) {
        // SAFETY: see above.
        unsafe { instructions::load::<T>(p.cast(), stride) };
    }

    #[inline(always)]
    unsafe fn store<const T: usize>(&mut self, p: *mut u32, stride: usize) {
        // SAFETY: see above.
        unsafe { instructions::store::<T>(p.cast(), stride) };
    }

    #[inline(always)]
    unsafe fn multiply<const C: usize, const A: usize, const B: usize>(&mut self) {
        // SAFETY: see above.
        unsafe { instructions::add_bf16::<C, A, B>() };
    }

    #[inline(always)]
    unsafe fn transpose(from: *const u32, stride: usize, to: *mut u32, to_stride: usize) {
        // SAFETY: see above.
        unsafe { instructions::transpose(from, stride, to, to_stride) }
    }

    #[inline(always)]
    fn prefetch(p: *const u32) {
        // SAFETY: a prefetch has no visible effect and never faults; every x86-64 has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) };
    }
}
