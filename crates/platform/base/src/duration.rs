//! Durations as people write them: `500ms`, `2s`, `1m30s`, `1h`, `1.5s`.
//!
//! For serde fields (feature `serde`): `#[serde(with = "autoact_base::duration")]`.

use std::time::Duration;

/// The units with their nanoseconds, longest first.
const UNITS: [(&str, u128); 6] =
    [("h", 3_600_000_000_000), ("m", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
const EXPECTED: &str = "a duration such as `500ms`, `2s` or `1m30s`";

/// A text that is not a duration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DurationError {
    text: String,
}

impl std::fmt::Display for DurationError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` is not {EXPECTED}", self.text)
    }
}

impl std::error::Error for DurationError {}

/// Reads a duration: numbers with their units, the longer unit first. A number may have decimals.
///
/// # Errors
/// The text is something else, is negative, is finer than a nanosecond, or is too long for a
/// [`Duration`].
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    nanoseconds(text).and_then(from_nanoseconds).ok_or_else(|| DurationError { text: text.to_owned() })
}

fn nanoseconds(text: &str) -> Option<u128> {
    let mut rest = text.trim();
    let mut units = UNITS.iter();
    let mut total: u128 = 0;
    loop {
        let (whole, after) = digits(rest);
        let (decimals, after) = after.strip_prefix('.').map_or(("", after), digits);
        if whole.is_empty() || (decimals.is_empty() && rest[whole.len()..].starts_with('.')) {
            return None;
        }
        let after = after.trim_start();
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        // what the iterator has passed is longer than this unit, or is this unit: neither may
        // follow it
        let (_, factor) = units.find(|(unit, _)| *unit == &after[..letters])?;
        let part = whole.parse::<u128>().ok()?.checked_mul(*factor)?.checked_add(fraction(decimals, *factor)?)?;
        total = total.checked_add(part)?;
        rest = after[letters..].trim_start();
        if rest.is_empty() {
            return Some(total);
        }
    }
}

/// The digits in front, and what follows them.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// `0.decimals` of a unit; `None` if that is no whole number of nanoseconds.
fn fraction(decimals: &str, factor: u128) -> Option<u128> {
    let decimals = decimals.trim_end_matches('0');
    if decimals.is_empty() {
        return Some(0);
    }
    let scale = 10u128.checked_pow(u32::try_from(decimals.len()).ok()?)?;
    let scaled = decimals.parse::<u128>().ok()?.checked_mul(factor)?;
    scaled.is_multiple_of(scale).then_some(scaled / scale)
}

fn from_nanoseconds(nanoseconds: u128) -> Option<Duration> {
    const SECOND: u128 = 1_000_000_000;
    let seconds = u64::try_from(nanoseconds / SECOND).ok()?;
    Some(Duration::new(seconds, u32::try_from(nanoseconds % SECOND).ok()?))
}

/// Writes a duration in the form that [`parse`] reads back.
pub fn format(duration: Duration) -> String {
    let mut left = duration.as_nanos();
    if left == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (unit, factor) in UNITS {
        if left >= factor {
            text.push_str(&format!("{}{unit}", left / factor));
            left %= factor;
        }
    }
    text
}

#[cfg(feature = "serde")]
mod field {
    use super::*;
    use serde::de::{Error, Unexpected, Visitor};
    use serde::{Deserializer, Serializer};

    /// For `#[serde(with = …)]`.
    ///
    /// # Errors
    /// What the serializer says.
    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format(*duration))
    }

    /// For `#[serde(with = …)]`.
    ///
    /// # Errors
    /// The value is no duration.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Duration;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(EXPECTED)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
                parse(text).map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

#[cfg(feature = "serde")]
pub use field::{deserialize, serialize};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_go_there_and_back() {
        for (text, millis) in [("500ms", 500), ("2s", 2_000), ("1m30s", 90_000), ("2h", 7_200_000), ("1h1ms", 3_600_001), ("0s", 0)] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
            assert_eq!(format(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn decimals_and_spaces_are_read() {
        for (text, millis) in [("1.5s", 1_500), (" 1.50 s ", 1_500), ("0.25m", 15_000), ("1 h 30 m", 5_400_000), ("0ms", 0)] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        assert_eq!(parse("1.5us"), Ok(Duration::from_nanos(1_500)));
    }

    #[test]
    fn other_texts_are_refused() {
        let wrong = [
            "",
            " ",
            "2",
            "s",
            "2x",
            "-1s",
            "+1s",
            "1e3s",
            ".5s",
            "1.s",
            "1..5s",
            "1s1h",
            "1s1s",
            "1s-1ms",
            "0.5ns",
            "١s",
            "99999999999999999999s",
            "18446744073709551615h",
            "999999999999999999999999999999999999999999s",
        ];
        for text in wrong {
            assert!(parse(text).is_err(), "{text}");
        }
        let error = parse("-1s").unwrap_err();
        assert_eq!(error.to_string(), "`-1s` is not a duration such as `500ms`, `2s` or `1m30s`");
    }

    #[cfg(feature = "serde")]
    #[test]
    fn a_field_of_a_struct_is_a_text() {
        #[derive(serde::Serialize, serde::Deserialize)]
        struct Limits {
            #[serde(with = "crate::duration")]
            patience: Duration,
        }
        let limits: Limits = serde_json::from_str(r#"{"patience":"1m30s"}"#).unwrap();
        assert_eq!(limits.patience, Duration::from_secs(90));
        assert_eq!(serde_json::to_string(&limits).unwrap(), r#"{"patience":"1m30s"}"#);
        let error = serde_json::from_str::<Limits>(r#"{"patience":"-1s"}"#).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains(EXPECTED), "{error}");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(seconds in any::<u64>(), nanoseconds in 0..1_000_000_000_u32) {
            let duration = Duration::new(seconds, nanoseconds);
            prop_assert_eq!(parse(&format(duration)), Ok(duration));
        }

        #[test]
        fn no_text_panics(text in "[0-9. hmsun-]{0,12}") {
            if let Ok(duration) = parse(&text) {
                prop_assert_eq!(parse(&format(duration)), Ok(duration));
            }
        }
    }
}
