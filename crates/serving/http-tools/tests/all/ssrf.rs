//! Where requests may go. Nothing here leaves this machine: what is refused is refused before a
//! connection, which the servers and the resolver count.

use autoact_http_tools::{AddressClass, HostRule, HttpFailure, Method, Operation, OperationError, Place, Refusal, UrlTemplate};
use serde_json::json;

use crate::server::{Names, Server, World, arguments, get, ok, operation};

fn refusal(result: Result<String, HttpFailure>) -> Refusal {
    match result {
        Err(HttpFailure::Refused { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

/// Addresses written as hosts, in all the forms that URL parsers know.
#[test]
fn an_address_of_ones_own_networks_is_refused_in_every_spelling() {
    let server = Server::echo();
    let world = World::new(Names::default());
    use AddressClass::*;
    for (host, class) in [
        ("127.0.0.1", Loopback),
        ("127.1", Loopback),
        ("2130706433", Loopback),
        ("0x7f000001", Loopback),
        ("0x7f.1", Loopback),
        ("0177.0.0.1", Loopback),
        ("127.0.0.1.", Loopback),
        ("１２７.0.0.1", Loopback),
        ("[::1]", Loopback),
        ("[::ffff:127.0.0.1]", Loopback),
        ("[::ffff:7f00:1]", Loopback),
        ("[::127.0.0.1]", Loopback),
        ("[64:ff9b::7f00:1]", Loopback),
        ("[2002:7f00:1::]", Loopback),
        ("0.0.0.0", Reserved),
        ("0", Reserved),
        ("[::]", Reserved),
        ("10.0.0.1", Private),
        ("172.16.5.4", Private),
        ("192.168.0.1", Private),
        ("[::ffff:10.0.0.1]", Private),
        ("100.64.0.1", CarrierGrade),
        ("169.254.1.1", LinkLocal),
        ("[fe80::1]", LinkLocal),
        ("169.254.169.254", Metadata),
        ("0xa9fea9fe", Metadata),
        ("[::ffff:169.254.169.254]", Metadata),
        ("[fd00:ec2::254]", Metadata),
        ("100.100.100.200", Metadata),
        ("[fd12::1]", UniqueLocal),
        ("224.0.0.251", Multicast),
        ("255.255.255.255", Multicast),
        ("[ff02::1]", Multicast),
        ("240.0.0.1", Reserved),
    ] {
        let url = format!("http://{host}:{}/", server.port());
        assert_eq!(refusal(world.get(&url, false)), Refusal::Address(class), "{host}");
    }
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn a_name_of_such_an_address_is_refused() {
    let world = World::new(
        Names::default()
            .set("localhost", &[&["127.0.0.1"]])
            .set("inside.test", &[&["10.0.0.8"]])
            .set("mapped.test", &[&["::ffff:192.168.1.1"]])
            .set("meta.test", &[&["169.254.169.254"]])
            // one such address among others refuses them all
            .set("mixed.test", &[&["8.8.8.8", "127.0.0.1"]]),
    );
    use AddressClass::*;
    for (host, class) in [
        ("localhost", Loopback),
        ("LOCALHOST", Loopback),
        ("inside.test", Private),
        ("mapped.test", Private),
        ("meta.test", Metadata),
        ("mixed.test", Loopback),
    ] {
        assert_eq!(refusal(world.get(&format!("http://{host}/"), false)), Refusal::Address(class), "{host}");
    }
}

#[test]
fn what_is_opened_is_opened_and_metadata_is_not() {
    let server = Server::start(|_, _| ok("text/plain", "hello"));
    let world = World::new(Names::default().set("mine.test", &[&["127.0.0.1"]]).set("meta.test", &[&["169.254.169.254"]]));
    assert_eq!(world.get(&server.url("/"), true).unwrap(), "hello");
    assert_eq!(world.get(&format!("http://mine.test:{}/", server.port()), true).unwrap(), "hello");
    for host in ["169.254.169.254", "meta.test", "[fd00:ec2::254]", "0.0.0.0", "[fe80::1]", "224.0.0.1"] {
        assert!(matches!(refusal(world.get(&format!("http://{host}/"), true)), Refusal::Address(_)), "{host}");
    }
}

#[test]
fn a_name_is_resolved_once_and_the_checked_address_is_connected_to() {
    let server = Server::start(|_, _| ok("text/plain", "hello"));
    // the second answer is that of a name server which rebinds
    let world = World::new(Names::default().set("rebind.test", &[&["127.0.0.1"], &["169.254.169.254"]]));
    let url = format!("http://rebind.test:{}/", server.port());
    assert_eq!(world.get(&url, true).unwrap(), "hello");
    assert_eq!(world.names.asked(), 1);
    // the next connection asks and is checked again
    assert_eq!(refusal(world.get(&url, true)), Refusal::Address(AddressClass::Metadata));
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_host_that_is_not_allowed_is_not_resolved() {
    let server = Server::echo();
    let world = World::new(Names::default().set("other.test", &[&["127.0.0.1"]]));
    let mut operation = get(&format!("http://other.test:{}/", server.port()));
    operation.allow_private = true;
    operation.hosts = vec![HostRule::parse("api.example.com").unwrap(), HostRule::parse("*.other.test").unwrap()];
    assert_eq!(refusal(world.tool(operation.clone()).call(&arguments(json!({})), "")), Refusal::Host);
    // the right host at another port
    operation.hosts = vec![HostRule::parse("other.test").unwrap(), HostRule::parse("other.test:1").unwrap()];
    assert_eq!(refusal(world.tool(operation).call(&arguments(json!({})), "")), Refusal::Host);
    assert_eq!((world.names.asked(), server.requests().len()), (0, 0));
}

#[test]
fn a_url_that_is_no_plain_address_of_http_is_refused() {
    for url in [
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:70/_x",
        "javascript:alert(1)",
        "//example.com/",
        "/etc/passwd",
        "http://",
        "http://user@example.com/",
        "http://user:password@example.com/",
        "http://example.com@127.0.0.1/",
        "http://example.com#@127.0.0.1/",
        "http://example.com\\@127.0.0.1/",
        "http://{host}/",
        "http://example.com:{port}/",
        "http://exa%6dple.com/",
        "http://exam ple.com/",
        "http://example.com/a/../b",
        "http://example.com/%2e%2e/b",
        "http://example.com/a\r\nX: y",
        "http://example.com/#part",
        "http://example.com/{a",
        "http://example.com/?q={q}",
    ] {
        let refused = UrlTemplate::parse(url);
        assert!(matches!(&refused, Err(OperationError::Url { .. })), "{url}: {refused:?}");
        assert!(!format!("{refused:?}").contains("password"), "{url}");
    }
}

#[test]
fn a_response_is_bounded_in_bytes_headers_and_time() {
    let endless = |_: &str, _| ok("text/plain", &"x".repeat(200_000));
    let (large, headers) = (
        Server::start(endless),
        Server::start(|_, _| ok("text/plain", "x").replace("content-type", &format!("x: {}\r\ny", "z".repeat(400_000)))),
    );
    let packed = Server::start(|_, _| crate::server::response(200, "content-encoding: gzip\r\n", "x"));
    let world = World::new(Names::default());
    let call = |url: String| {
        let mut operation = operation(Method::Get, &url, &[], Default::default());
        operation.limits.response_bytes = 100_000;
        operation.limits.time = std::time::Duration::from_millis(700);
        world.tool(operation).call(&arguments(json!({})), "")
    };
    assert_eq!(call(large.url("/")), Err(HttpFailure::TooLarge { limit: 100_000 }));
    assert!(matches!(call(headers.url("/")), Err(HttpFailure::Broken { .. })));
    assert_eq!(call(packed.url("/")), Err(HttpFailure::Encoded { encoding: "gzip" }));
    // a server that takes the connection and says nothing
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    assert!(matches!(call(url), Err(HttpFailure::TimedOut { .. })));
}

#[test]
fn an_operation_needs_a_place_for_each_argument() {
    let world = World::new(Names::default());
    let at = |path: &str, arguments: &[(&str, Place)]| {
        operation(Method::Get, &format!("http://example.com{path}"), arguments, Default::default())
    };
    let wrong: [Operation; 4] =
        [at("/{id}", &[]), at("/", &[("id", Place::Path)]), at("/", &[("Host", Place::Header)]), at("/", &[("x", Place::Body)])];
    for operation in wrong {
        assert!(world.try_tool(operation.clone()).is_err(), "{operation:?}");
    }
    assert!(world.try_tool(at("/{id}", &[("id", Place::Path)])).is_ok());
}
