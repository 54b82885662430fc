//! `holidays`: legal holidays, by a table.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use autoact_calendar::{Holiday, HolidayTable, china};
use autoact_trajectory::{Effect, ToolSpec};
use serde::Deserialize;

use crate::local::dates::{LANGUAGE, Language, argument, day, text, year};
use crate::local::settings::keys;
use crate::preset::{Key, Preset};
use crate::tool::{Tool, ToolCall, ToolError, ToolOutput};

pub(super) static PRESET: Preset = Preset {
    kind: "holidays",
    name: "Holidays",
    definition: "The legal holidays of mainland China in a year or in a range of days, and the weekends that are worked in return.",
    schema: Some(
        r#"{"type":"object","properties":{"year":{"type":"integer","minimum":1,"maximum":9999,"description":"the year, such as 2026; leave it out for a range of days"},"start_date":{"type":"string","maxLength":64,"description":"the first day of a range, such as 2026-09-01"},"end_date":{"type":"string","maxLength":64,"description":"the last day of the range"}},"additionalProperties":false}"#,
    ),
    usage: None,
    examples: &[r#"{"year":2026}"#, r#"{"start_date":"2026-09-01","end_date":"2026-10-31"}"#],
    effect: Effect::ReadOnly,
    timeout: Duration::from_secs(5),
    max_observation_bytes: 2048,
    multiline: true,
    keys: &[Key { name: "table", meaning: "a file with other holidays instead of mainland China's", required: false }, LANGUAGE],
    data: &["table"],
};

#[derive(Deserialize)]
struct Keys {
    table: Option<PathBuf>,
    #[serde(default)]
    language: Language,
}

pub(super) fn make(run: toml::Table, mut spec: ToolSpec, base: Option<&Path>) -> Result<Arc<dyn Tool>, Vec<String>> {
    let Keys { table, language } = keys(run)?;
    let table = match table {
        None => china().map_err(|error| vec![error.to_string()])?,
        Some(path) => {
            let path = base.map_or_else(|| path.clone(), |base| base.join(&path));
            let wrong = |error: &dyn std::fmt::Display| vec![format!("the table `{}`: {error}", path.display())];
            let text = std::fs::read_to_string(&path).map_err(|error| wrong(&error))?;
            HolidayTable::parse(&text).map_err(|error| wrong(&error))?
        }
    };
    // the preset names mainland China, and so may not what an entry says itself
    if spec.definition == PRESET.definition {
        spec.definition = PRESET.definition.replace("mainland China", &table.region);
    }
    Ok(Arc::new(Holidays { spec, table, language }))
}

struct Holidays {
    spec: ToolSpec,
    table: HolidayTable,
    language: Language,
}

impl Tool for Holidays {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        let range = [text(call, "start_date"), text(call, "end_date")];
        match (argument(call, "year"), range) {
            (Some(year), [None, None]) => Ok(self.year(self::year(year)).into()),
            (None, [Some(_), Some(_)]) => self.range(call).map(ToolOutput::from),
            (Some(_), _) => Err(ToolError::Params("expected a `year`, or a `start_date` and an `end_date`, not both".to_owned())),
            (None, _) => Err(ToolError::Params("expected a `year`, or both `start_date` and `end_date`".to_owned())),
        }
    }
}

impl Holidays {
    fn year(&self, year: i16) -> String {
        let Some(entry) = self.table.year(year) else { return self.missing(&[year]) };
        let mut lines = vec![format!("Legal holidays of {} in {year}:", self.table.region)];
        lines.extend(entry.holidays.iter().map(|holiday| self.line(holiday)));
        if entry.holidays.is_empty() {
            lines.push("none".to_owned());
        }
        lines.push(format!("Source: {}", entry.source));
        lines.join("\n")
    }

    fn range(&self, call: &ToolCall<'_>) -> Result<String, ToolError> {
        let (start, end) = (day(call, "start_date")?, day(call, "end_date")?);
        if end < start {
            return Err(ToolError::Params(format!("the end {end} is before the start {start}; expected the earlier day first")));
        }
        let (holidays, missing) = self.table.between(start, end);
        let known = usize::try_from(end.year() - start.year()).is_ok_and(|years| missing.len() <= years);
        let mut lines = Vec::new();
        if known || !holidays.is_empty() {
            lines.push(format!("Legal holidays of {} from {start} to {end}:", self.table.region));
            lines.extend(holidays.iter().map(|holiday| self.line(holiday)));
            if holidays.is_empty() {
                lines.push("none".to_owned());
            }
        }
        if !missing.is_empty() {
            lines.push(self.missing(&missing));
        }
        Ok(lines.join("\n"))
    }

    fn line(&self, holiday: &Holiday) -> String {
        let days = match holiday.days() {
            1 => holiday.from.to_string(),
            days => format!("{} to {} ({days} days)", holiday.from, holiday.to()),
        };
        let name = self.language.of(&holiday.name, holiday.local.as_deref().unwrap_or(&holiday.name));
        let work: Vec<String> = holiday.work.iter().map(ToString::to_string).collect();
        let work = if work.is_empty() { String::new() } else { format!("; worked in return: {}", work.join(", ")) };
        format!("{days}: {name}{work}")
    }

    fn missing(&self, years: &[i16]) -> String {
        let years = match years {
            [] => String::new(),
            [year] => year.to_string(),
            [first, .., last] => format!("years from {first} to {last}"),
        };
        format!(
            "The table of {} does not have {years}; it has {}. Its holidays are not known here.",
            self.table.region,
            self.table.covered()
        )
    }
}
