//! The answers of a weather service as lines, and as a table.

use serde_json::Value;

/// What the codes of the World Meteorological Organization mean, as Open-Meteo documents them.
const CODES: [(u64, &str); 28] = [
    (0, "clear sky"),
    (1, "mainly clear"),
    (2, "partly cloudy"),
    (3, "overcast"),
    (45, "fog"),
    (48, "rime fog"),
    (51, "light drizzle"),
    (53, "drizzle"),
    (55, "dense drizzle"),
    (56, "light freezing drizzle"),
    (57, "freezing drizzle"),
    (61, "light rain"),
    (63, "rain"),
    (65, "heavy rain"),
    (66, "light freezing rain"),
    (67, "freezing rain"),
    (71, "light snow"),
    (73, "snow"),
    (75, "heavy snow"),
    (77, "snow grains"),
    (80, "light showers"),
    (81, "showers"),
    (82, "violent showers"),
    (85, "light snow showers"),
    (86, "snow showers"),
    (95, "thunderstorm"),
    (96, "thunderstorm with hail"),
    (99, "thunderstorm with heavy hail"),
];

fn sky(code: &Value) -> Option<&'static str> {
    let code = code.as_u64()?;
    CODES.iter().find(|(known, _)| *known == code).map(|(_, text)| *text)
}

/// `Now (2024-05-10T12:00): overcast, 14.2 °C, …`
pub(crate) fn current_line(answer: &Value) -> Option<String> {
    let (now, units) = (answer.get("current")?, &answer["current_units"]);
    let value = |key: &str| measured(&now[key], &units[key]);
    let mut parts: Vec<String> = sky(&now["weather_code"]).map(str::to_owned).into_iter().collect();
    parts.push(value("temperature_2m")?);
    parts.extend(value("apparent_temperature").map(|text| format!("feels like {text}")));
    parts.extend(value("relative_humidity_2m").map(|text| format!("humidity {text}")));
    parts.extend(value("precipitation").map(|text| format!("precipitation {text}")));
    parts.extend(value("wind_speed_10m").map(|text| format!("wind {text}")));
    parts.extend(value("visibility").map(|text| format!("visibility {text}")));
    Some(format!("Now ({}): {}", now["time"].as_str()?, parts.join(", ")))
}

/// A line for each day, and all of it as CSV.
pub(crate) fn daily(answer: &Value) -> Option<(Vec<String>, String)> {
    let (daily, units) = (answer.get("daily")?, &answer["daily_units"]);
    let days = daily["time"].as_array()?;
    let mut lines = Vec::with_capacity(days.len());
    let mut table = "date,weather,temperature_min,temperature_max,precipitation,wind_max,sunrise,sunset\n".to_owned();
    for (at, day) in days.iter().enumerate() {
        let day = day.as_str()?;
        let raw = |key: &str| &daily[key][at];
        let value = |key: &str| measured(raw(key), &units[key]);
        let clock = |key: &str| raw(key).as_str().and_then(|time| time.split_once('T')).map(|(_, time)| time.to_owned());
        let weather = sky(raw("weather_code"));
        let mut parts: Vec<String> = weather.map(str::to_owned).into_iter().collect();
        if let (Some(low), Some(high)) = (number(raw("temperature_2m_min")), value("temperature_2m_max")) {
            parts.push(format!("{low} to {high}"));
        }
        parts.extend(value("precipitation_sum").map(|text| format!("precipitation {text}")));
        parts.extend(value("wind_speed_10m_max").map(|text| format!("wind up to {text}")));
        if let (Some(rise), Some(set)) = (clock("sunrise"), clock("sunset")) {
            parts.push(format!("sun {rise} to {set}"));
        }
        let known = if parts.is_empty() { "not known yet".to_owned() } else { parts.join(", ") };
        lines.push(format!("{day}: {known}"));
        let cell = |key: &str| number(raw(key)).unwrap_or_default();
        let cells = ["temperature_2m_min", "temperature_2m_max", "precipitation_sum", "wind_speed_10m_max"].map(cell);
        let sun = ["sunrise", "sunset"].map(|key| clock(key).unwrap_or_default());
        table.push_str(&format!("{day},{},{},{}\n", weather.unwrap_or_default(), cells.join(","), sun.join(",")));
    }
    Some((lines, table))
}

fn number(value: &Value) -> Option<String> {
    value.is_number().then(|| value.to_string())
}

/// A number with its unit; kilometres for many metres.
fn measured(value: &Value, unit: &Value) -> Option<String> {
    let unit = unit.as_str().unwrap_or_default();
    match (value.as_f64()?, unit) {
        (metres, "m") if metres >= 1000.0 => Some(format!("{:.1} km", metres / 1000.0)),
        _ if unit == "%" => Some(format!("{value}%")),
        _ => Some(format!("{value} {unit}").trim_end().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_missing_is_left_out() {
        let answer = json!({
            "current": {"time": "2024-05-10T12:00", "temperature_2m": 14.2, "weather_code": 1000},
            "daily": {"time": ["2024-05-10", "2024-05-11"], "temperature_2m_min": [null, 1.0], "temperature_2m_max": [null, 2]}
        });
        assert_eq!(current_line(&answer).unwrap(), "Now (2024-05-10T12:00): 14.2");
        assert_eq!(daily(&answer).unwrap().0, ["2024-05-10: not known yet", "2024-05-11: 1.0 to 2"]);
        for wrong in [json!(null), json!({"daily": {}, "current": {}}), json!({"daily": {"time": [1]}}), json!([])] {
            assert!(current_line(&wrong).is_none() && daily(&wrong).is_none(), "{wrong}");
        }
    }
}
