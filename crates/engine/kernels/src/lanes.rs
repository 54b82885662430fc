//! Arrays of a fixed size that the compiler vectorises.

/// Length of such an array.
pub(crate) const LANES: usize = 16;

/// Reduces all lanes to one value, in a fixed tree order.
#[inline(always)]
pub(crate) fn reduce(x: [f32; LANES], f: impl Fn(f32, f32) -> f32) -> f32 {
    let x = fold::<16, 8>(x, &f);
    let x = fold::<8, 4>(x, &f);
    let x = fold::<4, 2>(x, &f);
    f(x[0], x[1])
}

#[inline(always)]
fn fold<const N: usize, const HALF: usize>(x: [f32; N], f: impl Fn(f32, f32) -> f32) -> [f32; HALF] {
    let mut y = [0.0; HALF];
    let (low, high) = x.split_at(HALF);
    for ((y, low), high) in y.iter_mut().zip(low).zip(high) {
        *y = f(*low, *high);
    }
    y
}
