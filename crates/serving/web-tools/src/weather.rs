//! `weather`: the weather of a place, by services of the form of Open-Meteo.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use autoact_base::lines::one_line;
use autoact_http_tools::HttpClient;
use autoact_tools::text::fold;
use autoact_tools::{Key, Preset, Tool, ToolCall, ToolError, ToolOutput};
use autoact_trajectory::{Effect, NewArtifact, ToolSpec};
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use crate::date::Day;
use crate::options::{ALLOW_PRIVATE, CONCURRENCY, HOSTS, MAX_RESPONSE_BYTES, REDIRECTS, Raw};
use crate::weather_text::{current_line, daily};
use crate::web::Web;
use crate::{ask, browse_wiki, options};

pub(crate) static PRESET: Preset = Preset {
    kind: "weather",
    name: "Weather",
    definition: "The weather of a place: now, on days of the past, and up to 15 days ahead.",
    schema: Some(
        r#"{
  "type": "object",
  "properties": {
    "location": { "type": "string", "minLength": 2, "maxLength": 120, "description": "a place in English, then region and country after commas" },
    "start_date": { "type": "string", "format": "date", "maxLength": 10, "description": "the first day, such as 2024-05-01" },
    "end_date": { "type": "string", "format": "date", "maxLength": 10, "description": "the last day; without it the first one alone" },
    "is_current": { "enum": ["yes", "no"], "description": "whether the weather of this moment is wanted" }
  },
  "required": ["location"],
  "additionalProperties": false
}"#,
    ),
    usage: None,
    examples: &[
        r#"{"location": "Paris, France", "is_current": "yes"}"#,
        r#"{"location": "Oslo", "start_date": "2024-05-01", "end_date": "2024-05-03"}"#,
    ],
    effect: Effect::ReadOnly,
    timeout: Duration::from_secs(20),
    max_observation_bytes: 4096,
    multiline: true,
    keys: &[
        Key { name: "geocoding_url", meaning: "where places are looked up; the public service of Open-Meteo", required: false },
        Key { name: "forecast_url", meaning: "now, the last 90 days and the next 15; the public service of Open-Meteo", required: false },
        Key { name: "archive_url", meaning: "earlier days; the public service of Open-Meteo", required: false },
        HOSTS,
        ALLOW_PRIVATE,
        MAX_RESPONSE_BYTES,
        REDIRECTS,
        CONCURRENCY,
    ],
    data: &[],
};

/// The public services, as their documentation names them.
const GEOCODING: &str = "https://geocoding-api.open-meteo.com/v1/search";
const FORECAST: &str = "https://api.open-meteo.com/v1/forecast";
const ARCHIVE: &str = "https://archive-api.open-meteo.com/v1/archive";
/// How far the forecast reaches, how far back it is kept, and the first day of the archive.
const AHEAD: i64 = 15;
const BACK: i64 = 90;
const FIRST: &str = "1940-01-01";
/// Days of one call.
const MOST_DAYS: i64 = 31;
const CURRENT: &str = "temperature_2m,apparent_temperature,relative_humidity_2m,precipitation,weather_code,wind_speed_10m,visibility";
const DAILY: &str = "weather_code,temperature_2m_max,temperature_2m_min,precipitation_sum,wind_speed_10m_max,sunrise,sunset";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    geocoding_url: Option<String>,
    forecast_url: Option<String>,
    archive_url: Option<String>,
}

pub(crate) fn make(mut run: toml::Table, spec: ToolSpec, _: Option<&Path>, client: &HttpClient) -> Result<Arc<dyn Tool>, Vec<String>> {
    let mut mistakes = Vec::new();
    let raw = Raw::take(&mut run, &mut mistakes);
    let own: Option<Own> = options::read(run, &mut mistakes);
    let Some(own) = own else { return Err(mistakes) };
    let mut url = |key: &str, written: Option<String>, usual: &str| options::url(key, written.as_deref().unwrap_or(usual), &mut mistakes);
    let geocoding = url("geocoding_url", own.geocoding_url, GEOCODING);
    let forecast = url("forecast_url", own.forecast_url, FORECAST);
    let archive = url("archive_url", own.archive_url, ARCHIVE);
    let (Some(geocoding), Some(forecast), Some(archive)) = (geocoding, forecast, archive) else { return Err(mistakes) };
    let web = raw.web(&[&geocoding, &forecast, &archive], browse_wiki::ACCEPT, client, &mut mistakes);
    match web {
        Some(web) if mistakes.is_empty() => {
            Ok(Arc::new(Weather { spec, client: client.clone(), service: Arc::new(Service { web, geocoding, forecast, archive }) }))
        }
        _ => Err(mistakes),
    }
}

