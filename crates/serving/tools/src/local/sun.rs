//! `sun`: sunrise and sunset.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use autoact_calendar::{SunDay, TimeZone, Timestamp, sun_day};
use autoact_trajectory::{Effect, ToolSpec};

use crate::local::dates::{argument, day, time_zone};
use crate::preset::Preset;
use crate::tool::{Tool, ToolCall, ToolError, ToolOutput};

pub(super) static PRESET: Preset = Preset {
    kind: "sun",
    name: "Sun",
    definition: "Sunrise, sunset and the length of the day at a place on a date from 1900 to 2100.",
    schema: Some(
        r#"{"type":"object","properties":{"latitude":{"type":"number","minimum":-90,"maximum":90,"description":"degrees, north is positive"},"longitude":{"type":"number","minimum":-180,"maximum":180,"description":"degrees, east is positive"},"date":{"type":"string","minLength":1,"maxLength":64,"description":"the day, such as 2026-06-21"},"time_zone":{"type":"string","maxLength":64,"description":"the IANA time zone of the answer, such as Europe/Paris; UTC without it"}},"required":["latitude","longitude","date"],"additionalProperties":false}"#,
    ),
    usage: None,
    examples: &[r#"{"latitude":48.86,"longitude":2.35,"date":"2026-06-21","time_zone":"Europe/Paris"}"#],
    effect: Effect::ReadOnly,
    timeout: Duration::from_secs(5),
    max_observation_bytes: 512,
    multiline: false,
    keys: &[],
    data: &[],
};

pub(super) fn make(_: toml::Table, spec: ToolSpec, _: Option<&Path>) -> Result<Arc<dyn Tool>, Vec<String>> {
    Ok(Arc::new(Sun { spec }))
}

struct Sun {
    spec: ToolSpec,
}

impl Tool for Sun {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        let degrees = |name: &str| {
            let value = argument(call, name).and_then(serde_json::Value::as_f64);
            value.ok_or_else(|| ToolError::Params(format!("`{name}` is missing; expected degrees such as 48.86")))
        };
        let (latitude, longitude, date) = (degrees("latitude")?, degrees("longitude")?, day(call, "date")?);
        let zone = time_zone(call, "time_zone")?.unwrap_or(TimeZone::UTC);
        let sun = sun_day(latitude, longitude, date, &zone).map_err(|error| ToolError::Params(error.to_string()))?;
        let name = zone.iana_name().filter(|name| *name != "UTC").map_or_else(String::new, |name| format!("{name}, "));
        let offset = offset(&zone, sun.noon);
        Ok(format!("{date}: {} ({name}{offset})", told(&sun, &zone)).into())
    }
}

fn told(sun: &SunDay, zone: &TimeZone) -> String {
    if sun.rises.is_empty() && sun.sets.is_empty() {
        return match sun.up_at_noon {
            true => "polar day, the sun does not set".to_owned(),
            false => "polar night, the sun does not rise".to_owned(),
        };
    }
    let times = |name: &str, all: &[Timestamp]| match all {
        [] => format!("no {name}"),
        all => format!("{name} {}", all.iter().map(|time| minute(*time, zone)).collect::<Vec<_>>().join(" and ")),
    };
    let minutes = (sun.daylight_seconds + 30) / 60;
    format!(
        "{}, {}, highest {}, daylight {} h {} min",
        times("sunrise", &sun.rises),
        times("sunset", &sun.sets),
        minute(sun.noon, zone),
        minutes / 60,
        minutes % 60
    )
}

/// To the nearest minute.
fn minute(time: Timestamp, zone: &TimeZone) -> String {
    let rounded = Timestamp::from_second((time.as_second() + 30).div_euclid(60) * 60).unwrap_or(time);
    zone.to_datetime(rounded).strftime("%H:%M").to_string()
}

fn offset(zone: &TimeZone, time: Timestamp) -> String {
    let seconds = zone.to_offset(time).seconds();
    let sign = if seconds < 0 { '-' } else { '+' };
    match seconds.abs() / 60 {
        0 => "UTC".to_owned(),
        minutes => format!("UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60),
    }
}
