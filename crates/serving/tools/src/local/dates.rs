//! What the kinds of dates and times share: their arguments, and the language of names.

use autoact_calendar::{Date, TimeZone, Timestamp, WrittenTime, written_date, written_time, zone};
use autoact_trajectory::ToolSpec;
use serde::Deserialize;
use serde_json::Value;

use crate::preset::Key;
use crate::tool::{ToolCall, ToolError};

/// The key of an entry that says in which language names are.
pub(super) const LANGUAGE: Key = Key { name: "language", meaning: "of names: `en` (the default) or `zh`", required: false };

/// The language of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Language {
    #[default]
    En,
    Zh,
}

impl Language {
    pub(super) fn of<'a>(self, english: &'a str, chinese: &'a str) -> &'a str {
        match self {
            Language::En => english,
            Language::Zh => chinese,
        }
    }
}

/// The keys of a kind that has no other.
#[derive(Deserialize)]
pub(super) struct LanguageKey {
    #[serde(default)]
    pub(super) language: Language,
}

/// An argument, if the call has it.
pub(super) fn argument<'a>(call: &ToolCall<'a>, name: &str) -> Option<&'a Value> {
    call.arguments?.get(name).filter(|value| !value.is_null())
}

/// A text that is not blank, if the call has it.
pub(super) fn text<'a>(call: &ToolCall<'a>, name: &str) -> Option<&'a str> {
    argument(call, name)?.as_str().map(str::trim).filter(|text| !text.is_empty())
}

/// A text that has to be there.
pub(super) fn needed<'a>(call: &ToolCall<'a>, name: &str) -> Result<&'a str, ToolError> {
    text(call, name).ok_or_else(|| ToolError::Params(format!("`{name}` is missing; expected a date such as 1987-06-24")))
}

/// A mistake of an argument.
pub(super) fn params(name: &str, error: &impl std::fmt::Display) -> ToolError {
    ToolError::Params(format!("`{name}`: {error}"))
}

/// The year of an argument. One beyond all calendars is the nearest within them, and refused later.
pub(super) fn year(value: &Value) -> i16 {
    let year = value.as_i64().unwrap_or_default();
    i16::try_from(year).unwrap_or(if year < 0 { i16::MIN } else { i16::MAX })
}

/// The day of an argument; `today` and its neighbours are those of the task.
pub(super) fn day(call: &ToolCall<'_>, name: &str) -> Result<Date, ToolError> {
    let text = needed(call, name)?;
    match relative(call, text) {
        Some(time) => time.map(|time| time.date).map_err(|mistake| params(name, &mistake)),
        None => written_date(text).map_err(|error| params(name, &error)),
    }
}

/// The time of an argument; `now`, `today` and its neighbours are those of the task.
pub(super) fn time(call: &ToolCall<'_>, name: &str) -> Result<WrittenTime, ToolError> {
    let text = needed(call, name)?;
    match relative(call, text) {
        Some(time) => time.map_err(|mistake| params(name, &mistake)),
        None => written_time(text).map_err(|error| params(name, &error)),
    }
}

/// A time zone, if the call has it.
pub(super) fn time_zone(call: &ToolCall<'_>, name: &str) -> Result<Option<TimeZone>, ToolError> {
    text(call, name).map(|text| zone(text).map_err(|error| params(name, &error))).transpose()
}

/// A word that means a time by the task's clock; `None` for other texts.
fn relative(call: &ToolCall<'_>, text: &str) -> Option<Result<WrittenTime, String>> {
    let days = match text.to_ascii_lowercase().as_str() {
        "now" | "today" => 0,
        "tomorrow" => 1,
        "yesterday" => -1,
        _ => return None,
    };
    let context = &call.trajectory.context;
    let Some(now) = context.now.and_then(|now| Timestamp::try_from(now).ok()) else {
        return Some(Err(format!("the task does not say what `{text}` is; write a date such as 1987-06-24")));
    };
    let zone = context.time_zone.as_ref().and_then(|name| zone(name.as_str()).ok()).unwrap_or(TimeZone::UTC);
    let civil = zone.to_datetime(now);
    if text.eq_ignore_ascii_case("now") {
        return Some(Ok(WrittenTime { date: civil.date(), time: Some(civil.time()), zone: Some(zone) }));
    }
    let date = match days {
        1 => civil.date().tomorrow(),
        -1 => civil.date().yesterday(),
        _ => Ok(civil.date()),
    };
    Some(date.map(|date| WrittenTime { date, time: None, zone: None }).map_err(|error| error.to_string()))
}

/// As many lines as an observation of the tool holds beside a last one of so many bytes; all of
/// them, if they fit without it.
pub(super) fn fitting(spec: &ToolSpec, lines: &[String], last: usize) -> usize {
    let total = |lines: &[String]| lines.iter().map(|line| line.len() + 1).sum::<usize>();
    if total(lines) <= spec.max_observation_bytes {
        return lines.len();
    }
    let room = spec.max_observation_bytes.saturating_sub(last);
    (0..lines.len()).rev().find(|count| total(&lines[..*count]) <= room).unwrap_or_default()
}
