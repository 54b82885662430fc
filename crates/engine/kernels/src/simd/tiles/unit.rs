//! The machine's tile unit: its detection, which is not in stable Rust, and the kernels on it.

use std::arch::asm;
use std::arch::x86_64::*;
use std::sync::OnceLock;

use super::super::panel::Panel;
use super::super::x86::V512;
use super::instructions::{self, Configuration, transposed};
use super::lanes::Lanes;
use super::{ROW, SIDE, Shapes, Square, Tiles, pack};
use crate::line::Line;

/// Whether this process may use the tiles of this machine: the processor has them in the expected
/// size, with products of bf16, and the kernel saves them and grants this process
/// their use. The request is made once, for all threads.
pub(in super::super) fn present() -> bool {
    static PRESENT: OnceLock<bool> = OnceLock::new();
    *PRESENT.get_or_init(|| has_tiles() && saved_by_kernel() && granted())
}

/// CPUID, leaves 7 (features), 0x1D (the palette of tiles) and 0x1E (the unit for products).
fn has_tiles() -> bool {
    const FEATURES: u32 = 1 << 22 | 1 << 24; // AMX-BF16, AMX-TILE
    if __cpuid(0).eax < 0x1e || __cpuid_count(7, 0).edx & FEATURES != FEATURES {
        return false;
    }
    let (tiles, unit) = (__cpuid_count(0x1d, 1), __cpuid_count(0x1e, 0));
    let side = SIDE as u32;
    // bytes of a tile, bytes of a row, number of tiles, rows
    tiles.eax >> 16 == side * ROW as u32
        && tiles.ebx & 0xffff == ROW as u32
        && tiles.ebx >> 16 >= 8
        && tiles.ecx & 0xffff == side
        // the largest depth in rows, the largest width in bytes
        && unit.ebx & 0xff >= side
        && unit.ebx >> 8 & 0xffff >= ROW as u32
}

