//! Redirects: followed by hand, each checked like the first request.

use autoact_http_tools::{
    AddressClass, BodyForm, Credential, HostRule, HttpFailure, Method, Operation, Place, RedirectRefusal, Refusal, Secret, SecretPlace,
};
use serde_json::json;

use crate::server::{Names, Server, World, arguments, ok, operation, redirect};

fn to(place: &'static str, status: u16) -> Server {
    Server::start(move |request, _| if request.starts_with("GET /end") { ok("text/plain", request) } else { redirect(status, place) })
}

fn get(server: &Server) -> Operation {
    operation(Method::Get, &server.url("/start"), &[], BodyForm::None)
}

fn call(world: &World, operation: Operation) -> Result<String, HttpFailure> {
    world.tool(operation).call(&arguments(json!({})), "")
}

#[test]
fn a_redirect_within_the_host_is_followed() {
    let world = World::new(Names::default());
    for status in [301, 302, 303, 307, 308] {
        let server = to("/end?x=1#part", status);
        assert!(call(&world, get(&server)).unwrap().starts_with("GET /end?x=1 HTTP"), "{status}");
        assert_eq!(server.requests().len(), 2);
    }
}

#[test]
fn a_redirect_to_what_is_refused_is_refused() {
    let world = World::new(Names::default());
    let rules = ["127.0.0.1", "169.254.169.254", "[fd00:ec2::254]", "10.0.0.1", "[::ffff:169.254.169.254]"];
    for (place, reason) in [
        ("http://169.254.169.254/latest/meta-data", Refusal::Address(AddressClass::Metadata)),
        ("http://0xa9fea9fe/", Refusal::Address(AddressClass::Metadata)),
        ("http://[fd00:ec2::254]/", Refusal::Address(AddressClass::Metadata)),
        ("http://[::ffff:169.254.169.254]/", Refusal::Address(AddressClass::Metadata)),
        ("//169.254.169.254/", Refusal::Address(AddressClass::Metadata)),
        ("http://elsewhere.test/", Refusal::Host),
        ("http://127.0.0.1:1/", Refusal::Host),
        ("ftp://127.0.0.1/x", Refusal::Scheme),
        ("file:///etc/passwd", Refusal::Scheme),
        ("gopher://127.0.0.1/", Refusal::Scheme),
        ("http://user:pw@127.0.0.1/", Refusal::UserInfo),
    ] {
        let server = to(place, 302);
        let mut operation = get(&server);
        operation.hosts = rules.iter().map(|rule| HostRule::parse(rule).unwrap()).collect();
        operation.hosts.push(HostRule::parse(&server.address.to_string()).unwrap());
        match call(&world, operation) {
            Err(HttpFailure::Refused { reason: found, .. }) => assert_eq!(found, reason, "{place}"),
            other => panic!("{place}: {other:?}"),
        }
        assert_eq!(server.requests().len(), 1, "{place}");
    }
}

#[test]
fn a_private_address_behind_a_redirect_is_refused_where_the_first_was_not() {
    // both hosts are allowed; the second one's address is not
    let server = to("http://inner.test/end", 302);
    let world = World::new(Names::default().set("outer.test", &[&["127.0.0.1"]]).set("inner.test", &[&["169.254.169.254"]]));
    let mut operation = operation(Method::Get, &format!("http://outer.test:{}/start", server.port()), &[], BodyForm::None);
    operation.hosts = vec![HostRule::parse(&format!("outer.test:{}", server.port())).unwrap(), HostRule::parse("inner.test").unwrap()];
    assert!(matches!(call(&world, operation), Err(HttpFailure::Refused { host, reason: Refusal::Address(_) }) if host == "inner.test"));
}

#[test]
fn redirects_have_a_bound_and_need_a_place() {
    let world = World::new(Names::default());
    let circle = to("/start", 302);
    assert!(matches!(call(&world, get(&circle)), Err(HttpFailure::Redirect { reason: RedirectRefusal::TooMany(3), .. })));
    assert_eq!(circle.requests().len(), 4);
    let mut none = get(&circle);
    none.limits.redirects = 0;
    assert!(matches!(call(&world, none), Err(HttpFailure::Redirect { reason: RedirectRefusal::TooMany(0), .. })));
    let nowhere = to("http://[", 302);
    assert!(matches!(call(&world, get(&nowhere)), Err(HttpFailure::Redirect { reason: RedirectRefusal::Place, .. })));
}

