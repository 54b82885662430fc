//! What arguments and secrets cannot do to a request.

use autoact_http_tools::{
    Argument, BodyForm, Credential, HttpFailure, HttpTool, Method, Operation, Place, Secret, SecretPlace, Style, UrlTemplate,
};
use autoact_tools::{Tool, ToolCall};
use autoact_trajectory::Trajectory;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::server::{Names, Server, World, arguments, ok, operation, response, spec};

/// The head and the body that the server saw.
fn sent(tool: &HttpTool, given: Value) -> (String, String) {
    let seen: Value = serde_json::from_str(&tool.call(&arguments(given), "").unwrap()).unwrap();
    (seen["head"].as_str().unwrap().to_owned(), seen["body"].as_str().unwrap().to_owned())
}

#[test]
fn a_path_segment_stays_one() {
    let server = Server::echo();
    let world = World::new(Names::default());
    let tool = world.tool(operation(Method::Get, &server.url("/v1/items/{id}/parts"), &[("id", Place::Path)], BodyForm::None));
    for (value, path) in [
        ("a b", "a%20b"),
        ("a/b", "a%2Fb"),
        ("a?x=1", "a%3Fx%3D1"),
        ("a#b", "a%23b"),
        ("a\\b", "a%5Cb"),
        ("a\r\nX-Evil: 1", "a%0D%0AX-Evil%3A%201"),
        ("%2f", "%252f"),
        ("...", "..."),
        ("é@:;,", "%C3%A9%40%3A%3B%2C"),
        ("http://evil.test/", "http%3A%2F%2Fevil.test%2F"),
        ("\u{0}", "%00"),
    ] {
        let (head, _) = sent(&tool, json!({ "id": value }));
        assert!(head.starts_with(&format!("GET /v1/items/{path}/parts HTTP/1.1\r\n")), "{value:?}: {head}");
        assert!(!head.contains("X-Evil: 1"), "{head}");
    }
    for value in ["..", ".", "../admin", "a/../../b", "..\\b", "%2e%2e", "%2E%2E%2Fx", "%252e%252e", "", "a/.."] {
        let refused = tool.call(&arguments(json!({ "id": value })), "");
        assert!(matches!(refused, Err(HttpFailure::Argument { .. })), "{value:?}: {refused:?}");
    }
    assert!(matches!(tool.call(&arguments(json!({})), ""), Err(HttpFailure::Argument { .. })));
    assert!(matches!(tool.call(&arguments(json!({"id": ["..", "x"]})), ""), Err(HttpFailure::Argument { .. })));
    assert!(
        matches!(tool.call(&arguments(json!({"id": "x", "other": 1})), ""), Err(HttpFailure::Argument { name, .. }) if name == "other")
    );
}

#[test]
fn a_query_parameter_stays_one() {
    let server = Server::echo();
    let world = World::new(Names::default());
    let mut operation = operation(Method::Get, &server.url("/s?fixed=1"), &[("q", Place::Query)], BodyForm::None);
    operation.arguments.push(Argument { style: Style::Deep, ..Argument::new("f", Place::Query) });
    let tool = world.tool(operation);
    for (value, query) in [("a&b=c", "a%26b%3Dc"), ("a#b", "a%23b"), ("a+b c", "a%2Bb%20c"), ("x\r\nHost: evil", "x%0D%0AHost%3A%20evil")] {
        let (head, _) = sent(&tool, json!({ "q": value }));
        assert!(head.starts_with(&format!("GET /s?fixed=1&q={query} HTTP")), "{head}");
    }
    let (head, _) = sent(&tool, json!({ "f": {"a]&b[": "c&d"} }));
    assert!(head.starts_with("GET /s?fixed=1&f%5Ba%5D%26b%5B%5D=c%26d HTTP"), "{head}");
}

