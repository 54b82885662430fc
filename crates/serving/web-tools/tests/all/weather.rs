//! `weather` against recorded answers. They are written by hand in the form that Open-Meteo
//! documents (`tests/recorded/open-meteo.json`), because tests ask no service of others.

use serde_json::{Value, json};

use autoact_tools::ToolLibrary;

use crate::server::{Site, World, call, json as answer, parameter};

const RECORDED: &str = include_str!("../recorded/open-meteo.json");

fn site() -> Site {
    let all: Value = serde_json::from_str(RECORDED).unwrap();
    Site::start(move |uri| match uri.path() {
        "/geo" if parameter(uri, "name").as_deref() == Some("Paris") => answer(&all["geocoding"]),
        "/geo" => answer(&all["geocoding, nothing found"]),
        "/forecast" => {
            assert_eq!(parameter(uri, "latitude").as_deref(), Some("48.85341"));
            answer(&all["forecast"])
        }
        "/archive" if parameter(uri, "start_date").as_deref() == Some("1950-01-01") => answer(&all["archive"]),
        _ => answer(&json!({ "error": true, "reason": "x" })),
    })
}

fn weather(world: &World, site: &Site) -> ToolLibrary {
    world.library(&format!(
        "kind = \"weather\", geocoding_url = \"{}\", forecast_url = \"{}\", archive_url = \"{}\", allow_private = true",
        site.url("/geo"),
        site.url("/forecast"),
        site.url("/archive")
    ))
}

#[test]
fn the_weather_of_now_is_a_line() {
    let (site, world) = (site(), World::new());
    let seen = call(&weather(&world, &site), &json!({ "location": "Paris, France" }));
    println!("{}", seen.text);
    let lines: Vec<&str> = seen.text.lines().collect();
    assert!(
        lines[0].starts_with(&format!("Paris, Île-de-France, France (48.85, 2.35) <{}", site.url("/forecast?latitude="))),
        "{}",
        lines[0]
    );
    assert_eq!(
        lines[1],
        "Now (2024-05-10T12:00): overcast, 14.2 °C, feels like 13.1 °C, humidity 62%, precipitation 0.0 mm, wind 12.6 km/h, visibility 24.1 km"
    );
    assert!(site.seen()[1].contains("current=temperature_2m") && !site.seen()[1].contains("daily"));
}

#[test]
fn days_of_the_past_are_of_the_archive_and_a_table() {
    let (site, world) = (site(), World::new());
    let arguments = json!({ "location": "Paris", "start_date": "1950-01-01", "end_date": "1950-01-02", "is_current": "no" });
    let seen = call(&weather(&world, &site), &arguments);
    println!("{}", seen.text);
    let lines: Vec<&str> = seen.text.lines().collect();
    assert_eq!(lines[1], "1950-01-01: light rain, 1.4 to 6.0 °C, precipitation 2.3 mm, wind up to 18.0 km/h, sun 08:44 to 17:03");
    assert_eq!(lines.len(), 3);
    let table = String::from_utf8(seen.artifacts[0].data.clone()).unwrap();
    assert_eq!(table.lines().nth(1).unwrap(), "1950-01-01,light rain,1.4,6.0,2.3,18.0,08:44,17:03");
    autoact_trajectory::check_artifacts(&seen.artifacts).unwrap();
    assert!(!site.seen().iter().any(|path| path.starts_with("/forecast")));
}

#[test]
fn places_are_chosen_by_their_country() {
    let (site, world) = (site(), World::new());
    let library = weather(&world, &site);
    // the second Paris of the list is asked for at its own place, which the server does not have
    let seen = call(&library, &json!({ "location": "Paris, Texas, US", "start_date": "1960-01-01" })).text;
    assert!(site.seen().last().unwrap().contains("latitude=33.66094"), "{seen}");
    assert!(seen.contains("the service answered without the weather"), "{seen}");
    let seen = call(&library, &json!({ "location": "Paris, Germany" }));
    assert!(seen.is_error, "{}", seen.text);
    assert_eq!(seen.text, "no Paris is in germany; there are: Paris, Île-de-France, France; Paris, Texas, United States");
    let seen = call(&library, &json!({ "location": "Qwertz" }));
    assert!(seen.is_error && seen.text.starts_with("no place is called Qwertz; write the name of a town in English"), "{}", seen.text);
}

#[test]
fn wrong_days_are_refused_before_anything_is_asked() {
    let (site, world) = (site(), World::new());
    let library = weather(&world, &site);
    for (arguments, expected) in [
        (json!({ "location": "Paris", "start_date": "2024-02-30" }), "start_date"),
        (json!({ "location": "Paris", "start_date": "2999-01-01" }), "the forecast reaches 15 days ahead"),
        (json!({ "location": "Paris", "start_date": "1900-01-01" }), "the records begin on 1940-01-01"),
        (json!({ "location": "Paris", "is_current": "maybe" }), "is_current"),
        (json!({ "start_date": "2024-01-01" }), "location"),
    ] {
        let seen = call(&library, &arguments);
        assert!(seen.is_error && seen.text.contains(expected), "{arguments}: {}", seen.text);
    }
    assert_eq!(site.seen().len(), 0);
}
