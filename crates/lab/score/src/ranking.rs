//! How well a number tells right answers from wrong ones, and how true it is as a probability.

/// Quantiles of the normal distribution that a share's lower bound lies below the share: one
/// standard error, so that the true share is above the bound in about 84 of 100 samples.
///
/// A larger margin costs coverage on the few hundred questions that there are. Without any margin a
/// threshold is chosen for a lucky sample, and a single right answer proves a precision of 100%.
const MARGIN: f64 = 1.0;
/// Bins of the calibration error.
const BINS: usize = 10;

/// The probability that a right answer has a higher number than a wrong one; ties count half. 0.5
/// tells nothing, 1 tells all, below 0.5 it is the wrong way round. `None` if all answers are
/// right, or all wrong, or a number is none.
pub fn auroc(scored: &[(f64, bool)]) -> Option<f64> {
    let right = scored.iter().filter(|(_, right)| *right).count();
    let wrong = scored.len() - right;
    if right == 0 || wrong == 0 || scored.iter().any(|(score, _)| score.is_nan()) {
        return None;
    }
    // in halves, so that ties are exact
    let (mut won, mut right_below) = (0_u64, 0_u64);
    for tied in by_score(scored).iter().rev() {
        let (tied_right, tied_wrong) = (tied.right as u64, tied.wrong() as u64);
        won += tied_wrong * (2 * (right as u64 - right_below - tied_right) + tied_right);
        right_below += tied_right;
    }
    Some(won as f64 / 2.0 / right as f64 / wrong as f64)
}

/// What a threshold would approve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurvePoint {
    /// The least number that is approved.
    pub threshold: f64,
    /// How many are approved.
    pub approved: usize,
    /// Fraction of the approved answers that are right.
    pub precision: f64,
    /// Fraction of the right answers that are approved; 0 if none is right.
    pub coverage: f64,
}

/// Precision and coverage at each number that occurs, from the highest on: coverage never falls.
/// Answers of the same number are approved together.
pub fn curve(scored: &[(f64, bool)]) -> Vec<CurvePoint> {
    let all_right = scored.iter().filter(|(_, right)| *right).count();
    let (mut approved, mut right) = (0, 0);
    let point = |tied: Tied| {
        approved += tied.count;
        right += tied.right;
        let coverage = right as f64 / all_right.max(1) as f64;
        CurvePoint { threshold: tied.score, approved, precision: right as f64 / approved as f64, coverage }
    };
    by_score(scored).into_iter().map(point).collect()
}

/// The precision of the highest threshold that covers at least `coverage` of the right answers, 0 to
/// 1. `None` if no answer is right.
pub fn precision_covering(coverage: f64, scored: &[(f64, bool)]) -> Option<f64> {
    let any = scored.iter().any(|(_, right)| *right);
    curve(scored).into_iter().find(|point| any && point.coverage >= coverage).map(|point| point.precision)
}

/// What a threshold that keeps most right answers catches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Caught {
    /// The least number that is kept.
    pub threshold: f64,
    /// Fraction of the wrong answers that are below it.
    pub share: f64,
}

/// What the highest threshold catches that keeps at least `kept` of the right answers, 0 to 1.
/// Answers of the same number are kept together. `None` if all answers are right, or all wrong, or a
/// number is none.
pub fn caught_keeping(kept: f64, scored: &[(f64, bool)]) -> Option<Caught> {
    let wrong = scored.iter().filter(|(_, right)| !right).count();
    if wrong == 0 || wrong == scored.len() || scored.iter().any(|(score, _)| score.is_nan()) {
        return None;
    }
    let CurvePoint { threshold, .. } = curve(scored).into_iter().find(|point| point.coverage >= kept)?;
    let caught = scored.iter().filter(|(score, right)| !right && *score < threshold).count();
    Some(Caught { threshold, share: caught as f64 / wrong as f64 })
}

