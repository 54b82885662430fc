//! Durations as people write them: `500ms`, `2s`, `1m`.

use std::time::Duration;

/// The duration a text says.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let seconds_per_unit = match unit.trim() {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        _ => return Err(wrong(text)),
    };
    let number: f64 = number.parse().map_err(|_| wrong(text))?;
    Duration::try_from_secs_f64(number * seconds_per_unit).map_err(|_| wrong(text))
}

fn wrong(text: &str) -> String {
    format!("`{text}` is not a duration; expected something like `500ms`, `2s` or `1m`")
}

/// A duration for people.
pub(crate) fn told(duration: Duration) -> String {
    if duration < Duration::from_secs(1) { format!("{} ms", duration.as_millis()) } else { format!("{} s", duration.as_secs_f64()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_parse() {
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("1.5 s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse("2m"), Ok(Duration::from_secs(120)));
        for wrong in ["", "2", "s", "-1s", "1h", "1e3s", "..s", "99999999999999999999999m"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_print() {
        assert_eq!(told(Duration::from_millis(20)), "20 ms");
        assert_eq!(told(Duration::from_millis(2500)), "2.5 s");
    }
}
