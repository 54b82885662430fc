//! Durations as people write them: `500ms`, `2s`, `1m30s`, `2h`. For serde fields: `#[serde(with = "autoact_config::duration")]`.

use std::time::Duration;

use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};

const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
const EXPECTED: &str = "a duration such as `500ms`, `2s` or `1m30s`";

/// Reads a duration; `None` when the text is not one.
pub fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    let mut millis: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let (_, factor) = UNITS.iter().find(|(unit, _)| *unit == &rest[..letters])?;
        rest = &rest[letters..];
        millis = millis.checked_add(number.checked_mul(*factor)?)?;
    }
    Some(Duration::from_millis(millis))
}

/// Writes a duration so that [`parse`] reads it back, to the millisecond.
pub fn format(duration: Duration) -> String {
    let mut millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if millis == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (unit, factor) in UNITS {
        if millis >= factor {
            text.push_str(&format!("{}{unit}", millis / factor));
            millis %= factor;
        }
    }
    text
}

/// For serde.
pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format(*duration))
}

/// For serde.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    struct Text;
    impl Visitor<'_> for Text {
        type Value = Duration;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(EXPECTED)
        }
        fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
            parse(text).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
        }
    }
    deserializer.deserialize_str(Text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_go_there_and_back() {
        for (text, millis) in [("500ms", 500), ("2s", 2_000), ("1m30s", 90_000), ("2h", 7_200_000), ("0s", 0)] {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
            assert_eq!(format(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn other_texts_are_none() {
        for text in ["", "2", "s", "2 s", "2x", "-1s", "99999999999999999999s", "18446744073709551615h"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
