//! `solar_terms`: when the 24 solar terms of a year are.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use autoact_calendar::{Timestamp, beijing, solar_terms};
use autoact_trajectory::{Effect, ToolSpec};

use crate::local::dates::{LANGUAGE, Language, LanguageKey, argument, year};
use crate::local::settings::keys;
use crate::preset::Preset;
use crate::tool::{Tool, ToolCall, ToolError, ToolOutput};

pub(super) static PRESET: Preset = Preset {
    kind: "solar_terms",
    name: "SolarTerms",
    definition: "When the 24 solar terms of a year from 1900 to 2100 are, equinoxes and solstices among them, to the minute of Beijing time.",
    schema: Some(
        r#"{"type":"object","properties":{"year":{"type":"integer","minimum":1900,"maximum":2100,"description":"the year, such as 2026"}},"required":["year"],"additionalProperties":false}"#,
    ),
    usage: None,
    examples: &[r#"{"year":2026}"#],
    effect: Effect::ReadOnly,
    timeout: Duration::from_secs(5),
    max_observation_bytes: 2048,
    multiline: true,
    keys: &[LANGUAGE],
    data: &[],
};

pub(super) fn make(run: toml::Table, spec: ToolSpec, _: Option<&Path>) -> Result<Arc<dyn Tool>, Vec<String>> {
    let LanguageKey { language } = keys(run)?;
    Ok(Arc::new(SolarTerms { spec, language }))
}

struct SolarTerms {
    spec: ToolSpec,
    language: Language,
}

impl Tool for SolarTerms {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        let year =
            argument(call, "year").map(year).ok_or_else(|| ToolError::Params("`year` is missing; expected one such as 2026".to_owned()))?;
        let terms = solar_terms(year).map_err(|error| ToolError::Params(error.to_string()))?;
        let mut lines = vec![match self.language {
            Language::En => format!("Solar terms of {year}, Beijing time (UTC+8)"),
            Language::Zh => format!("{year}年二十四节气（北京时间）"),
        }];
        lines.extend(terms.iter().map(|(term, time)| {
            let time = minute(*time);
            match self.language {
                Language::En => format!("{time} {} ({})", term.pinyin, term.english),
                Language::Zh => format!("{time} {}", term.chinese),
            }
        }));
        Ok(lines.join("\n").into())
    }
}

/// To the nearest minute.
fn minute(time: Timestamp) -> String {
    let rounded = Timestamp::from_second((time.as_second() + 30).div_euclid(60) * 60).unwrap_or(time);
    beijing(rounded).strftime("%Y-%m-%d %H:%M").to_string()
}
