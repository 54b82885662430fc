//! Named points at which a process of a test build ends as if it had been killed, or at which one of
//! its threads stops for ever ([`stallpoint`]).
//!
//! `AUTOACT_FAILPOINTS` names the points, comma separated:
//!
//! | written | the process ends |
//! | --- | --- |
//! | `after-effect` | whenever it comes to this point |
//! | `after-effect@2` | when it comes there with the key `2` |
//! | `after-effect%30` | in 30 of 100 cases |
//!
//! Builds without debug assertions have no such points: there the calls are empty.

/// Ends the process, without a word to anybody, if the environment names this point.
#[cfg(not(debug_assertions))]
#[inline]
pub fn failpoint(_name: &str, _key: &dyn std::fmt::Display) {}

/// Ends the process, without a word to anybody, if the environment names this point.
#[cfg(debug_assertions)]
pub fn failpoint(name: &str, key: &dyn std::fmt::Display) {
    if points::of_process().iter().any(|point| point.is_met(name, key, points::percent())) {
        std::process::abort();
    }
}

/// Stops the thread for ever if the environment names this point: a bug that makes work never end.
#[cfg(not(debug_assertions))]
#[inline]
pub fn stallpoint(_name: &str, _key: &dyn std::fmt::Display) {}

/// Stops the thread for ever if the environment names this point: a bug that makes work never end.
#[cfg(debug_assertions)]
pub fn stallpoint(name: &str, key: &dyn std::fmt::Display) {
    while points::of_process().iter().any(|point| point.is_met(name, key, 0)) {
        std::thread::park();
    }
}

/// Names the points of a process.
pub const VARIABLE: &str = "AUTOACT_FAILPOINTS";

#[cfg(debug_assertions)]
mod points {
    use std::fmt::Display;
    use std::hash::{BuildHasher as _, RandomState};
    use std::sync::OnceLock;

    #[derive(Debug, PartialEq)]
    pub(super) struct Point {
        name: String,
        key: Option<String>,
        percent: u64,
    }

    impl Point {
        /// Whether the process ends here; `drawn` is a number below 100.
        pub(super) fn is_met(&self, name: &str, key: &dyn Display, drawn: u64) -> bool {
            self.name == name && self.key.as_ref().is_none_or(|wanted| *wanted == key.to_string()) && drawn < self.percent
        }
    }

    /// Those that the environment names.
    pub(super) fn of_process() -> &'static [Point] {
        static POINTS: OnceLock<Vec<Point>> = OnceLock::new();
        POINTS.get_or_init(|| read(&std::env::var(super::VARIABLE).unwrap_or_default()))
    }

    pub(super) fn read(text: &str) -> Vec<Point> {
        let point = |text: &str| {
            let (rest, percent) = match text.split_once('%') {
                Some((rest, percent)) => (rest, percent.parse().ok()?),
                None => (text, 100),
            };
            let (name, key) = match rest.split_once('@') {
                Some((name, key)) => (name, Some(key.to_owned())),
                None => (rest, None),
            };
            (!name.is_empty()).then(|| Point { name: name.to_owned(), key, percent })
        };
        text.split(',').map(str::trim).filter_map(point).collect()
    }

    /// Another number below 100 each time.
    pub(super) fn percent() -> u64 {
        RandomState::new().hash_one(0) % 100
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn points_are_met_by_name_key_and_chance() {
            let points = read("a, b@2 ,c%30,,@1,d%x");
            assert_eq!(points.len(), 3);
            let met = |name: &str, key: u64, drawn: u64| points.iter().any(|point| point.is_met(name, &key, drawn));
            assert!(met("a", 1, 99) && met("b", 2, 99) && met("c", 1, 29));
            assert!(!met("b", 1, 0) && !met("c", 1, 30) && !met("d", 1, 0) && !met("", 1, 0));
        }
    }
}
