//! What an interval of 95% needs of Student's distribution.

/// The figures where the series below is too rough, by degrees of freedom from 1.
const FEW: [f64; 4] = [12.706, 4.303, 3.182, 2.776];
/// 97.5% of the normal distribution lies below it.
const NORMAL: f64 = 1.959_964;

/// 97.5% of Student's distribution with so many degrees of freedom lies below it, to two in a
/// thousand (Abramowitz and Stegun, 26.7.5). With none, nothing is known.
pub(crate) fn student(degrees: usize) -> f64 {
    let Some(before) = degrees.checked_sub(1) else { return f64::INFINITY };
    if let Some(figure) = FEW.get(before) {
        return *figure;
    }
    let (z, degrees) = (NORMAL, degrees as f64);
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / degrees + second / degrees.powi(2) + third / degrees.powi(3)
}

/// The mean, and the half of its interval of 95%; one value tells nothing of that.
pub(crate) fn interval(values: &[f64]) -> (f64, Option<f64>) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let spread = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let half = (values.len() > 1).then(|| student(values.len() - 1) * (spread / count).sqrt());
    (mean, half)
}

#[test]
fn the_figures_are_those_of_the_tables() {
    let table = [(1, 12.706), (2, 4.303), (4, 2.776), (5, 2.571), (7, 2.365), (10, 2.228), (18, 2.101), (30, 2.042), (120, 1.980)];
    for (degrees, figure) in table {
        let found = student(degrees);
        assert!((found / figure - 1.0).abs() < 0.002, "{degrees}: {found}, not {figure}");
    }
    assert!((1..200).all(|degrees| student(degrees) > student(degrees + 1)));
    assert_eq!(student(0), f64::INFINITY);
}

#[test]
fn few_pairs_have_a_wide_interval_and_one_has_none() {
    assert_eq!(interval(&[0.9]), (0.9, None));
    let (mean, half) = interval(&[0.9, 1.1]);
    assert!((mean - 1.0).abs() < 1e-9 && half.is_some_and(|half| (half - 1.2706).abs() < 1e-6), "{mean} {half:?}");
    let many: Vec<f64> = (0..19).map(|at| if at % 2 == 0 { 0.9 } else { 1.1 }).collect();
    assert!(interval(&many).1.is_some_and(|half| half < 0.06));
}
