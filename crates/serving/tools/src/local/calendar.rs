//! `calendar`: the days of a range in the Gregorian and the Chinese calendar.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use autoact_calendar::{Day, Weekday, days};
use autoact_trajectory::{Effect, NewArtifact, ToolSpec};
use serde_json::json;

use crate::local::dates::{LANGUAGE, Language, LanguageKey, day, fitting};
use crate::local::settings::keys;
use crate::preset::Preset;
use crate::tool::{Tool, ToolCall, ToolError, ToolOutput};

pub(super) static PRESET: Preset = Preset {
    kind: "calendar",
    name: "Calendar",
    definition: "The days of a range of at most 101 days from 1900 to 2100: weekday, date of the Chinese lunar calendar, animal of the \
                 Chinese year, western sign, solar term and festivals.",
    schema: Some(
        r#"{"type":"object","properties":{"start_date":{"type":"string","minLength":1,"maxLength":64,"description":"the first day, such as 2026-02-16"},"end_date":{"type":"string","minLength":1,"maxLength":64,"description":"the last day; the same as the first for one day"}},"required":["start_date","end_date"],"additionalProperties":false}"#,
    ),
    usage: None,
    examples: &[r#"{"start_date":"2026-02-16","end_date":"2026-02-18"}"#],
    effect: Effect::ReadOnly,
    timeout: Duration::from_secs(5),
    // 101 days in either language
    max_observation_bytes: 9216,
    multiline: true,
    keys: &[LANGUAGE],
    data: &[],
};

/// What the last line of a cut result may take.
const LAST_LINE_BYTES: usize = 80;
/// What comes with a cut result.
const ARTIFACT: &str = "calendar.json";

pub(super) fn make(run: toml::Table, spec: ToolSpec, _: Option<&Path>) -> Result<Arc<dyn Tool>, Vec<String>> {
    let LanguageKey { language } = keys(run)?;
    Ok(Arc::new(Calendar { spec, language }))
}

struct Calendar {
    spec: ToolSpec,
    language: Language,
}

impl Tool for Calendar {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        let days = days(day(call, "start_date")?, day(call, "end_date")?).map_err(|error| ToolError::Params(error.to_string()))?;
        let header = self
            .language
            .of("date | lunar (L: leap month) | year of | sign | solar term | festivals", "日期 | 农历 | 生肖 | 星座 | 节气 | 节日");
        let mut lines = vec![header.to_owned()];
        lines.extend(days.iter().map(|day| self.line(day)));
        let shown = fitting(&self.spec, &lines, LAST_LINE_BYTES);
        if shown == lines.len() {
            return Ok(lines.join("\n").into());
        }
        let left = lines.len() - shown;
        lines.truncate(shown);
        lines.push(format!("… and {left} more days: see {ARTIFACT}, or ask for fewer days"));
        let artifact = NewArtifact {
            kind: "file".to_owned(),
            media_type: "application/json".to_owned(),
            name: ARTIFACT.to_owned(),
            text: format!("{} days of the Gregorian and the Chinese calendar", days.len()),
            data: json!(days.iter().map(object).collect::<Vec<_>>()).to_string().into_bytes(),
        };
        Ok(ToolOutput { text: lines.join("\n"), artifacts: vec![artifact], ..ToolOutput::default() })
    }
}

impl Calendar {
    fn line(&self, day: &Day) -> String {
        let name = day.lunar.year_name();
        let lunar = match self.language {
            Language::En => day.lunar.to_string(),
            Language::Zh => format!("{}{}年{}", name.stem, name.branch, day.lunar.chinese()),
        };
        let term = day.term.map_or("-", |term| self.language.of(term.pinyin, term.chinese));
        let festivals: Vec<&str> = day.festivals.iter().map(|festival| self.language.of(festival.english, festival.chinese)).collect();
        let festivals = if festivals.is_empty() { "-".to_owned() } else { festivals.join(", ") };
        let (weekday, chinese) = weekday(day.weekday);
        format!(
            "{} {} | {lunar} | {} | {} | {term} | {festivals}",
            day.date,
            self.language.of(&weekday[..3], chinese),
            self.language.of(name.animal, name.animal_chinese),
            self.language.of(day.sign.english, day.sign.chinese),
        )
    }
}

fn weekday(weekday: Weekday) -> (&'static str, &'static str) {
    match weekday {
        Weekday::Monday => ("Monday", "周一"),
        Weekday::Tuesday => ("Tuesday", "周二"),
        Weekday::Wednesday => ("Wednesday", "周三"),
        Weekday::Thursday => ("Thursday", "周四"),
        Weekday::Friday => ("Friday", "周五"),
        Weekday::Saturday => ("Saturday", "周六"),
        Weekday::Sunday => ("Sunday", "周日"),
    }
}

/// A day with its names in both languages.
fn object(day: &Day) -> serde_json::Value {
    let name = day.lunar.year_name();
    json!({
        "date": day.date.to_string(),
        "weekday": weekday(day.weekday).0,
        "lunar": {
            "year": day.lunar.year,
            "month": day.lunar.month,
            "leap": day.lunar.leap,
            "day": day.lunar.day,
            "zh": day.lunar.chinese(),
            "stem_branch": format!("{}{}", name.stem, name.branch),
            "animal": name.animal,
            "animal_zh": name.animal_chinese,
        },
        "sign": { "en": day.sign.english, "zh": day.sign.chinese },
        "solar_term": day.term.map(|term| json!({ "pinyin": term.pinyin, "en": term.english, "zh": term.chinese })),
        "festivals": day.festivals.iter().map(|festival| json!({ "en": festival.english, "zh": festival.chinese })).collect::<Vec<_>>(),
    })
}
