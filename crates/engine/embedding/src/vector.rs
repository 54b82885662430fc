//! Vectors of length 1.

/// What is wrong with the numbers of a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// One of them is infinite or no number.
    NotFinite,
    /// All of them are 0, so the vector has no direction.
    Zero,
}

impl std::fmt::Display for Flaw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Flaw::NotFinite => "it holds numbers that are not finite",
            Flaw::Zero => "all of its numbers are 0",
        })
    }
}

/// Scales `vector` to the length 1. Sums are of f64, so that squares of large numbers are finite.
pub(crate) fn normalize(vector: &mut [f32]) -> Result<(), Flaw> {
    let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    if !length.is_finite() {
        return Err(Flaw::NotFinite);
    }
    if length == 0.0 {
        return Err(Flaw::Zero);
    }
    for x in vector {
        *x = (f64::from(*x) / length) as f32;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_get_the_length_one() {
        let mut vector = [3.0, 4.0];
        normalize(&mut vector).unwrap();
        assert_eq!(vector, [0.6, 0.8]);
        let mut large = [f32::MAX, f32::MAX];
        normalize(&mut large).unwrap();
        assert!((large[0] - 0.5_f32.sqrt()).abs() < 1e-6);
    }

    #[test]
    fn vectors_without_a_direction_are_refused() {
        assert_eq!(normalize(&mut [0.0, 0.0]), Err(Flaw::Zero));
        assert_eq!(normalize(&mut [1.0, f32::NAN]), Err(Flaw::NotFinite));
        assert_eq!(normalize(&mut [1.0, f32::INFINITY]), Err(Flaw::NotFinite));
    }
}