#[test]
fn a_header_and_a_cookie_stay_one() {
    let server = Server::echo();
    let world = World::new(Names::default());
    let tool = world.tool(operation(Method::Get, &server.url("/"), &[("X-Name", Place::Header), ("c", Place::Cookie)], BodyForm::None));
    for value in ["a\r\nX-Evil: 1", "a\nb", "a\u{0}b", "é", "a\rb", "\u{7f}"] {
        let refused = tool.call(&arguments(json!({ "X-Name": value })), "");
        assert!(matches!(refused, Err(HttpFailure::Argument { .. })), "{value:?}: {refused:?}");
    }
    let (head, _) = sent(&tool, json!({ "X-Name": "plain; a=b", "c": "1; admin=1\r\nX-Evil: 1" }));
    assert!(head.contains("x-name: plain; a=b\r\n") && head.contains("cookie: c=1%3B%20admin%3D1%0D%0AX-Evil%3A%201"), "{head}");
    let at = server.url("/");
    for name in ["Host", "content-length", "Transfer-Encoding", "Connection", "Cookie", "a b", "a:b", "a\r\nb", ""] {
        assert!(world.try_tool(operation(Method::Get, &at, &[(name, Place::Header)], BodyForm::None)).is_err(), "{name:?}");
        let mut fixed = operation(Method::Get, &at, &[], BodyForm::None);
        fixed.headers = vec![(name.to_owned(), "x".to_owned())];
        assert!(world.try_tool(fixed).is_err(), "{name:?}");
    }
    let mut fixed = operation(Method::Get, &at, &[], BodyForm::None);
    fixed.headers = vec![("X-A".to_owned(), "x\r\nX-B: y".to_owned())];
    assert!(world.try_tool(fixed).is_err());
}

