//! Kernels written with vector instructions, and the choice of the instruction set at run time.
//! This module and its submodules have all `unsafe` arithmetic of the crate.
//!
//! A kernel is a generic function over a small set of operations ([`Vector`], [`Dot`]). The
//! operations are implemented once per instruction set. The generic function is inlined into one
//! entry point per set, which is compiled with that set's features. Kernels that the compiler
//! vectorises by itself are safe functions elsewhere; here they are compiled once per set (the
//! macro `kernels`).
//!
//! Everything that this module exports is safe and checks its arguments.
#![allow(unsafe_code)]

use std::sync::OnceLock;

use crate::Format;
use crate::line::Line;
use crate::rows;

mod attention;
mod chunks;
mod gated;
mod panel;
mod portable;
mod product;
mod tiles;
#[cfg(target_arch = "x86_64")]
mod x86;
#[cfg(target_arch = "x86_64")]
mod x86_bytes;

pub(crate) use attention::{COLUMNS, Keep, Span, Words, multiply};
pub(crate) use chunks::Chunks;
pub(crate) use gated::{Target, gated, gates_on_tiles};
pub(crate) use product::{Columns, Rows, Update, Weights, into_columns, into_rows};
pub(crate) use tiles::attention::{Buffers, Stretch, attend as attend_on_tiles, pack_queries, query_lines};
#[cfg(target_arch = "x86_64")]
pub use tiles::instructions as tile_instructions;
pub(crate) use tiles::{SIDE, pack as pack_for_tiles, words as words_for_tiles};

#[cfg(target_endian = "big")]
compile_error!("the kernels read little-endian weights as they are");

/// An instruction set that this machine has; only this module can create values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Isa(Level, TileUnit);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// AVX-512 with the instructions for bf16 and for bytes (VNNI).
    #[cfg(target_arch = "x86_64")]
    Avx512Full,
}

/// Where products on tiles are computed. Everything else uses vectors of the set's [`Level`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TileUnit {
    None,
    /// In a portable model of the machine's unit, for tests.
    #[cfg(test)]
    Modelled,
    /// In the machine's unit (AMX), for the highest level.
    #[cfg(target_arch = "x86_64")]
    Present,
}

impl Isa {
    /// All sets, the lowest first.
    const ALL: &'static [Self] = &[
        Self(Level::Portable, TileUnit::None),
        #[cfg(target_arch = "x86_64")]
        Self(Level::Avx2, TileUnit::None),
        #[cfg(target_arch = "x86_64")]
        Self(Level::Avx512, TileUnit::None),
        #[cfg(target_arch = "x86_64")]
        Self(Level::Avx512Full, TileUnit::None),
        #[cfg(target_arch = "x86_64")]
        Self(Level::Avx512Full, TileUnit::Present),
    ];

    /// The set that the kernels use.
    #[inline]
    pub(crate) fn get() -> Self {
        #[cfg(test)]
        if let Some(isa) = testing::LOWERED.get() {
            return isa;
        }
        static CHOSEN: OnceLock<Isa> = OnceLock::new();
        *CHOSEN.get_or_init(|| {
            let wanted = std::env::var("AUTOACT_ISA").ok();
            let wanted = Self::ALL.iter().find(|isa| Some(isa.name()) == wanted.as_deref());
            match wanted {
                // without asking the kernel for tiles
                Some(wanted) if wanted.1 == TileUnit::None => Self(Self::vectors(), TileUnit::None).min(*wanted),
                _ => Self::best(),
            }
        })
    }

    /// The best set of this machine.
    fn best() -> Self {
        let vectors = Self::vectors();
        #[cfg(target_arch = "x86_64")]
        if vectors == Level::Avx512Full && tiles::unit::present() {
            return Self(vectors, TileUnit::Present);
        }
        Self(vectors, TileUnit::None)
    }

    /// The best vectors of this machine.
    #[cfg(target_arch = "x86_64")]
    fn vectors() -> Level {
        macro_rules! has {
            ($($feature:tt)*) => { true $(&& is_x86_feature_detected!($feature))* };
        }
        match () {
            () if !has!("avx2" "fma" "f16c") => Level::Portable,
            () if !has!("avx512f" "avx512vl" "avx512dq" "avx512bw") => Level::Avx2,
            () if !has!("avx512bf16" "avx512vnni") => Level::Avx512,
            () => Level::Avx512Full,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn vectors() -> Level {
        Level::Portable
    }

    pub(crate) fn name(self) -> &'static str {
        match self.1 {
            TileUnit::None => {}
            #[cfg(test)]
            TileUnit::Modelled => return "tiles modelled",
            #[cfg(target_arch = "x86_64")]
            TileUnit::Present => return "amx",
        }
        match self.0 {
            Level::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Level::Avx512Full => "avx512-bf16-vnni",
        }
    }

    /// Whether products with weights in a format use tiles, which need inputs in their own layout.
    pub(crate) fn has_tiles_for(self, format: Format) -> bool {
        self.1 != TileUnit::None && format != Format::F32
    }

    /// Number of f32 in a vector.
    pub(crate) fn lanes(self) -> usize {
        match self.0 {
            Level::Portable => <portable::Array as Vector>::LANES,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => <x86::V256 as Vector>::LANES,
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 | Level::Avx512Full => <x86::V512 as Vector>::LANES,
        }
    }
}

