//! How many calls may be repeated: a share of those that are made, so that repetitions never
//! multiply the load of a service that is in trouble.

/// One call, in the unit that is counted here.
const CALL: u64 = 1000;

/// A bucket that calls fill and repetitions empty.
#[derive(Debug, Clone)]
pub struct Budget {
    /// What one call puts in.
    share: u64,
    /// What fits in.
    most: u64,
    left: u64,
}

impl Budget {
    /// `share` repetitions a call (0 to 1, to the thousandth) beyond the first `burst`. It begins
    /// full.
    pub fn new(share: f64, burst: u32) -> Budget {
        // a float becomes the nearest whole number in range
        let share = (share.clamp(0.0, 1.0) * CALL as f64).round() as u64;
        let most = u64::from(burst) * CALL;
        Budget { share, most, left: most }
    }

    /// A call is made for the first time.
    pub fn called(&mut self) {
        self.left = (self.left + self.share).min(self.most);
    }

    /// Whether a call may be repeated; then the repetition is counted.
    pub fn take(&mut self) -> bool {
        match self.left.checked_sub(CALL) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever comes in which order: never more than the burst and the share.
        #[test]
        fn it_is_never_exceeded(steps in prop::collection::vec(any::<bool>(), 0..600), share in 0u32..=100, burst in 0u32..30) {
            let mut budget = Budget::new(f64::from(share) / 100.0, burst);
            let (mut calls, mut repetitions) = (0u32, 0u32);
            for repeated in steps {
                if repeated {
                    repetitions += u32::from(budget.take());
                } else {
                    budget.called();
                    calls += 1;
                }
                prop_assert!(100 * repetitions <= 100 * burst + calls * share);
            }
        }
    }

    #[test]
    fn calls_fill_it_again() {
        let mut budget = Budget::new(0.2, 1);
        assert!(budget.take() && !budget.take());
        (0..4).for_each(|_| budget.called());
        assert!(!budget.take());
        budget.called();
        assert!(budget.take() && !budget.take());
    }
}