#[test]
fn a_body_has_its_form() {
    let server = Server::echo();
    let world = World::new(Names::default());
    let tool = |body: BodyForm, place| {
        world.tool(operation(
            Method::Post,
            &server.url("/"),
            &[("a", place), ("b", if place == Place::Body { Place::Query } else { place })],
            body,
        ))
    };
    let json = tool(BodyForm::Json("application/json".into()), Place::Field);
    let (head, body) = sent(&json, json!({"a": "x\"y", "b": [1]}));
    assert!(head.contains("content-type: application/json") && body == r#"{"a":"x\"y","b":[1]}"#, "{head}{body}");
    let form = tool(BodyForm::Form, Place::Field);
    assert_eq!(sent(&form, json!({"a": "x&b=9", "b": ["1 2", 3]})).1, "a=x%26b%3D9&b=1%202&b=3");
    let multipart = tool(BodyForm::Multipart, Place::Field);
    let (head, body) = sent(&multipart, json!({"a": "x\r\n--", "b": 1}));
    assert!(head.contains("multipart/form-data; boundary=") && body.contains("name=\"a\"\r\n\r\nx\r\n--"), "{head}{body}");
    let text = tool(BodyForm::Text("text/plain".into()), Place::Body);
    assert_eq!(sent(&text, json!({"a": "line\n"})).1, "line\n");
    let whole = tool(BodyForm::Json("application/json".into()), Place::Body);
    assert_eq!(sent(&whole, json!({"a": [1, {"x": null}]})).1, r#"[1,{"x":null}]"#);
}

const KEY: &str = "s3cret/key+\"1";

/// An echo, an error page and a redirect that hold the secret: none of it is shown.
#[test]
fn a_secret_is_in_the_request_and_nowhere_else() {
    let server = Server::echo();
    let failing = Server::start(|request, _| response(403, "content-type: text/plain\r\n", &format!("bad: {request}")));
    let page = Server::start(|request, _| ok("text/html", &format!("<p>{}</p>", request.replace('"', "&quot;"))));
    let world = World::with(Names::default(), &[("KEY", KEY), ("PAIR", "me:pass word")], None);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("key");
    std::fs::write(&file, format!("{KEY}\n")).unwrap();
    for (secret, place, shape) in [
        (Secret::Env("KEY".into()), SecretPlace::Header("X-Key".into()), "x-key: s3cret/key+\"1\r\n"),
        (Secret::File(file), SecretPlace::Bearer, "authorization: Bearer s3cret/key+\"1\r\n"),
        (Secret::Env("KEY".into()), SecretPlace::Query("key".into()), "?key=s3cret%2Fkey%2B%221 HTTP"),
        (Secret::Env("KEY".into()), SecretPlace::Cookie("session".into()), "cookie: session=s3cret%2Fkey%2B%221"),
        (Secret::Env("PAIR".into()), SecretPlace::Basic, "authorization: Basic bWU6cGFzcyB3b3Jk\r\n"),
    ] {
        for server in [&server, &failing, &page] {
            let mut operation = operation(Method::Get, &server.url("/"), &[], BodyForm::None);
            operation.credentials = vec![Credential { secret: secret.clone(), place: place.clone() }];
            let tool = world.tool(operation);
            let result = tool.call(&arguments(json!({})), "");
            let seen = server.requests().last().unwrap().clone();
            assert!(seen.contains(shape), "{seen}");
            let trajectory = Trajectory::default();
            let run = tool.run(&ToolCall { tenant: "", key: "", deadline: None, params: "{}", arguments: None, trajectory: &trajectory });
            let shown = match run {
                Ok(output) => output.text,
                Err(error) => format!("{error} {error:?}"),
            };
            for text in [format!("{result:?}"), format!("{tool:?}"), format!("{:?}", world.client), shown] {
                for secret in ["s3cret", "pass word", "bWU6cGFzcyB3b3Jk"] {
                    assert!(!text.contains(secret), "{place:?}: {text}");
                }
            }
            assert!(format!("{result:?}").contains("***"), "{result:?}");
        }
    }
}

#[test]
fn a_secret_that_is_not_there_stops_the_call() {
    let server = Server::echo();
    let world = World::with(Names::default(), &[("BROKEN", "a\r\nX-Evil: 1"), ("EMPTY", "")], None);
    for secret in
        [Secret::Env("NONE".into()), Secret::Env("EMPTY".into()), Secret::Env("BROKEN".into()), Secret::File("/nowhere/key".into())]
    {
        let mut operation = operation(Method::Get, &server.url("/"), &[], BodyForm::None);
        operation.credentials = vec![Credential { secret, place: SecretPlace::Header("X-Key".into()) }];
        let refused = world.tool(operation).call(&arguments(json!({})), "");
        assert!(
            matches!(&refused, Err(HttpFailure::Secret { name }) if !name.contains("nowhere") && !name.contains("Evil")),
            "{refused:?}"
        );
    }
    assert_eq!(server.requests().len(), 0);
}

fn value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![".{0,20}", "[./\\\\%2eE?#@:\\r\\n]{0,10}"];
    prop_oneof![
        text.clone().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::collection::vec(text.clone(), 0..4).prop_map(Value::from),
        prop::collection::vec((text.clone(), text), 0..3)
            .prop_map(|all| Value::Object(all.into_iter().map(|(k, v)| (k, v.into())).collect())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Host, port, the fixed parts of the path and the number of its segments never change.
    #[test]
    fn no_argument_changes_where_a_request_goes(id in value(), q in value(), styled in 0_usize..3, explode in any::<bool>()) {
        let template = UrlTemplate::parse("https://api.example.com:8443/v1/items/{id}/parts?fixed=1").unwrap();
        let mut operation = Operation::new(Method::Get, template);
        let style = [Style::Simple, Style::Label, Style::Matrix][styled];
        operation.arguments = vec![Argument { style, explode, ..Argument::new("id", Place::Path) }, Argument { explode, ..Argument::new("q", Place::Query) }];
        let world = WORLD.with(|world| world.client.clone());
        let tool = HttpTool::new(spec(&operation), operation, world).unwrap();
        let given = arguments(json!({"id": id, "q": q}));
        if let Ok(url) = tool.url(&given) {
            prop_assert_eq!(url.host_str(), Some("api.example.com"));
            prop_assert_eq!((url.scheme(), url.port(), url.fragment(), url.username()), ("https", Some(8443), None, ""));
            let segments: Vec<&str> = url.path_segments().unwrap().collect();
            prop_assert_eq!(segments.len(), 4, "{}", url);
            prop_assert_eq!((segments[0], segments[1], segments[3]), ("v1", "items", "parts"));
            prop_assert!(url.query().unwrap().starts_with("fixed=1"));
            prop_assert!(url.as_str().is_ascii() && !url.as_str().contains([' ', '\r', '\n']));
        }
    }
}

thread_local! {
    static WORLD: World = World::new(Names::default());
}