/// The expected calibration error of probabilities: the mean distance between probability and
/// fraction of right answers, over 10 bins of equal mass (by rank; equal widths would put nearly
/// all answers of a sure group into one bin). Answers of the same probability share what is right
/// among them, so their order does not matter. `None` without answers.
pub fn calibration_error(scored: &[(f64, bool)]) -> Option<f64> {
    let spread = |tied: Tied| std::iter::repeat_n((tied.score, tied.right as f64 / tied.count as f64), tied.count);
    let ranked: Vec<(f64, f64)> = by_score(scored).into_iter().flat_map(spread).collect();
    let count = ranked.len();
    let gap = |bin: usize| {
        let bin = ranked.get(bin * count / BINS..(bin + 1) * count / BINS).unwrap_or_default();
        bin.iter().map(|(score, right)| score - right).sum::<f64>().abs()
    };
    (count > 0).then(|| (0..BINS).map(gap).sum::<f64>() / count as f64)
}

/// A lower bound of the share that `right` of `count` answers stand for: the lower end of Wilson's
/// interval of one standard error, which the true share is above in about 84 of 100 samples. 0
/// without answers.
pub fn precision_at_least(right: usize, count: usize) -> f64 {
    if count == 0 {
        return 0.0;
    }
    let (count, square) = (count as f64, MARGIN * MARGIN);
    let share = right as f64 / count;
    let spread = MARGIN * (share * (1.0 - share) / count + square / (4.0 * count * count)).sqrt();
    ((share + square / (2.0 * count) - spread) / (1.0 + square / count)).max(0.0)
}

/// The least threshold whose approved answers are right with at least `precision`, so that most
/// answers are covered. It lies halfway to the next lower number, or at the lowest one of all.
///
/// Small samples are guarded against by [`precision_at_least`]: the bound has to reach `precision`.
/// 97% therefore need at least 33 approved answers if all are right, and 87 if one is wrong.
///
/// # Errors
/// No threshold reaches it; the highest bound that one has.
pub fn threshold_for(precision: f64, scored: &[(f64, bool)]) -> Result<f64, f64> {
    let tied = by_score(scored);
    let (mut approved, mut right, mut best) = (0, 0, 0.0_f64);
    let mut least = None;
    for (at, group) in tied.iter().enumerate() {
        approved += group.count;
        right += group.right;
        let bound = precision_at_least(right, approved);
        best = best.max(bound);
        if bound >= precision {
            let below = tied.get(at + 1).map_or(group.score, |next| next.score);
            least = Some(f64::midpoint(group.score, below));
        }
    }
    least.ok_or(best)
}

/// Answers of the same number.
struct Tied {
    score: f64,
    count: usize,
    right: usize,
}

impl Tied {
    fn wrong(&self) -> usize {
        self.count - self.right
    }
}