struct Weather {
    spec: ToolSpec,
    client: HttpClient,
    service: Arc<Service>,
}

struct Service {
    web: Web,
    geocoding: Url,
    forecast: Url,
    archive: Url,
}

/// What a call wants.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    days: Option<(Day, Day)>,
    current: bool,
}

impl Tool for Weather {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        let today = Day::today();
        let text = |name| Some(ask::text(call, name)).filter(|text| !text.is_empty());
        let wanted = wanted(text("start_date"), text("end_date"), text("is_current"), today)?;
        let location = one_line(ask::text(call, "location"));
        let service = Arc::clone(&self.service);
        ask::wait(self.client.handle(), self.spec.timeout, async move { service.weather(&location, &wanted, today).await })
    }
}

fn wanted(start: Option<&str>, end: Option<&str>, current: Option<&str>, today: Day) -> Result<Wanted, ToolError> {
    let wrong = |why: String| Err(ToolError::Params(why));
    let current = current.map_or(start.is_none() && end.is_none(), |current| current == "yes");
    let day = |name: &str, text: &str| {
        Day::parse(text).ok_or_else(|| ToolError::Params(format!("`/{name}`: `{text}` is no day; expected one such as {today}")))
    };
    let days = match (start, end) {
        (None, None) => None,
        (None, Some(_)) => return wrong("`/start_date` is missing: with `end_date` it has to be given".to_owned()),
        (Some(start), end) => {
            let start = day("start_date", start)?;
            Some((start, end.map_or(Ok(start), |end| day("end_date", end))?))
        }
    };
    if let Some((start, end)) = days {
        let last = Day(today.0 + AHEAD);
        if end < start {
            return wrong(format!("`/end_date` {end} is before `/start_date` {start}; exchange them"));
        }
        if end > last {
            return wrong(format!("`/end_date`: the forecast reaches {AHEAD} days ahead, until {last}; ask for an earlier day"));
        }
        if Some(start) < Day::parse(FIRST) {
            return wrong(format!("`/start_date`: the records begin on {FIRST}; ask for a later day"));
        }
        if end.0 - start.0 >= MOST_DAYS {
            return wrong(format!("`/end_date`: these are {} days; ask for at most {MOST_DAYS} at once", end.0 - start.0 + 1));
        }
    }
    if days.is_none() && !current {
        return wrong("nothing is asked for; give a `start_date`, or set `is_current` to \"yes\"".to_owned());
    }
    Ok(Wanted { days, current })
}

/// A place that was found.
struct Place {
    name: String,
    latitude: f64,
    longitude: f64,
}

impl Service {
    async fn weather(&self, location: &str, wanted: &Wanted, today: Day) -> Result<ToolOutput, ToolError> {
        let place = self.place(location).await?;
        let recent = wanted.days.is_none_or(|(start, _)| start.0 >= today.0 - BACK);
        let (days, current) = (wanted.days, wanted.current);
        // one request says both, where the same service knows them
        let forecast = (current || recent).then(|| request(&self.forecast, &place, days.filter(|_| recent), current));
        let archive = (!recent).then(|| request(&self.archive, &place, days, false));
        let (forecast_said, archive_said) = tokio::join!(self.asked(forecast.as_ref()), self.asked(archive.as_ref()));
        let (forecast_said, archive_said) = (forecast_said?, archive_said?);
        let shown = forecast.as_ref().or(archive.as_ref()).map_or_else(String::new, |url| format!(" <{url}>"));
        let mut lines = vec![format!("{} ({:.2}, {:.2}){shown}", place.name, place.latitude, place.longitude)];
        let mut artifacts = Vec::new();
        let unknown = || {
            let message =
                "the service answered without the weather that it was asked for; is its URL of the form of Open-Meteo?".to_owned();
            ToolError::Failed { status: "no result".to_owned(), message }
        };
        if current {
            lines.push(forecast_said.as_ref().and_then(current_line).ok_or_else(unknown)?);
        }
        if days.is_some() {
            let (days, table) = archive_said.or(forecast_said).as_ref().and_then(daily).ok_or_else(unknown)?;
            lines.extend(days);
            artifacts.push(NewArtifact {
                kind: "table".to_owned(),
                media_type: "text/csv".to_owned(),
                name: "weather.csv".to_owned(),
                text: format!("the weather of {} by days", one_line(&place.name)),
                data: table.into_bytes(),
            });
        }
        Ok(ToolOutput { text: lines.join("\n"), artifacts, ..ToolOutput::default() })
    }