/// Two servers: the first one leads to the second.
fn pair(status: u16, query: &'static str) -> (Server, Server) {
    let second = Server::start(|request, _| ok("text/plain", request));
    let place = format!("http://second.test:{}/end{query}", second.port());
    (Server::start(move |_, _| redirect(status, &place)), second)
}

fn across(first: &Server, second: &Server, method: Method) -> Operation {
    let body = if method == Method::Post { BodyForm::Json("application/json".into()) } else { BodyForm::None };
    let arguments: &[(&str, Place)] = if method == Method::Post { &[("a", Place::Field)] } else { &[] };
    let mut operation = operation(method, &first.url("/start"), arguments, body);
    operation.hosts =
        vec![HostRule::parse(&first.address.to_string()).unwrap(), HostRule::parse(&format!("second.test:{}", second.port())).unwrap()];
    operation.headers = vec![("X-Own".into(), "1".into()), ("Authorization".into(), "Bearer fixed".into())];
    operation
}

#[test]
fn another_host_gets_no_credentials() {
    let (first, second) = pair(302, "");
    let world = World::with(Names::default().set("second.test", &[&["127.0.0.1"]]), &[("KEY", "s3cret-key")], None);
    let mut operation = across(&first, &second, Method::Get);
    for place in [
        SecretPlace::Header("X-Api-Key".into()),
        SecretPlace::Query("key".into()),
        SecretPlace::Cookie("session".into()),
        SecretPlace::Bearer,
    ] {
        operation.credentials.push(Credential { secret: Secret::Env("KEY".into()), place });
    }
    call(&world, operation).unwrap();
    assert_eq!(first.requests()[0].matches("s3cret-key").count(), 4);
    let request = second.requests()[0].to_ascii_lowercase();
    for part in ["s3cret", "authorization", "cookie", "x-api-key", "x-own", "key="] {
        assert!(!request.contains(part), "{part}: {request}");
    }
    assert!(request.contains("user-agent: autoact/"), "{request}");
}

#[test]
fn a_place_that_tells_another_host_a_secret_is_refused() {
    let (first, second) = pair(302, "?key=s3cret-key");
    let world = World::with(Names::default().set("second.test", &[&["127.0.0.1"]]), &[("KEY", "s3cret-key")], None);
    let mut operation = across(&first, &second, Method::Get);
    operation.credentials.push(Credential { secret: Secret::Env("KEY".into()), place: SecretPlace::Query("key".into()) });
    assert!(matches!(call(&world, operation), Err(HttpFailure::Redirect { reason: RedirectRefusal::Secret, .. })));
    assert_eq!(second.requests().len(), 0);
}

#[test]
fn the_method_and_the_body_change_as_in_browsers() {
    let world = World::new(Names::default().set("second.test", &[&["127.0.0.1"]]));
    for (status, start, body) in [(302, "GET /end", false), (303, "GET /end", false), (307, "POST /end", true), (308, "POST /end", true)] {
        let (first, second) = pair(status, "");
        let tool = world.tool(across(&first, &second, Method::Post));
        tool.call(&arguments(json!({"a": "text"})), "").unwrap();
        let request = &second.requests()[0];
        assert!(request.starts_with(start) && request.contains("{\"a\":\"text\"}") == body, "{status}: {request}");
    }
}

#[test]
fn from_https_to_http_no_redirect_is_followed() {
    let plain = Server::echo();
    let place = plain.url("/end");
    let port = crate::secure::start(move || redirect(302, &place));
    let world = World::with(Names::default().set("localhost", &[&["127.0.0.1"]]), &[], Some(crate::secure::CERTIFICATE.into()));
    let mut operation = operation(Method::Get, &format!("https://localhost:{port}/"), &[], BodyForm::None);
    operation.hosts = vec![HostRule::parse(&format!("localhost:{port}")).unwrap(), HostRule::parse(&plain.address.to_string()).unwrap()];
    assert_eq!(
        call(&world, operation.clone()),
        Err(HttpFailure::Redirect { host: "localhost".into(), reason: RedirectRefusal::Downgrade })
    );
    assert_eq!(plain.requests().len(), 0);
    // a certificate of an authority that is not trusted is none
    let strangers = World::new(Names::default().set("localhost", &[&["127.0.0.1"]]));
    assert!(matches!(call(&strangers, operation), Err(HttpFailure::Unreachable { .. })));
}
