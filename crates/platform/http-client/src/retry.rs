//! Pauses before retries: exponential backoff with jitter.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use http::HeaderMap;

/// The first pause.
const BASE: Duration = Duration::from_millis(100);
/// The maximum pause. If a server asks for more, the caller gets the delay instead.
pub const LONGEST: Duration = Duration::from_secs(5);

/// The pause after attempt `attempt` (from 0): what the server asked for, else a pause that doubles
/// each time. Jitter reduces it by up to half, so that clients that failed together do not return
/// together.
pub fn pause(attempt: u32, asked: Option<Duration>) -> Duration {
    match asked {
        // never earlier than the server asked for
        Some(asked) => asked + asked.mul_f64(0.1 * random()),
        None => BASE.saturating_mul(1 << attempt.min(16)).min(LONGEST).mul_f64(0.5 + 0.5 * random()),
    }
}

/// `Retry-After` in seconds; dates are ignored.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(http::header::RETRY_AFTER)?.to_str().ok()?;
    let seconds: f64 = text.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// A random number in [0, 1), from the random seed of a hash map.
fn random() -> f64 {
    (RandomState::new().hash_one(0_u8) >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_with_jitter_and_have_an_end() {
        for attempt in 0..40 {
            let whole = (100.0 * 2_f64.powi(attempt.min(16) as i32)).min(5000.0);
            let millis = pause(attempt, None).as_secs_f64() * 1000.0;
            assert!((whole / 2.0..=whole).contains(&millis), "{attempt}: {millis}");
        }
        let some: Vec<Duration> = (0..20).map(|_| pause(3, None)).collect();
        assert!(some.iter().any(|pause| *pause != some[0]), "no jitter");
    }

    #[test]
    fn a_server_that_names_a_time_gets_it() {
        let asked = Duration::from_secs(2);
        assert!((asked..asked.mul_f64(1.1)).contains(&pause(0, Some(asked))));
    }
}