/// A vector of f32. Contract of all operations: the machine has the instructions, and pointers are
/// valid for the elements that are read or written, with any alignment.
trait Vector: Copy {
    const LANES: usize;
    /// Number of rows of a register tile of attention, which is [`COLUMNS`] vectors wide.
    const ROWS: usize;
    unsafe fn zero() -> Self;
    unsafe fn load(p: *const f32) -> Self;
    /// Loads the first `n < LANES` elements; the others are zero.
    unsafe fn load_part(p: *const f32, n: usize) -> Self;
    unsafe fn store(self, p: *mut f32);
    /// Stores the first `n < LANES` elements.
    unsafe fn store_part(self, p: *mut f32, n: usize);
    unsafe fn splat(p: *const f32) -> Self;
    /// `self + a * b`.
    unsafe fn add_product(self, a: Self, b: Self) -> Self;
    /// Converts bf16 to f32: those in the lower (`half` 0) or upper (1) halves of the vector's
    /// words, of which only the bits in `keep` count.
    unsafe fn widen(self, half: usize, keep: u32) -> Self;
    /// The sum of the elements of each of four vectors, in a fixed order.
    unsafe fn sums(all: [Self; 4]) -> [f32; 4];
}

/// The dot product of weight rows in one format and input rows, in steps along the rows. Contract
/// of all operations: the machine has the instructions, and pointers are valid for the bytes of a
/// step.
trait Dot {
    /// The partial sums of one product.
    type Acc: Vector;
    type Weight: Copy;
    type Input: Copy;
    /// Bytes of a weight row in a step.
    const WEIGHT_BYTES: usize;
    /// Bytes of an input row in a step.
    const INPUT_BYTES: usize;
    /// Number of input rows in a register tile, at most 6.
    const TOKENS: usize;
    /// Number of parts (1 or 2) of a step that are computed one after the other.
    const HALVES: usize;
    unsafe fn weight(p: *const u8, half: usize) -> Self::Weight;
    /// The last step of a row, with only `bytes < WEIGHT_BYTES`; missing weights are zero.
    unsafe fn weight_part(p: *const u8, bytes: usize, half: usize) -> Self::Weight;
    unsafe fn input(p: *const u8, half: usize) -> Self::Input;
    unsafe fn step(acc: Self::Acc, weight: Self::Weight, input: Self::Input) -> Self::Acc;
}

/// Compiles a kernel for every instruction set and selects one at run time. The kernel's parameter
/// says whether the set has fused multiply-add.
macro_rules! kernels {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $($body:ident)::+;)*) => {$(
        $(#[$doc])*
        #[allow(clippy::too_many_arguments)]
        pub(crate) fn $name(isa: Isa, $($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,f16c")]
                fn wide($($arg: $ty),*) $(-> $ret)? {
                    $($body)::+::<true>($($arg),*)
                }
                #[target_feature(enable = "avx2,fma,f16c")]
                fn medium($($arg: $ty),*) $(-> $ret)? {
                    $($body)::+::<true>($($arg),*)
                }
                match isa.0 {
                    // SAFETY: an `Isa` says that the machine has every feature that `wide` is
                    // compiled with.
                    Level::Avx512 | Level::Avx512Full => return unsafe { wide($($arg),*) },
                    // SAFETY: as above, for `medium`.
                    Level::Avx2 => return unsafe { medium($($arg),*) },
                    Level::Portable => {}
                }
            }
            let _ = isa;
            $($body)::+::<false>($($arg),*)
        }
    )*};
}

