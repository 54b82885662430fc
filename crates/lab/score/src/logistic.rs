//! Logistic regression with a penalty on the weights, by Newton's method.

/// Newton steps at most. About ten are taken; more only if halving them goes on for long.
const STEPS: usize = 100;
/// The gradient, per row, at which the fit ends.
const TOLERANCE: f64 = 1e-10;
/// Halvings of a step at most.
const HALVINGS: u32 = 40;

/// Weights for the columns of some rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Logistic {
    /// The log-odds where all columns are 0.
    pub(crate) intercept: f64,
    pub(crate) weights: Vec<f64>,
}

impl Logistic {
    /// The weights that minimise `Σ log loss + penalty / 2 · Σ weight²`. The intercept is free.
    /// Above a penalty of 0 the minimum exists for separable rows too, as long as both classes are
    /// there; of one class alone the intercept ends where the last step left it.
    ///
    /// All rows have `columns` finite values. The same rows give the same bits.
    pub(crate) fn fit(rows: &[(Vec<f64>, bool)], columns: usize, penalty: f64) -> Logistic {
        let mut fitted = Logistic { intercept: 0.0, weights: vec![0.0; columns] };
        let mut loss = fitted.loss(rows, penalty);
        for _ in 0..STEPS {
            let (gradient, hessian) = fitted.slopes(rows, penalty);
            if gradient.iter().all(|slope| slope.abs() <= TOLERANCE * rows.len() as f64) {
                break;
            }
            let step = solve(hessian, gradient);
            // a whole step can go too far where the loss is flat
            let halved = (0..HALVINGS).map(|halving| fitted.less(&step, 0.5_f64.powi(halving.cast_signed())));
            let lower = halved.map(|next| (next.loss(rows, penalty), next)).find(|(lower, _)| *lower < loss);
            let Some((lower, next)) = lower else { break };
            (loss, fitted) = (lower, next);
        }
        fitted
    }

    /// The log-odds of a row.
    pub(crate) fn odds(&self, row: &[f64]) -> f64 {
        self.intercept + self.weights.iter().zip(row).map(|(weight, value)| weight * value).sum::<f64>()
    }

    fn less(&self, step: &[f64], part: f64) -> Logistic {
        let (first, rest) = step.split_first().map_or((0.0, step), |(first, rest)| (*first, rest));
        let weights = self.weights.iter().zip(rest).map(|(weight, step)| weight - part * step).collect();
        Logistic { intercept: self.intercept - part * first, weights }
    }

    fn loss(&self, rows: &[(Vec<f64>, bool)], penalty: f64) -> f64 {
        let one = |(row, right): &(Vec<f64>, bool)| {
            let against = if *right { -self.odds(row) } else { self.odds(row) };
            // ln(1 + e^x) without overflow
            against.max(0.0) + (-against.abs()).exp().ln_1p()
        };
        rows.iter().map(one).sum::<f64>() + penalty / 2.0 * self.weights.iter().map(|weight| weight * weight).sum::<f64>()
    }

    /// Gradient and Hessian of the loss; the intercept comes first.
    fn slopes(&self, rows: &[(Vec<f64>, bool)], penalty: f64) -> (Vec<f64>, Vec<Vec<f64>>) {
        let size = self.weights.len() + 1;
        let mut gradient = vec![0.0; size];
        let mut hessian = vec![vec![0.0; size]; size];
        for (row, right) in rows {
            let probability = 1.0 / (1.0 + (-self.odds(row)).exp());
            let (error, curvature) = (probability - f64::from(u8::from(*right)), probability * (1.0 - probability));
            let value = |at: usize| if at == 0 { 1.0 } else { row[at - 1] };
            for (left, (slope, line)) in gradient.iter_mut().zip(&mut hessian).enumerate() {
                *slope += error * value(left);
                line.iter_mut().enumerate().for_each(|(at, cell)| *cell += curvature * value(left) * value(at));
            }
        }
        for (at, weight) in self.weights.iter().enumerate() {
            gradient[at + 1] += penalty * weight;
            hessian[at + 1][at + 1] += penalty;
        }
        (gradient, hessian)
    }
}

/// Solves `matrix · x = right` by elimination with pivots. What has no pivot is left at 0.
fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    let size = right.len();
    for column in 0..size {
        let pivot = (column..size).max_by(|left, right| matrix[*left][column].abs().total_cmp(&matrix[*right][column].abs()));
        let Some(pivot) = pivot.filter(|row| matrix[*row][column].abs() > f64::MIN_POSITIVE) else { continue };
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        let (above, below) = matrix.split_at_mut(column + 1);
        let (pivot_row, pivot_right) = (&above[column], right[column]);
        for (row, right) in below.iter_mut().zip(&mut right[column + 1..]) {
            let factor = row[column] / pivot_row[column];
            row.iter_mut().zip(pivot_row).skip(column).for_each(|(cell, above)| *cell -= factor * above);
            *right -= factor * pivot_right;
        }
    }
    let mut solution = vec![0.0; size];
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size).map(|at| matrix[row][at] * solution[at]).sum();
        let value = (right[row] - known) / matrix[row][row];
        solution[row] = if value.is_finite() { value } else { 0.0 };
    }
    solution
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equations_are_solved() {
        assert_eq!(solve(vec![vec![0.0, 2.0], vec![4.0, 0.0]], vec![6.0, 8.0]), [2.0, 3.0]);
        assert_eq!(solve(vec![vec![0.0, 0.0], vec![0.0, 2.0]], vec![1.0, 4.0]), [0.0, 2.0]);
        assert_eq!(solve(Vec::new(), Vec::new()), [0.0; 0]);
    }

    #[test]
    fn without_columns_the_intercept_is_the_share() {
        let rows: Vec<(Vec<f64>, bool)> = (0..8).map(|at| (Vec::new(), at % 4 != 0)).collect();
        let fitted = Logistic::fit(&rows, 0, 1.0);
        assert!((fitted.intercept - 3.0_f64.ln()).abs() < 1e-9, "{fitted:?}");
    }

    #[test]
    fn separable_rows_and_one_class_have_finite_weights() {
        let rows = |right: fn(usize) -> bool| (0..20).map(|at| (vec![at as f64 - 9.5], right(at))).collect::<Vec<_>>();
        let separable = Logistic::fit(&rows(|at| at >= 10), 1, 1.0);
        assert!(separable.weights[0] > 0.5 && separable.weights[0] < 10.0 && separable.intercept.abs() < 1e-6, "{separable:?}");
        let one_class = Logistic::fit(&rows(|_| true), 1, 1.0);
        assert!(one_class.intercept > 5.0 && one_class.intercept.is_finite() && one_class.weights[0].abs() < 1e-6, "{one_class:?}");
    }
}
