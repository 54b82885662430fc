//! Numbers with their units.

/// The parts that are not 0, such as `8 months 2 days`; the last unit's 0, if all are.
pub(crate) fn words(parts: &[(i64, &str)]) -> String {
    let part = |(number, unit): &(i64, &str)| format!("{number} {unit}{}", if number.abs() == 1 { "" } else { "s" });
    let said: Vec<String> = parts.iter().filter(|(number, _)| *number != 0).map(part).collect();
    match (said.is_empty(), parts.last()) {
        (true, Some(last)) => part(last),
        _ => said.join(" "),
    }
}

/// Microseconds as hours, minutes and seconds, the seconds with their fraction.
pub(crate) fn clock(microseconds: i64) -> Vec<String> {
    let seconds = microseconds / 1_000_000;
    let fraction = (microseconds % 1_000_000).abs();
    let mut said: Vec<String> = [(seconds / 3600, "hour"), (seconds / 60 % 60, "minute")]
        .iter()
        .filter(|(number, _)| *number != 0)
        .map(|part| words(&[*part]))
        .collect();
    let left = seconds % 60;
    if fraction != 0 {
        let sign = if microseconds < 0 { "-" } else { "" };
        let digits = format!("{fraction:06}");
        said.push(format!("{sign}{}.{} seconds", left.abs(), digits.trim_end_matches('0')));
    } else if left != 0 {
        said.push(words(&[(left, "second")]));
    }
    said
}
