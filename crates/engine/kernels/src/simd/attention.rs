//! The matrix product of attention. Its right factor consists of vectors at several places in
//! memory.

#[cfg(target_arch = "x86_64")]
use super::x86;
use super::{Isa, Level, Vector, portable};

/// Number of vectors in a row of a register tile.
pub(crate) const COLUMNS: usize = 4;

/// A span of the sum: element `at + i` of a row of the left factor, for `i < count`, multiplies the
/// vector at `b[column][i * apart]`, for each column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span<'a, const C: usize> {
    pub(crate) at: usize,
    pub(crate) count: usize,
    pub(crate) b: [&'a [f32]; C],
}

/// For all rows `r` and columns `c` of vectors:
/// `out[r * out_stride + c * lanes ..] += sum a[r * a_stride + i] * b_c[i]` over all spans in
/// order. Each number is one chain of multiply-adds. Vectors have [`Isa::lanes`] elements, or
/// `last` if `C` is 1 and `last` is smaller. With `fresh`, the chains start at zero instead of the
/// value in `out`.
///
/// # Panics
/// If an index lies outside its slice.
#[allow(clippy::too_many_arguments)]
pub(crate) fn multiply<const C: usize>(
    isa: Isa,
    rows: usize,
    a: &[f32],
    a_stride: usize,
    spans: &[Span<'_, C>],
    apart: usize,
    last: usize,
    fresh: bool,
    out: &mut [f32],
    out_stride: usize,
) {
    if rows == 0 {
        return;
    }
    let lanes = isa.lanes();
    let last = if C == 1 { last.min(lanes) } else { lanes };
    let row_len = (C - 1) * lanes + last;
    assert!((rows - 1) * out_stride + row_len <= out.len() && (rows == 1 || row_len <= out_stride), "the outputs do not fit");
    for span in spans {
        assert!((rows - 1) * a_stride + span.at + span.count <= a.len(), "the rows do not fit");
        assert!(span.count == 0 || span.b.iter().all(|b| (span.count - 1) * apart + last <= b.len()), "the vectors do not fit");
    }
    let t = Tile { rows, a: a.as_ptr(), a_stride, spans, apart, last, fresh, out: out.as_mut_ptr(), out_stride };
    // SAFETY: everything lies inside its slice (checked just above), and an `Isa` implies that the
    // machine has its instructions.
    unsafe {
        match isa.0 {
            Level::Portable => all_rows::<portable::Array, C>(&t),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => rows_256(&t),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 | Level::Avx512Full => rows_512(&t),
        }
    }
}

struct Tile<'a, const C: usize> {
    rows: usize,
    a: *const f32,
    a_stride: usize,
    spans: &'a [Span<'a, C>],
    apart: usize,
    last: usize,
    fresh: bool,
    out: *mut f32,
    out_stride: usize,
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
unsafe fn rows_512<const C: usize>(t: &Tile<'_, C>) {
    // SAFETY: as for the caller.
    unsafe { all_rows::<x86::V512, C>(t) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn rows_256<const C: usize>(t: &Tile<'_, C>) {
    // SAFETY: as for the caller.
    unsafe { all_rows::<x86::V256, C>(t) }
}

/// # Safety
/// The machine must have the instructions of `V`, and the pointers must be valid.
#[inline(always)]
unsafe fn all_rows<V: Vector, const C: usize>(t: &Tile<'_, C>) {
    let mut row = 0;
    while row < t.rows {
        let n = (t.rows - row).min(V::ROWS);
        // SAFETY: the rows exist.
        unsafe {
            match n {
                1 => tile::<V, C, 1>(t, row),
                2 => tile::<V, C, 2>(t, row),
                3 => tile::<V, C, 3>(t, row),
                4 => tile::<V, C, 4>(t, row),
                5 => tile::<V, C, 5>(t, row),
                _ => tile::<V, C, 6>(t, row),
            }
        }
        row += n;
    }
}

/// # Safety
/// As for [`all_rows`]; rows `row..row + R` must exist.
#[inline(always)]
unsafe fn tile<V: Vector, const C: usize, const R: usize>(t: &Tile<'_, C>, row: usize) {
    let whole = t.last == V::LANES;
    // SAFETY: `multiply` checked all that is read and written here.
    unsafe {
        let out = t.out.add(row * t.out_stride);
        let mut acc = [[V::zero(); C]; R];
        if !t.fresh {
            for (r, acc) in acc.iter_mut().enumerate() {
                for (c, acc) in acc.iter_mut().enumerate() {
                    let from = out.add(r * t.out_stride + c * V::LANES);
                    *acc = if C > 1 || whole { V::load(from) } else { V::load_part(from, t.last) };
                }
            }
        }
        for span in t.spans {
            let mut a = t.a.add(row * t.a_stride + span.at);
            let mut b = [std::ptr::null::<f32>(); C];
            for (b, slice) in b.iter_mut().zip(&span.b) {
                *b = slice.as_ptr();
            }
            for i in 0..span.count {
                let mut vectors = [V::zero(); C];
                for (v, b) in vectors.iter_mut().zip(b) {
                    let from = b.add(i * t.apart);
                    *v = if C > 1 || whole { V::load(from) } else { V::load_part(from, t.last) };
                }
                for (r, acc) in acc.iter_mut().enumerate() {
                    let x = V::splat(a.add(r * t.a_stride));
                    for (acc, v) in acc.iter_mut().zip(vectors) {
                        *acc = acc.add_product(x, v);
                    }
                }
                a = a.add(1);
            }
        }
        for (r, acc) in acc.into_iter().enumerate() {
            for (c, acc) in acc.into_iter().enumerate() {
                let to = out.add(r * t.out_stride + c * V::LANES);
                if C > 1 || whole { acc.store(to) } else { acc.store_part(to, t.last) }
            }
        }
    }
}