/// Whether XCR0 has both parts of the tiles' state.
fn saved_by_kernel() -> bool {
    const OSXSAVE: u32 = 1 << 27;
    const TILES: u32 = 1 << 17 | 1 << 18;
    if __cpuid(1).ecx & OSXSAVE == 0 {
        return false;
    }
    let low: u32;
    // SAFETY: OSXSAVE says that programs may execute it. It reads a register.
    unsafe { asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") _, options(nomem, nostack, preserves_flags)) };
    low & TILES == TILES
}

/// Asks the kernel for the use of tiles: `arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)`.
#[cfg(target_os = "linux")]
fn granted() -> bool {
    let result: i64;
    // SAFETY: a system call with two numbers, which touches no memory of the program. Kernels that
    // do not know it answer with an error.
    unsafe {
        asm!("syscall", inlateout("rax") 158i64 => result, in("rdi") 0x1023i64, in("rsi") 18i64,
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result == 0
}

#[cfg(not(target_os = "linux"))]
fn granted() -> bool {
    false
}

/// The tile unit of this thread. Tiles are released when it is dropped, so that the kernel has
/// nothing to save for a thread without work.
pub(super) struct Unit(());

impl Unit {
    /// # Safety
    /// [`present`] must be true, and the thread must have no other value.
    pub(super) unsafe fn new() -> Self {
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
    unsafe fn configure(&mut self, shapes: Shapes) {
        let mut each = [(0, 0); 8];
        for (tile, shape) in each.iter_mut().enumerate() {
            *shape = shapes.of(tile);
        }
        // SAFETY: as for the caller.
        unsafe { self.configure_each(&each) }
    }

    #[inline(always)]
    unsafe fn configure_each(&mut self, shapes: &[(usize, usize); 8]) {
        let configuration = Configuration::new(shapes);
        // SAFETY: see above.
        unsafe { instructions::configure(&configuration) };
    }

    #[inline(always)]
    unsafe fn zero<const T: usize>(&mut self) {
        // SAFETY: see above.
        unsafe { instructions::zero::<T>() };
    }

    #[inline(always)]
    unsafe fn load<const T: usize>(&mut self, p: *const u8, stride: usize) {
        // SAFETY: see above.
        unsafe { instructions::load::<T>(p, stride) };
    }

    #[inline(always)]
    unsafe fn store<const T: usize>(&mut self, p: *mut u8, stride: usize) {
        // SAFETY: see above.
        unsafe { instructions::store::<T>(p, stride) };
    }

    #[inline(always)]
    unsafe fn add_bf16<const C: usize, const A: usize, const B: usize>(&mut self) {
        // SAFETY: see above.
        unsafe { instructions::add_bf16::<C, A, B>() };
    }

    #[inline(always)]
    unsafe fn transpose(x: &Square) -> Square {
        // SAFETY: see above.
        unsafe { transpose(x) }
    }

    #[inline(always)]
    unsafe fn dequantize(p: *const u8) -> Line {
        let mut line = Line::default();
        // SAFETY: see above; a block has 34 bytes, and a line has 64.
        unsafe {
            // one number by itself would be inserted into the register of the block before
            let scale = _mm512_cvtph_ps(_mm256_set1_epi16(p.cast::<i16>().read_unaligned()));
            let sixteen = |at: usize| {
                let bytes = _mm_loadu_si128(p.add(at).cast());
                _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes)), scale)
            };
            let both = V512(sixteen(2)).pairs(V512(sixteen(2 + SIDE)));
            both.store(line.0.as_mut_ptr().cast());
        }
        line
    }

    // Parts of a row by masks: the compiler makes a call of `memcpy` of a copy that may be shorter.
    #[inline(always)]
    unsafe fn read(p: *const f32, n: usize) -> [f32; SIDE] {
        let mut y = [0f32; SIDE];
        // SAFETY: see above; numbers outside the mask are not read.
        unsafe { _mm512_storeu_ps(y.as_mut_ptr(), _mm512_maskz_loadu_ps(first(n), p)) };
        y
    }

    #[inline(always)]
    unsafe fn write(p: *mut f32, n: usize, x: &[u32; SIDE], y: &[f32; SIDE]) {
        // SAFETY: see above; numbers outside the mask are not written.
        unsafe {
            let sum = _mm512_add_ps(_mm512_loadu_ps(x.as_ptr().cast()), _mm512_loadu_ps(y.as_ptr()));
            _mm512_mask_storeu_ps(p, first(n), sum);
        }
    }

    #[inline(always)]
    unsafe fn write_words(p: *mut u32, n: usize, x: &[u32; SIDE]) {
        // SAFETY: see above; words outside the mask are not written.
        unsafe { _mm512_mask_storeu_epi32(p.cast(), first(n), _mm512_loadu_si512(x.as_ptr().cast())) };
    }

    #[inline(always)]
    unsafe fn write_columns(x: &Square, columns: usize, n: usize, bias: &[f32; SIDE], p: *mut f32, width: usize) {
        // SAFETY: see above; numbers outside the mask are not written.
        unsafe {
            let mut rows = [_mm512_setzero_si512(); SIDE];
            for (row, x) in rows.iter_mut().zip(x) {
                *row = _mm512_loadu_si512(x.as_ptr().cast());
            }
            let (rows, bias) = (transposed(rows), _mm512_loadu_ps(bias.as_ptr()));
            for (j, row) in rows.into_iter().enumerate().take(columns) {
                _mm512_mask_storeu_ps(p.wrapping_add(j * width), first(n), _mm512_add_ps(_mm512_castsi512_ps(row), bias));
            }
        }
    }
}

/// A mask of the first `n` of 16 numbers.
#[inline(always)]
fn first(n: usize) -> __mmask16 {
    if n >= SIDE { !0 } else { (1 << n) - 1 }
}

/// Exchanges rows and columns. Needs AVX-512 F.
#[inline(always)]
unsafe fn transpose(x: &Square) -> Square {
    let mut y = [[0u32; SIDE]; SIDE];
    // SAFETY: see above; reads and writes are 16 words.
    unsafe {
        let mut rows = [_mm512_setzero_si512(); SIDE];
        for (row, x) in rows.iter_mut().zip(x) {
            *row = _mm512_loadu_si512(x.as_ptr().cast());
        }
        let rows = transposed(rows);
        for (y, row) in y.iter_mut().zip(rows) {
            _mm512_storeu_si512(y.as_mut_ptr().cast(), row);
        }
    }
    y
}

macro_rules! entries {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) = $body:expr;)*) => {$(
        $(#[$doc])*
        #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512bf16,avx2,fma,f16c")]
        pub(super) unsafe fn $name($($arg: $ty),*) {
            // SAFETY: as for the caller.
            unsafe { $body }
        }
    )*};
}

entries! {
    /// See [`pack::pairs`].
    fn pack_pairs(x: &[f32], cols: usize, out: &mut [Line]) = pack::pairs::<Unit>(x, cols, out);
    /// See [`super::few`].
    fn few(p: &Panel) = super::few::products::<_, false>(&mut Unit::new(), p);
    /// See [`super::few`].
    fn few_bytes(p: &Panel) = super::few::products::<_, true>(&mut Unit::new(), p);
    /// See [`super::many`].
    fn many(p: &Panel) = super::many::products(&mut Unit::new(), p, &super::many::Outputs(p));
    /// See [`super::gated`].
    fn gated(p: &super::Gated<'_>) = super::gated::products(&mut Unit::new(), p);
}
