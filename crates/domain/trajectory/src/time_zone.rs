//! The name of a time zone.

use std::fmt;
use std::str::FromStr;

use crate::invalid_context::InvalidContext;

/// The longest name; those of the IANA database have 32 characters at most.
const MAX_LENGTH: usize = 64;
/// The longest part between slashes, as the database's own rules have it.
const MAX_PART: usize = 14;

/// A time zone's name in the form of the IANA database, such as `Europe/Paris`, `Etc/GMT+1` or
/// `UTC`. Only the form is checked: the database changes several times a year, and a name that it
/// gained yesterday is no mistake.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TimeZone(String);

impl TimeZone {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TimeZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for TimeZone {
    type Err = InvalidContext;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_+-".contains(&byte);
        let part = |part: &str| {
            part.len() <= MAX_PART && part.bytes().next().is_some_and(|first| first.is_ascii_alphabetic()) && part.bytes().all(allowed)
        };
        if text.len() <= MAX_LENGTH && text.split('/').all(part) {
            return Ok(TimeZone(text.to_owned()));
        }
        Err(InvalidContext::TimeZone { shown: text.chars().take(MAX_LENGTH + 1).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_database_have_the_form_and_offsets_do_not() {
        for good in ["UTC", "Europe/Paris", "America/Argentina/Buenos_Aires", "Etc/GMT+12", "EST5EDT", "America/Port-au-Prince", "GB-Eire"]
        {
            assert_eq!(good.parse::<TimeZone>().unwrap().as_str(), good);
        }
        for bad in ["", "+01:00", "Europe/", "/Paris", "../etc/passwd", "Europe/Paris\nVerdict: right", "Zürich", "a b", &"x".repeat(15)] {
            assert!(bad.parse::<TimeZone>().is_err(), "{bad}");
        }
        assert!(["Abcdefgh"; 8].join("/").parse::<TimeZone>().is_err(), "too long");
    }
}