    async fn asked(&self, url: Option<&Url>) -> Result<Option<Value>, ToolError> {
        match url {
            Some(url) => self.web.json(url).await.map(Some),
            None => Ok(None),
        }
    }

    /// The place that a location means: by its first part, and of several by the others.
    async fn place(&self, location: &str) -> Result<Place, ToolError> {
        let mut parts = location.split(',').map(str::trim).filter(|part| !part.is_empty());
        let name = parts.next().unwrap_or_default();
        let rest: Vec<String> = parts.map(fold).collect();
        let unknown =
            || ToolError::Params(format!("no place is called {name}; write the name of a town in English, then its country after a comma"));
        let mut url = self.geocoding.clone();
        url.query_pairs_mut().extend_pairs([("name", name), ("count", "10"), ("language", "en"), ("format", "json")]);
        let answer = self.web.json(&url).await?;
        let found = answer["results"].as_array().cloned().unwrap_or_default();
        let fits = |place: &Value| {
            let known = ["country", "country_code", "admin1", "admin2"].map(|key| place[key].as_str().map(fold).unwrap_or_default());
            rest.iter().filter(|part| known.contains(part)).count()
        };
        // the service names the largest first, and of equals the first is taken
        let most = found.iter().map(fits).max().ok_or_else(unknown)?;
        let best = found.iter().find(|place| fits(place) == most).ok_or_else(unknown)?;
        let (Some(latitude), Some(longitude)) = (best["latitude"].as_f64(), best["longitude"].as_f64()) else { return Err(unknown()) };
        let names: Vec<&str> = ["name", "admin1", "country"].iter().filter_map(|key| best[key].as_str()).collect();
        if most < rest.len() {
            let others: Vec<String> = found
                .iter()
                .take(5)
                .map(|place| ["name", "admin1", "country"].iter().filter_map(|key| place[key].as_str()).collect::<Vec<_>>().join(", "))
                .collect();
            return Err(ToolError::Params(format!("no {name} is in {}; there are: {}", rest.join(", "), one_line(&others.join("; ")))));
        }
        Ok(Place { name: one_line(&names.join(", ")), latitude, longitude })
    }
}

fn request(service: &Url, place: &Place, days: Option<(Day, Day)>, current: bool) -> Url {
    let mut url = service.clone();
    {
        let mut query = url.query_pairs_mut();
        query.append_pair("latitude", &place.latitude.to_string()).append_pair("longitude", &place.longitude.to_string());
        if current {
            query.append_pair("current", CURRENT);
        }
        if let Some((start, end)) = days {
            query.append_pair("daily", DAILY).append_pair("start_date", &start.to_string()).append_pair("end_date", &end.to_string());
        }
        query.append_pair("timezone", "auto");
    }
    url
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests
    use super::*;

    #[test]
    fn days_are_checked_before_anything_is_asked() {
        let today = Day::parse("2024-05-10").unwrap();
        let asked = |start: &str, end: &str, current: &str| {
            let text = |text: &'static str| Some(text).filter(|text| !text.is_empty());
            let leak = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
            wanted(text(leak(start)), text(leak(end)), text(leak(current)), today)
        };
        let day = |text| Day::parse(text).unwrap();
        assert_eq!(asked("", "", "").unwrap(), Wanted { days: None, current: true });
        assert_eq!(asked("2024-05-01", "", "").unwrap(), Wanted { days: Some((day("2024-05-01"), day("2024-05-01"))), current: false });
        assert_eq!(
            asked("1940-01-01", "1940-01-31", "yes").unwrap(),
            Wanted { days: Some((day("1940-01-01"), day("1940-01-31"))), current: true }
        );
        assert!(asked("2024-05-25", "2024-05-25", "no").is_ok());
        for (start, end, current, expected) in [
            ("2024-05-26", "", "", "until 2024-05-25"),
            ("1939-12-31", "", "", "begin on 1940-01-01"),
            ("2024-05-02", "2024-05-01", "", "exchange them"),
            ("2024-01-01", "2024-02-01", "", "32 days"),
            ("2024-02-30", "", "", "is no day"),
            ("", "2024-05-01", "", "`/start_date` is missing"),
            ("", "", "no", "nothing is asked for"),
        ] {
            let error = asked(start, end, current).unwrap_err().to_string();
            assert!(error.contains(expected), "{start} {end} {current}: {error}");
        }
    }
}