/// The answers by number, from the highest on.
fn by_score(scored: &[(f64, bool)]) -> Vec<Tied> {
    let mut sorted = scored.to_vec();
    sorted.sort_by(|(left, _), (right, _)| right.total_cmp(left));
    let mut groups: Vec<Tied> = Vec::new();
    for (score, right) in sorted {
        match groups.last_mut().filter(|group| group.score == score) {
            Some(group) => {
                group.count += 1;
                group.right += usize::from(right);
            }
            None => groups.push(Tied { score, count: 1, right: usize::from(right) }),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_caught_is_below_all_that_is_kept() {
        let scored = [(0.9, true), (0.8, false), (0.7, true), (0.6, true), (0.5, false), (0.4, true), (0.3, false), (0.2, false)];
        let caught = |kept| caught_keeping(kept, &scored).map(|caught| (caught.threshold, caught.share));
        assert_eq!([caught(0.25), caught(0.75), caught(1.0)], [Some((0.9, 1.0)), Some((0.6, 0.75)), Some((0.4, 0.5))]);
        // the next number that keeps as many
        assert_eq!((caught(0.5), caught(0.51)), (Some((0.7, 0.75)), Some((0.6, 0.75))));
        // a wrong answer with the number of a right one goes with it
        assert_eq!(caught_keeping(1.0, &[(0.5, true), (0.5, false), (0.1, false)]), Some(Caught { threshold: 0.5, share: 0.5 }));
        assert_eq!(caught_keeping(0.9, &[(0.5, true), (0.4, true)]), None);
        assert_eq!(caught_keeping(0.0, &[(0.5, false), (0.4, false)]), None);
        assert_eq!(caught_keeping(0.9, &[(f64::NAN, true), (0.4, false)]), None);
    }

    #[test]
    fn precision_is_that_where_enough_is_covered() {
        let scored = [(0.9, true), (0.8, false), (0.7, true), (0.6, true), (0.5, false)];
        let of = |coverage| precision_covering(coverage, &scored);
        assert_eq!([of(0.0), of(0.3), of(0.5), of(1.0)], [Some(1.0), Some(1.0), Some(2.0 / 3.0), Some(0.75)]);
        assert_eq!((precision_covering(0.5, &[(0.9, false)]), precision_covering(0.5, &[])), (None, None));
    }

    #[test]
    fn auroc_counts_pairs() {
        assert_eq!(auroc(&[(0.9, true), (0.1, false)]), Some(1.0));
        assert_eq!(auroc(&[(0.1, true), (0.9, false)]), Some(0.0));
        assert_eq!(auroc(&[(0.5, true), (0.5, false), (0.5, false)]), Some(0.5));
        // of 4 pairs, 2 are won and 1 is tied
        assert_eq!(auroc(&[(3.0, true), (1.0, true), (1.0, false), (2.0, false)]), Some(0.625));
        for none in [&[][..], &[(1.0, true)], &[(1.0, false)], &[(f64::NAN, true), (1.0, false)]] {
            assert_eq!(auroc(none), None, "{none:?}");
        }
    }

    #[test]
    fn a_curve_covers_more_and_more() {
        let points = curve(&[(0.2, false), (0.9, true), (0.5, true), (0.5, false)]);
        let point = |threshold, approved, precision, coverage| CurvePoint { threshold, approved, precision, coverage };
        assert_eq!(points, [point(0.9, 1, 1.0, 0.5), point(0.5, 3, 2.0 / 3.0, 1.0), point(0.2, 4, 0.5, 1.0)]);
        assert!(curve(&[]).is_empty());
        assert_eq!(curve(&[(0.5, false)]), [point(0.5, 1, 0.0, 0.0)]);
    }

    #[test]
    fn probabilities_that_are_true_have_no_calibration_error() {
        let quarter: Vec<(f64, bool)> = (0..40).map(|at| (0.25, at % 4 == 0)).collect();
        assert!(calibration_error(&quarter).unwrap() < 1e-12);
        let sure: Vec<(f64, bool)> = (0..40).map(|at| (1.0, at % 4 == 0)).collect();
        assert!((calibration_error(&sure).unwrap() - 0.75).abs() < 1e-12);
        assert_eq!(calibration_error(&[]), None);
        assert_eq!(calibration_error(&[(0.75, true)]), Some(0.25));
    }

    #[test]
    fn a_threshold_needs_enough_right_answers() {
        let right = |count: usize| vec![(0.9, true); count];
        assert!(threshold_for(0.97, &right(32)).is_err());
        assert_eq!(threshold_for(0.97, &right(33)), Ok(0.9));
        assert_eq!(threshold_for(0.5, &[]), Err(0.0));
        let one_wrong = |count: usize| [right(count - 1), vec![(0.9, false)]].concat();
        assert!(threshold_for(0.97, &one_wrong(86)).unwrap_err() < 0.97);
        assert_eq!(threshold_for(0.97, &one_wrong(87)), Ok(0.9));
    }

    #[test]
    fn a_threshold_is_the_least_that_is_precise() {
        // a wrong answer above many right ones does not end the search
        let mut scored = vec![(0.99, false)];
        scored.extend((0..200).map(|at| (0.9 - f64::from(at) * 1e-3, true)));
        scored.extend((0..50).map(|at| (0.5 - f64::from(at) * 1e-3, at % 2 == 0)));
        let threshold = threshold_for(0.97, &scored).unwrap();
        // within the last ones: halfway between the last answer that it takes and the next
        let taken = scored.iter().filter(|(score, _)| *score >= threshold).count();
        let right = scored.iter().filter(|(score, right)| *right && *score >= threshold).count();
        assert!(precision_at_least(right, taken) >= 0.97 && taken > 201, "{threshold}: {right} of {taken}");
        assert!(scored.iter().all(|(score, _)| *score != threshold));
    }
}
