//! `time_delta`: the time between two dates or times.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use autoact_calendar::delta;
use autoact_trajectory::{Effect, ToolSpec};

use crate::local::dates::{time, time_zone};
use crate::preset::Preset;
use crate::tool::{Tool, ToolCall, ToolError, ToolOutput};

pub(super) static PRESET: Preset = Preset {
    kind: "time_delta",
    name: "TimeDelta",
    definition: "The time between two dates or times: in years, months and days, and exactly in days, hours, minutes and seconds. \
                 Negative, if the end is before the start.",
    schema: Some(
        r#"{"type":"object","properties":{"start_time":{"type":"string","minLength":1,"maxLength":64,"description":"a date or a time, such as 1987-06-24 or 1987-06-24 10:00:00"},"end_time":{"type":"string","minLength":1,"maxLength":64,"description":"a date or a time"},"time_zone":{"type":"string","maxLength":64,"description":"for times of day alone: the IANA time zone of both, such as Europe/Paris"},"end_time_zone":{"type":"string","maxLength":64,"description":"the time zone of the end, where it is another"}},"required":["start_time","end_time"],"additionalProperties":false}"#,
    ),
    usage: None,
    examples: &[
        r#"{"start_time":"1987-06-24","end_time":"1988-02-26"}"#,
        r#"{"start_time":"2026-07-01 10:30","end_time":"2026-07-01 12:50","time_zone":"Europe/Paris","end_time_zone":"America/New_York"}"#,
    ],
    effect: Effect::ReadOnly,
    timeout: Duration::from_secs(5),
    max_observation_bytes: 512,
    multiline: false,
    keys: &[],
    data: &[],
};

pub(super) fn make(_: toml::Table, spec: ToolSpec, _: Option<&Path>) -> Result<Arc<dyn Tool>, Vec<String>> {
    Ok(Arc::new(TimeDelta { spec }))
}

struct TimeDelta {
    spec: ToolSpec,
}

impl Tool for TimeDelta {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        let (mut start, mut end) = (time(call, "start_time")?, time(call, "end_time")?);
        let both = time_zone(call, "time_zone")?;
        let of_end = time_zone(call, "end_time_zone")?;
        // what stands in the text itself counts more
        start.zone = start.zone.or_else(|| both.clone());
        end.zone = end.zone.or(of_end).or(both);
        let mut delta = delta(&start, &end).map_err(|error| ToolError::Params(error.to_string()))?;
        if delta.exact.0 < 0 {
            delta.notes.push("the end is before the start".to_owned());
        }
        let notes = if delta.notes.is_empty() { String::new() } else { format!(" ({})", delta.notes.join("; ")) };
        Ok(format!("{delta}{notes}").into())
    }
}
