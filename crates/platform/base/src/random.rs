//! Seeded random numbers. The same seed gives the same numbers on every machine and in every
//! release: worlds, training data, weights and sampled tokens are made from them, so nothing here
//! may ever give other numbers. Not for secrets.
//!
//! [`Rng`] is the generator to use. [`SplitMix64`] is smaller: it seeds [`Rng`], and serves what
//! was pinned to it.

/// The increment of SplitMix64: 2^64 divided by the golden ratio, made odd.
const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser of SplitMix64: every bit of `z` changes about half of the result's bits.
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A hash of a text (FNV-1a, then [`mix`]).
pub fn stable_hash(text: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    mix(hash)
}

/// Uniform in `[0, 1)`: the highest 53 of 64 random bits.
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// Uniform in `0..bound`: the high half of a product, without a division.
fn below(bits: u64, bound: usize) -> usize {
    ((u128::from(bits) * bound as u128) >> 64) as usize
}

/// SplitMix64 (<https://prng.di.unimi.it/splitmix64.c>): 64 bits of state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// The generator of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// One of many independent generators of a seed.
    pub fn stream(seed: u64, stream: u64) -> Self {
        Self(mix(seed ^ mix(stream.wrapping_add(INCREMENT))))
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(INCREMENT);
        mix(self.0)
    }

    /// Uniform in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        unit(self.next_u64())
    }

    /// Uniform in `0..bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        below(self.next_u64(), bound)
    }

    /// Normal with mean 0 and variance 1 (Box-Muller; one of the pair is dropped).
    pub fn normal(&mut self) -> f64 {
        let u = 1.0 - self.unit();
        let v = self.unit();
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}

/// xoshiro256++ (<https://prng.di.unimi.it/xoshiro256plusplus.c>), seeded by [`SplitMix64`].
#[derive(Debug, Clone)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The generator of a seed.
    pub fn new(seed: u64) -> Self {
        let mut seeds = SplitMix64::new(seed);
        Self { state: std::array::from_fn(|_| seeds.next_u64()) }
    }

    /// The generator of a seed for one purpose: different labels give independent streams.
    pub fn labelled(seed: u64, label: &str) -> Self {
        Self::new(seed ^ stable_hash(label))
    }

    /// [`Rng::labelled`] for the `number`-th of many things that share the label.
    pub fn numbered(seed: u64, number: u64, label: &str) -> Self {
        Self::labelled(seed ^ number.wrapping_mul(INCREMENT), label)
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let out = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        out
    }

    /// Uniform in `0..bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        below(self.next_u64(), bound)
    }

    /// Uniform in `low..=high` (in either order).
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        let (low, high) = (low.min(high), low.max(high));
        let span = high.abs_diff(low).saturating_add(1);
        let offset = ((u128::from(self.next_u64()) * u128::from(span)) >> 64) as u64;
        low.saturating_add_unsigned(offset)
    }

    /// Uniform in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        unit(self.next_u64())
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Exponentially distributed with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }

    /// One of the items; `None` if there are none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }

    /// The index of one of the weights, in proportion; `None` if nothing has weight.
    pub fn weighted(&mut self, weights: &[f64]) -> Option<usize> {
        let total: f64 = weights.iter().filter(|w| **w > 0.0).sum();
        if total <= 0.0 {
            return None;
        }
        let mut at = self.unit() * total;
        let mut last = None;
        for (index, weight) in weights.iter().enumerate().filter(|(_, w)| **w > 0.0) {
            last = Some(index);
            at -= weight;
            if at < 0.0 {
                break;
            }
        }
        last
    }

    /// A random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix64_gives_the_numbers_of_its_authors() {
        // the first numbers of the reference implementation for seed 1234567
        let mut rng = SplitMix64::new(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([rng.next_u64(), rng.next_u64(), rng.next_u64()], expected);
    }

    #[test]
    fn xoshiro256_plus_plus_gives_the_numbers_of_its_authors() {
        // the first numbers of the reference implementation for the state 1, 2, 3, 4
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let expected = [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386];
        assert_eq!([rng.next_u64(), rng.next_u64(), rng.next_u64(), rng.next_u64()], expected);
    }

    #[test]
    fn streams_are_fixed_for_ever() {
        // committed corpora and models were made with these numbers
        assert_eq!(stable_hash("world"), 1_347_049_952_501_568_909);
        assert_eq!(Rng::new(1).next_u64(), 14_971_601_782_005_023_387);
        assert_eq!(Rng::labelled(1, "x").next_u64(), 12_861_415_208_911_470_919);
        assert_eq!(Rng::numbered(1, 3, "x").next_u64(), 14_214_723_801_561_706_623);
        assert_eq!(SplitMix64::stream(7, 3).next_u64(), 7_250_273_413_821_410_515);
    }

    #[test]
    fn a_unit_is_at_least_0_and_below_1() {
        assert_eq!((unit(0), unit(u64::MAX)), (0.0, 1.0 - f64::EPSILON / 2.0));
        let mut rng = Rng::new(1);
        assert!((0..1000).map(|_| rng.exponential()).all(|x| x >= 0.0 && x.is_finite()));
    }

    #[test]
    fn bounds_hold() {
        let mut rng = Rng::new(7);
        for _ in 0..1000 {
            assert!(rng.below(3) < 3);
            assert!((-2..=2).contains(&rng.between(2, -2)));
        }
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.pick::<u8>(&[]), None);
        assert_eq!(rng.weighted(&[0.0, 2.0]), Some(1));
        assert_eq!(rng.weighted(&[]), None);
    }
}
