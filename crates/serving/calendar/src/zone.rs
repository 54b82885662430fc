//! Time zones as people write them.

use jiff::tz::{Offset, TimeZone};

/// No offset from UTC is larger.
const MOST_OFFSET_SECONDS: i32 = 14 * 3600;
/// Names that are suggested.
const MOST_SUGGESTIONS: usize = 3;

/// A time zone that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a time zone; expected {}", shown(.text), expected(.suggestions))]
pub struct UnknownZone {
    text: String,
    suggestions: Vec<String>,
}

fn shown(text: &str) -> String {
    text.chars().take(40).flat_map(char::escape_debug).collect()
}

fn expected(suggestions: &[String]) -> String {
    if suggestions.is_empty() {
        "a name of the IANA database such as Europe/Paris, or an offset such as +08:00".to_owned()
    } else {
        suggestions.join(" or ")
    }
}

/// A time zone by its IANA name (`Europe/Paris`), as an offset (`+08:00`, `UTC+8`) or as `Z`.
///
/// # Errors
/// There is none of this name. Zones are suggested that end so: `Europe/Paris` for `Paris`.
pub fn zone(text: &str) -> Result<TimeZone, UnknownZone> {
    let text = text.trim();
    if let Some(offset) = offset(text) {
        return Ok(TimeZone::fixed(offset));
    }
    // the database has a zone for what is not known
    let known = |name: &str| TimeZone::get(name).ok().filter(|zone| !zone.is_unknown());
    known(text)
        .or_else(|| known(&text.replace(' ', "_")))
        .ok_or_else(|| UnknownZone { text: text.to_owned(), suggestions: suggestions(text) })
}

/// `Z`, `UTC`, `+02`, `+0200`, `-02:30`, `UTC+8`.
fn offset(text: &str) -> Option<Offset> {
    let upper = text.to_ascii_uppercase();
    let rest = ["UTC", "GMT", "Z"].iter().find_map(|prefix| upper.strip_prefix(prefix)).unwrap_or(&upper);
    if rest.is_empty() {
        return (!text.is_empty()).then_some(Offset::UTC);
    }
    let (sign, digits) = match rest.as_bytes().first()? {
        b'+' => (1, &rest[1..]),
        b'-' => (-1, &rest[1..]),
        _ => return None,
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() == 4 && digits.is_ascii() => digits.split_at(2),
        None => (digits, "00"),
    };
    let number = |text: &str, most: i32| {
        let digits = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<i32>().ok()).flatten().filter(|number| *number <= most)
    };
    let seconds = number(hours, 14)? * 3600 + number(minutes, 59)? * 60;
    if minutes.len() != 2 || seconds > MOST_OFFSET_SECONDS {
        return None;
    }
    Offset::from_seconds(sign * seconds).ok()
}

fn suggestions(text: &str) -> Vec<String> {
    let wanted = text.replace(' ', "_");
    let ends = |name: &str| name.rsplit('/').next().is_some_and(|last| last.eq_ignore_ascii_case(&wanted));
    let all = jiff::tz::db().available().map(|name| name.as_str().to_owned());
    all.filter(|name| name.contains('/') && ends(name)).take(MOST_SUGGESTIONS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_offsets_are_read() {
        assert_eq!(zone("europe/paris").unwrap().iana_name(), Some("Europe/Paris"));
        assert_eq!(zone("America/New York").unwrap().iana_name(), Some("America/New_York"));
        for (text, seconds) in
            [("Z", 0), ("utc", 0), ("+02", 7200), ("+0530", 19_800), ("-03:30", -12_600), ("UTC+8", 28_800), ("GMT-5", -18_000)]
        {
            let offset = zone(text).unwrap().to_fixed_offset().unwrap();
            assert_eq!(offset.seconds(), seconds, "{text}");
        }
    }

    #[test]
    fn others_are_refused_with_a_suggestion() {
        let mistake = |text: &str| zone(text).unwrap_err().to_string();
        assert_eq!(mistake("paris"), "`paris` is not a time zone; expected Europe/Paris");
        for text in ["", "Atlantis", "+15:00", "+2:5", "+02:60", "UTC+", "Z8", "+é1", "++2", "Etc/Unknown"] {
            assert!(mistake(text).contains("such as Europe/Paris"), "{text}");
        }
    }
}