kernels! {
    /// See [`rows::rms_norm`].
    fn rms_norm(x: &[f32], weight: &[f32], eps: f32, y: &mut [f32]) = rows::rms_norm;
    /// See [`rows::layer_norm`].
    fn layer_norm(x: &[f32], weight: &[f32], bias: &[f32], eps: f32, y: &mut [f32]) = rows::layer_norm;
    /// See [`rows::gelu`].
    fn gelu(x: &mut [f32]) = rows::gelu;
    /// See [`rows::softmax_rows`].
    fn softmax_rows(x: &mut [f32], width: usize) = rows::softmax_rows;
    /// See [`rows::swiglu`].
    fn swiglu(gate_up: &[f32], width: usize, y: &mut [f32]) = rows::swiglu;
    /// See [`rows::add`].
    fn add(x: &mut [f32], y: &[f32]) = rows::add;
    /// See [`rows::rotate`].
    fn rotate(x: &mut [f32], stride: usize, heads: usize, dim: usize, cos: &[f32], sin: &[f32]) = rows::rotate;
    /// See [`rows::softmax`].
    fn softmax(scores: &mut [f32], lo: usize, hi: usize) -> (f32, f32) = rows::softmax;
    /// See [`rows::softmax_pairs`].
    fn softmax_pairs(scores: &mut [f32], lo: usize, hi: usize) -> (f32, f32) = rows::softmax_pairs;
    /// See [`rows::pair_up`].
    fn pair_up(x: &mut [f32]) = rows::pair_up;
    /// See [`rows::log_sum_exp`].
    fn log_sum_exp(x: &[f32]) -> f64 = rows::log_sum_exp;
    /// See [`rows::merge`].
    fn merge(sum: &mut [f32], a: f32, part: &[f32], b: f32) = rows::merge;
    /// See [`rows::add_low_rank`].
    fn add_low_rank(inner: &[Line], rank: usize, b: &[f32], from: usize, y: &mut [f32]) = rows::add_low_rank;
    /// See [`rows::pack_f32`].
    fn pack_f32(x: &[f32], cols: usize, out: &mut [Line], stride: usize) = rows::pack_f32;
    /// See [`rows::pack_bf16`].
    fn pack_bf16(x: &[f32], cols: usize, out: &mut [Line], stride: usize) = rows::pack_bf16;
    /// See [`rows::pack_bytes`].
    fn pack_bytes(x: &[f32], cols: usize, out: &mut [Line], stride: usize) = rows::pack_bytes;
}

/// Hints that the address will be read soon. The address need not be valid.
#[inline(always)]
fn prefetch(p: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no visible effect and never faults; every x86-64 has it.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(p.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}

/// As [`prefetch`], into the second-level cache: for what would not fit in the first one until
/// then.
#[inline(always)]
fn prefetch_near(p: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as for `prefetch`.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(p.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}

#[cfg(test)]
pub(crate) mod testing {
    use super::{Isa, TileUnit};
    use std::cell::Cell;

    thread_local! {
        pub(super) static LOWERED: Cell<Option<Isa>> = const { Cell::new(None) };
    }

    /// Whether this machine is one that `tests/tiles/run` emulates, which is slow and there for its
    /// tiles alone.
    pub(crate) fn emulated() -> bool {
        std::env::var_os("AUTOACT_EMULATED_TILES").is_some()
    }

    /// Whether the machine converts two vectors to bf16 as processors do. Bochs takes the second
    /// half of the result from the wrong place (`vcvtne2ps2bf16`), on which weights in Q8_0 depend.
    pub(crate) fn converts_pairs() -> bool {
        !emulated()
    }

    /// The number of cases of a property.
    pub(crate) fn cases(all: u32) -> u32 {
        if emulated() { all / 10 } else { all }
    }

    /// Calls `f` once for every instruction set of this machine, and for tiles in a model. Kernels
    /// called by this thread use it.
    pub(crate) fn with_each_isa(mut f: impl FnMut(&'static str)) {
        let all = Isa::ALL.iter().copied().filter(|isa| *isa <= Isa::best());
        let all = all.chain([Isa(Isa::vectors(), TileUnit::Modelled)]);
        for isa in all.filter(|isa| !emulated() || isa.name() == "amx") {
            LOWERED.set(Some(isa));
            f(isa.name());
        }
        LOWERED.set(None);
    }

    /// [`with_each_isa`] for those with tiles.
    pub(crate) fn with_tiles(mut f: impl FnMut(&'static str)) {
        with_each_isa(|isa| {
            if LOWERED.get().is_some_and(|isa| isa.1 != TileUnit::None) {
                f(isa);
            }
        });
    }
}
