//! httpbin, a real service with a document of its own: `AUTOACT_TEST_HTTPBIN=URL`.

use autoact_http_tools::openapi::{Import, ImportOptions, import};
use autoact_http_tools::{HttpFailure, HttpTool, RedirectRefusal, Secret, StatusClass};
use serde_json::{Value, json};

use crate::server::{Names, World, arguments};

#[test]
fn httpbin_is_imported_and_called() {
    let Ok(url) = std::env::var("AUTOACT_TEST_HTTPBIN") else {
        println!("skipped: AUTOACT_TEST_HTTPBIN names no httpbin");
        return;
    };
    let world = World::with(Names::default(), &[("TOKEN", "t0ken-of-bin")], None);
    // the document as bytes: a tool would trim it
    let document = {
        use std::io::{Read as _, Write as _};
        let host = url.trim_start_matches("http://");
        let mut stream = std::net::TcpStream::connect(host).unwrap();
        write!(stream, "GET /spec.json HTTP/1.0\r\nHost: {host}\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text.split_once("\r\n\r\n").unwrap().1.to_owned()
    };
    let options = ImportOptions { server: Some(url.clone()), allow_private: true, max_observation_bytes: 2000, ..ImportOptions::default() };
    let Import { operations, skipped, .. } = import(document.as_bytes(), &format!("{url}/spec.json"), &options).unwrap();
    println!("{} operations, skipped: {skipped:?}", operations.len());
    assert!(operations.len() > 60);
    let tool = |at: &str| {
        let one = operations.iter().find(|one| one.at == at).unwrap_or_else(|| panic!("{at}"));
        HttpTool::new(one.spec.clone(), one.operation.clone(), world.client.clone()).unwrap()
    };
    let json = |text: String| -> Value { serde_json::from_str(&text).unwrap() };
    let call = |at: &str, given: Value| tool(at).call(&arguments(given), "");
    assert!(json(call("GET /get", json!({})).unwrap())["url"].as_str().unwrap().ends_with("/get"));
    assert_eq!(json(call("POST /post", json!({})).unwrap())["data"], "");
    assert!(json(call("GET /headers", json!({})).unwrap())["headers"]["User-Agent"].as_str().unwrap().starts_with("autoact/"));
    let status = |code: u16| call("GET /status/{codes}", json!({ "codes": code.to_string() }));
    assert!(status(200).unwrap().starts_with("status 200"));
    for (code, expected) in
        [(404, StatusClass::Client), (401, StatusClass::Auth), (429, StatusClass::RateLimited), (500, StatusClass::Server)]
    {
        assert!(matches!(status(code), Err(HttpFailure::Status { class, .. }) if class == expected), "{code}");
    }
    assert!(json(call("GET /redirect/{n}", json!({ "n": 2 })).unwrap())["url"].as_str().unwrap().ends_with("/get"));
    let far = call("GET /redirect/{n}", json!({ "n": 6 }));
    assert!(matches!(far, Err(HttpFailure::Redirect { reason: RedirectRefusal::TooMany(3), .. })));
    let away = call("GET /redirect-to", json!({ "url": "http://169.254.169.254/" }));
    assert!(matches!(away, Err(HttpFailure::Refused { .. })), "{away:?}");
    assert_eq!(json(call("GET /anything/{anything}", json!({ "anything": "a b" })).unwrap())["method"], "GET");
    assert!(call("GET /image/png", json!({})).unwrap().starts_with("(image/png, "));
    assert!(call("GET /html", json!({})).unwrap().contains("Moby-Dick") && !call("GET /html", json!({})).unwrap().contains("<p>"));
    assert!(matches!(call("GET /gzip", json!({})), Err(HttpFailure::Encoded { .. })));
    let mut bearer = operations.iter().find(|one| one.at == "GET /bearer").unwrap().operation.clone();
    bearer.credentials =
        vec![autoact_http_tools::Credential { secret: Secret::Env("TOKEN".into()), place: autoact_http_tools::SecretPlace::Bearer }];
    bearer.arguments.clear();
    let shown = world.tool(bearer).call(&arguments(json!({})), "").unwrap();
    assert_eq!(json(shown), json!({ "authenticated": true, "token": "***" }));
}
