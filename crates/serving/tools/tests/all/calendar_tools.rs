//! The kinds of dates and times: what they say, what they refuse, and their bounds.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use autoact_tools::{Corpus, Observation, Page, ToolLibrary, local_presets};
use autoact_trajectory::{Action, Trajectory};
use proptest::prelude::*;

const FINISH: &str = "[[tool]]\nname = \"Finish\"\ndefinition = \"Ends.\"\nusage = \"Finish[answer]\"\nrun = { kind = \"finish\" }\n";
const KINDS: [&str; 5] = ["time_delta", "calendar", "solar_terms", "holidays", "sun"];

fn corpus() -> Arc<Corpus> {
    Arc::new(Corpus::from_pages(vec![Page { title: "Loire".into(), text: "The Loire is a river.".into() }]).unwrap())
}

/// A library with the tool `Tool`.
fn library(run: &str, more: &str) -> Result<ToolLibrary, Vec<String>> {
    let entry = format!("[[tool]]\nname = \"Tool\"\n{more}\nrun = {run}\n{FINISH}");
    ToolLibrary::parse(&entry, "test", corpus()).map_err(|error| error.mistakes().to_vec())
}

fn kind(kind: &str) -> ToolLibrary {
    library(&format!("{{ kind = \"{kind}\" }}"), "").unwrap()
}

fn at(library: &ToolLibrary, params: &str, trajectory: &Trajectory) -> Observation {
    library.execute(&Action { tool: "Tool".into(), params: params.into() }, trajectory)
}

fn said(library: &ToolLibrary, params: &str) -> String {
    let seen = at(library, params, &Trajectory::default());
    assert!(!seen.is_error && !seen.truncated, "{params}: {}", seen.text);
    seen.text
}

fn refused(library: &ToolLibrary, params: &str) -> String {
    let seen = at(library, params, &Trajectory::default());
    assert!(seen.is_error, "{params}: {}", seen.text);
    seen.text
}

#[test]
fn an_entry_needs_a_name_alone_and_its_examples_run() {
    for name in KINDS {
        let library = kind(name);
        let spec = library.spec("Tool").unwrap().clone();
        for example in &spec.examples {
            assert!(!said(&library, example).is_empty());
        }
        let preset = local_presets().find(|preset| preset.kind == name).unwrap();
        assert_eq!((spec.definition.as_str(), spec.multiline), (preset.definition, preset.multiline));
    }
}

#[test]
fn differences() {
    let tool = kind("time_delta");
    assert_eq!(said(&tool, r#"{"start_time":"1987-06-24","end_time":"1988-02-26"}"#), "8 months 2 days = 247 days");
    assert_eq!(
        said(&tool, r#"{"start_time":"26 Feb 1988","end_time":"June 24, 1987"}"#),
        "-8 months -2 days = -247 days (the end is before the start)"
    );
    assert_eq!(
        said(
            &tool,
            r#"{"start_time":"2026-07-01 10:30","end_time":"2026-07-01 12:50","time_zone":"Europe/Paris","end_time_zone":"America/New_York"}"#
        ),
        "8 hours 20 minutes"
    );
    // what stands in the text counts more than the argument
    assert_eq!(said(&tool, r#"{"start_time":"2026-07-01T10:00:00Z","end_time":"2026-07-01 12:00","time_zone":"Europe/Paris"}"#), "0 days");
    for (params, part) in [
        (r#"{"start_time":"06/24/1987","end_time":"1988-02-26"}"#, "`start_time`: `06/24/1987` does not say which number is the day"),
        (r#"{"start_time":"1987-06-24","end_time":"1988-02-30"}"#, "that month has 29 days"),
        (r#"{"start_time":" ","end_time":"1988-02-26"}"#, "`start_time` is missing"),
        (r#"{"start_time":"1987-06-24","end_time":"today"}"#, "the task does not say what `today` is"),
        (r#"{"start_time":"1987-06-24 10:00","end_time":"1987-06-24 11:00","time_zone":"Paris"}"#, "expected Europe/Paris"),
        (r#"{"start_time":"1987-06-24 10:00","end_time":"1987-06-24 11:00","end_time_zone":"UTC"}"#, "name the time zone of both"),
        (r#"{"start_time":"1987-06-24"}"#, "end_time"),
        (r#"{"start_time":"1987-06-24","end_time":"1988-02-26","unit":"days"}"#, "unit"),
    ] {
        let text = refused(&tool, params);
        assert!(text.contains(part), "{params}: {text}");
    }
}

#[test]
fn today_is_the_tasks_day() {
    let tool = kind("time_delta");
    // 2026-11-22T22:30:00Z: in Shanghai it is tomorrow
    let mut trajectory = Trajectory::default();
    trajectory.context.now = Some(UNIX_EPOCH + Duration::from_secs(1_795_386_600));
    let until = r#"{"start_time":"today","end_time":"2026-12-25"}"#;
    assert_eq!(at(&tool, until, &trajectory).text, "1 month 3 days = 33 days");
    trajectory.context.time_zone = Some("Asia/Shanghai".parse().unwrap());
    assert_eq!(at(&tool, until, &trajectory).text, "1 month 2 days = 32 days");
    assert_eq!(at(&tool, r#"{"start_time":"yesterday","end_time":"Tomorrow"}"#, &trajectory).text, "2 days");
    assert_eq!(at(&tool, r#"{"start_time":"now","end_time":"2026-11-23T00:00:00Z"}"#, &trajectory).text, "1 hour 30 minutes");
}

#[test]
fn days() {
    let tool = kind("calendar");
    assert_eq!(
        said(&tool, r#"{"start_date":"2026-02-16","end_date":"2026-02-18"}"#),
        "date | lunar (L: leap month) | year of | sign | solar term | festivals\n\
         2026-02-16 Mon | 2025-12-29 | Snake | Aquarius | - | Lunar New Year's Eve\n\
         2026-02-17 Tue | 2026-01-01 | Horse | Aquarius | - | Spring Festival\n\
         2026-02-18 Wed | 2026-01-02 | Horse | Aquarius | Yushui | -"
    );
    let chinese = library(r#"{ kind = "calendar", language = "zh" }"#, "").unwrap();
    assert_eq!(
        said(&chinese, r#"{"start_date":"2025-07-25","end_date":"2025-07-25"}"#),
        "日期 | 农历 | 生肖 | 星座 | 节气 | 节日\n2025-07-25 周五 | 乙巳年闰六月初一 | 蛇 | 狮子座 | - | -"
    );
    for (params, part) in [
        (r#"{"start_date":"2026-01-02","end_date":"2026-01-01"}"#, "is before the start"),
        (r#"{"start_date":"2026-01-01","end_date":"2026-04-12"}"#, "102 days are too many; expected at most 101"),
        (r#"{"start_date":"2101-01-01","end_date":"2101-01-01"}"#, "expected 1900 to 2100"),
        (r#"{"start_date":"2026-01-01 10:00","end_date":"2026-01-01"}"#, "more than a date"),
    ] {
        let text = refused(&tool, params);
        assert!(text.contains(part), "{params}: {text}");
    }
}

#[test]
fn the_longest_calendar_fits_and_a_smaller_bound_leaves_a_file() {
    let longest = r#"{"start_date":"2025-12-20","end_date":"2026-03-30"}"#;
    for run in [r#"{ kind = "calendar" }"#, r#"{ kind = "calendar", language = "zh" }"#] {
        let seen = at(&library(run, "").unwrap(), longest, &Trajectory::default());
        assert!(!seen.truncated && seen.artifacts.is_empty() && seen.text.lines().count() == 102, "{}", seen.text.len());
        let cut = at(&library(run, "max_observation_bytes = 600").unwrap(), longest, &Trajectory::default());
        assert!(!cut.truncated && cut.text.len() <= 600, "{}", cut.text);
        let last = cut.text.lines().last().unwrap();
        assert!(last.ends_with("more days: see calendar.json, or ask for fewer days"), "{last}");
        autoact_trajectory::check_artifacts(&cut.artifacts).unwrap();
        let all: serde_json::Value = serde_json::from_slice(&cut.artifacts[0].data).unwrap();
        assert_eq!(all.as_array().unwrap().len(), 101);
        assert_eq!(all[59]["lunar"]["stem_branch"], "丙午");
    }
}

#[test]
fn terms() {
    let text = said(&kind("solar_terms"), r#"{"year":2026}"#);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 25);
    assert_eq!(
        lines[..3],
        ["Solar terms of 2026, Beijing time (UTC+8)", "2026-01-05 16:23 Xiaohan (Minor Cold)", "2026-01-20 09:45 Dahan (Major Cold)"]
    );
    let chinese = library(r#"{ kind = "solar_terms", language = "zh" }"#, "").unwrap();
    assert!(said(&chinese, r#"{"year":2100}"#).starts_with("2100年二十四节气（北京时间）\n2100-01-05"));
    assert!(refused(&kind("solar_terms"), r#"{"year":2101}"#).contains("2100"));
    assert_eq!(
        library(r#"{ kind = "solar_terms", language = "fr", zone = "UTC" }"#, "").unwrap_err(),
        ["tool 1 (`Tool`): run: the key `zone` is unknown for the kind `solar_terms`"]
    );
    assert!(library(r#"{ kind = "solar_terms", language = "fr" }"#, "").unwrap_err()[0].contains("expected `en` or `zh`"));
}

#[test]
fn holidays_of_china() {
    let tool = kind("holidays");
    let text = said(&tool, r#"{"year":2026}"#);
    assert!(text.starts_with(
        "Legal holidays of mainland China in 2026:\n2026-01-01 to 2026-01-03 (3 days): New Year's Day; worked in return: 2026-01-04\n"
    ));
    assert!(text.lines().last().unwrap().starts_with("Source: https://www.gov.cn/"), "{text}");
    for year in 2004..=2026 {
        assert!(said(&tool, &format!(r#"{{"year":{year}}}"#)).contains("Spring Festival"));
    }
    assert_eq!(
        said(&tool, r#"{"start_date":"2026-06-01","end_date":"2026-06-30"}"#),
        "Legal holidays of mainland China from 2026-06-01 to 2026-06-30:\n2026-06-19 to 2026-06-21 (3 days): Dragon Boat Festival"
    );
    let unknown = "The table of mainland China does not have 2050; it has 2004 to 2026. Its holidays are not known here.";
    assert_eq!(said(&tool, r#"{"year":2050}"#), unknown);
    assert_eq!(said(&tool, r#"{"start_date":"2050-06-01","end_date":"2050-06-30"}"#), unknown);
    let partly = said(&tool, r#"{"start_date":"2026-10-01","end_date":"2028-01-31"}"#);
    assert!(
        partly.contains("National Day")
            && partly.ends_with("does not have years from 2027 to 2028; it has 2004 to 2026. Its holidays are not known here.")
    );
    assert!(said(&tool, r#"{"start_date":"2026-11-01","end_date":"2026-11-30"}"#).ends_with(":\nnone"));
    for (params, part) in [
        ("{}", "expected a `year`, or both"),
        (r#"{"start_date":"2026-01-01"}"#, "expected a `year`, or both"),
        (r#"{"year":2026,"start_date":"2026-01-01","end_date":"2026-01-02"}"#, "not both"),
        (r#"{"start_date":"2026-01-02","end_date":"2026-01-01"}"#, "earlier day first"),
        (r#"{"year":"2026"}"#, "`/year`"),
        (r#"{"year":99999999999}"#, "9999"),
    ] {
        let text = refused(&tool, params);
        assert!(text.contains(part), "{params}: {text}");
    }
}

#[test]
fn holidays_of_a_users_table() {
    let directory = tempfile::tempdir().unwrap();
    let library = |table: &str| {
        std::fs::write(directory.path().join("france.toml"), table).unwrap();
        let entry = format!("[[tool]]\nname = \"Tool\"\nrun = {{ kind = \"holidays\", table = \"france.toml\" }}\n{FINISH}");
        let path = directory.path().join("tools.toml");
        std::fs::write(&path, entry).unwrap();
        ToolLibrary::load(path, corpus()).map_err(|error| error.mistakes().to_vec())
    };
    let france = "region = \"France\"\n[[year]]\nyear = 2026\nsource = \"Code du travail, L3133-1\"\nholidays = [{ name = \"Bastille Day\", local = \"Fête nationale\", from = 2026-07-14 }]\n";
    let tool = library(france).unwrap();
    assert!(tool.spec("Tool").unwrap().definition.starts_with("The legal holidays of France in a year"));
    assert_eq!(
        said(&tool, r#"{"year":2026}"#),
        "Legal holidays of France in 2026:\n2026-07-14: Bastille Day\nSource: Code du travail, L3133-1"
    );
    assert!(library("region = \"France\"\nyears = 3").unwrap_err()[0].contains("france.toml`: not a table of holidays"));
    std::fs::remove_file(directory.path().join("france.toml")).unwrap();
    assert!(ToolLibrary::load(directory.path().join("tools.toml"), corpus()).unwrap_err().to_string().contains("france.toml"));
}

#[test]
fn the_sun() {
    let tool = kind("sun");
    assert_eq!(
        said(&tool, r#"{"latitude":48.86,"longitude":2.35,"date":"2026-06-21","time_zone":"Europe/Paris"}"#),
        "2026-06-21: sunrise 05:47, sunset 21:58, highest 13:52, daylight 16 h 11 min (Europe/Paris, UTC+02:00)"
    );
    assert_eq!(
        said(&tool, r#"{"latitude":78.22,"longitude":15.65,"date":"2026-06-21"}"#),
        "2026-06-21: polar day, the sun does not set (UTC)"
    );
    assert_eq!(
        said(&tool, r#"{"latitude":78.22,"longitude":15.65,"date":"2026-12-21","time_zone":"Arctic/Longyearbyen"}"#),
        "2026-12-21: polar night, the sun does not rise (Arctic/Longyearbyen, UTC+01:00)"
    );
    for (params, part) in [
        (r#"{"latitude":91,"longitude":0,"date":"2026-06-21"}"#, "90"),
        (r#"{"latitude":0,"longitude":0,"date":"1899-12-31"}"#, "expected 1900 to 2100"),
        (r#"{"latitude":0,"longitude":0,"date":"2026-06-21","time_zone":"Mars/Base"}"#, "`time_zone`: `Mars/Base` is not a time zone"),
        (r#"{"latitude":0,"date":"2026-06-21"}"#, "longitude"),
    ] {
        let text = refused(&tool, params);
        assert!(text.contains(part), "{params}: {text}");
    }
}

fn argument() -> impl Strategy<Value = serde_json::Value> {
    let text =
        prop_oneof!["\\PC{0,64}", "[0-9]{1,4}-[0-9]{1,2}-[0-9]{1,2}", "(19|20)[0-9]{2}-0[1-9]-[012][0-9]", "(today|now|UTC|Asia/Tokyo)"];
    prop_oneof![
        text.prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        (-200.0..3000.0_f64).prop_map(serde_json::Value::from)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_arguments_panic_or_break_the_bounds(arguments in proptest::collection::vec(argument(), 4), year in 1890_i64..2110) {
        thread_local! { static TOOLS: Vec<ToolLibrary> = KINDS.map(kind).into(); }
        TOOLS.with(|tools| {
            for tool in tools {
                let spec = tool.spec("Tool").unwrap();
                let names: Vec<String> = spec.schema.as_ref().unwrap().properties().map(|(name, _)| name.to_owned()).collect();
                for first in [arguments[3].clone(), year.into()] {
                    let values = std::iter::once(&first).chain(&arguments);
                    let object: serde_json::Map<_, _> = names.iter().cloned().zip(values.cloned()).collect();
                    let seen = at(tool, &serde_json::Value::from(object).to_string(), &Trajectory::default());
                    assert!(!seen.text.is_empty() && seen.text.len() <= spec.max_observation_bytes);
                }
            }
        });
    }
}
