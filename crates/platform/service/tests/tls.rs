//! Mutual TLS of a service over real gRPC: who may call, what is refused and how, and certificates
//! that change while calls go on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::result_large_err)] // tests

use std::path::Path;
use std::time::{Duration, Instant};

use autoact_certificates::{AUTHORITY, OPERATOR, Options, files, init, renew};
use autoact_config::{Common, TlsConfig};
use autoact_service::{Running, Setup, StartError};
use autoact_tls::{Tls, TlsFiles};
use autoact_wire::client::{AddressError, Connector};
use autoact_wire::status;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

fn certificates() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    init(dir.path(), &Options::default()).unwrap();
    dir
}

fn of(dir: &Path, name: &str) -> TlsFiles {
    let ((ca, _), (cert, key)) = (files(dir, AUTHORITY), files(dir, name));
    TlsFiles { ca, cert, key }
}

fn settings(dir: &Path, name: &str) -> TlsConfig {
    let TlsFiles { ca, cert, key } = of(dir, name);
    TlsConfig { ca: Some(ca), cert: Some(cert), key: Some(key), ..TlsConfig::default() }
}

/// Connects with the certificate of `name`.
fn connector(dir: &Path, name: &str) -> Connector {
    Connector::new(Some(Tls::read(of(dir, name), true).unwrap()))
}

async fn start(service: &'static str, tls: TlsConfig) -> Running {
    let common = Common { grace_period: Duration::from_secs(5), tls, ..Common::on_ports(0, 0) };
    let setup = Setup::bind(service, common).await.unwrap();
    setup.finish().await.unwrap().start()
}

async fn call(connector: &Connector, address: &str) -> Result<(), Status> {
    let mut client = HealthClient::new(connector.connect_lazy(address).unwrap());
    client.check(HealthCheckRequest::default()).await.map(drop)
}

fn address(running: &Running) -> String {
    format!("https://{}", running.addr())
}

#[tokio::test]
async fn each_service_is_called_by_those_who_need_it_and_by_nobody_else() {
    let dir = certificates();
    let callers = ["gateway", "plan-agent", "tool-agent", "reflect-agent", "memory", OPERATOR];
    let services = [
        ("gateway", vec![OPERATOR]),
        ("plan-agent", vec!["gateway", OPERATOR]),
        ("tool-agent", vec!["gateway", OPERATOR]),
        ("reflect-agent", vec!["gateway", OPERATOR]),
        ("memory", vec!["gateway", "tool-agent", OPERATOR]),
    ];
    for (service, allowed) in services {
        let running = start(service, settings(dir.path(), service)).await;
        for caller in callers {
            let outcome = call(&connector(dir.path(), caller), &address(&running)).await;
            if allowed.contains(&caller) {
                assert!(outcome.is_ok(), "{caller} to {service}: {outcome:?}");
                continue;
            }
            let refusal = outcome.unwrap_err();
            assert_eq!(refusal.code(), Code::PermissionDenied, "{caller} to {service}");
            assert_eq!(status::reason(&refusal).as_deref(), Some("PEER_NOT_ALLOWED"));
            let metadata = status::metadata(&refusal);
            assert_eq!((metadata["peer"].as_str(), metadata["service"].as_str()), (caller, service));
        }
        running.stop().await.unwrap();
    }
}

#[tokio::test]
async fn a_setting_names_other_callers() {
    let dir = certificates();
    let tls = TlsConfig { peers: Some(vec!["reflect-agent".into()]), ..settings(dir.path(), "memory") };
    let running = start("memory", tls).await;
    call(&connector(dir.path(), "reflect-agent"), &address(&running)).await.unwrap();
    let refusal = call(&connector(dir.path(), OPERATOR), &address(&running)).await.unwrap_err();
    assert_eq!(refusal.code(), Code::PermissionDenied);
}

/// Those who are refused below gRPC get no answer of a service: the transport fails.
#[tokio::test]
async fn without_mutual_trust_no_call_arrives() {
    let (dir, other) = (certificates(), certificates());
    let running = start("plan-agent", settings(dir.path(), "plan-agent")).await;
    let unanswered = |outcome: Result<(), Status>| {
        let status = outcome.expect_err("it was let in");
        assert!(std::error::Error::source(&status).is_some() && status::reason(&status).is_none(), "{status:?}");
    };
    unanswered(call(&connector(other.path(), "gateway"), &address(&running)).await);
    let only_trusts = Connector::new(Some(Tls::authority(files(dir.path(), AUTHORITY).0).unwrap()));
    unanswered(call(&only_trusts, &address(&running)).await);
    unanswered(call(&Connector::default(), &format!("http://{}", running.addr())).await);
    call(&connector(dir.path(), "gateway"), &address(&running)).await.unwrap();
}

#[tokio::test]
async fn a_gateway_may_serve_callers_that_show_no_certificate() {
    let dir = certificates();
    let tls = TlsConfig { client_certificates: false, ..settings(dir.path(), "gateway") };
    let running = start("gateway", tls).await;
    let only_trusts = Connector::new(Some(Tls::authority(files(dir.path(), AUTHORITY).0).unwrap()));
    call(&only_trusts, &address(&running)).await.unwrap();
    // who shows one is looked at all the same
    let refusal = call(&connector(dir.path(), "plan-agent"), &address(&running)).await.unwrap_err();
    assert_eq!(refusal.code(), Code::PermissionDenied);
}

#[tokio::test]
async fn certificates_change_while_calls_go_on() {
    let dir = certificates();
    let running = start("memory", settings(dir.path(), "memory")).await;
    let address = address(&running);
    let gateway = connector(dir.path(), "gateway");
    let mut open = HealthClient::new(gateway.connect_lazy(&address).unwrap());
    open.check(HealthCheckRequest::default()).await.unwrap();

    // everything anew: who believes the new authority alone is let in once the service has read it
    init(dir.path(), &Options { force: true, ..Options::default() }).unwrap();
    let next = connector(dir.path(), "gateway");
    let deadline = Instant::now() + Duration::from_secs(30);
    while call(&next, &address).await.is_err() {
        assert!(Instant::now() < deadline, "the new certificates never came into use");
        open.check(HealthCheckRequest::default()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    open.check(HealthCheckRequest::default()).await.unwrap();
    assert!(call(&gateway, &address).await.is_err(), "the old certificate is of nobody that is believed");
    // the same authority again: calls with new connections never fail
    renew(dir.path(), &Options::default()).unwrap();
    let end = Instant::now() + Duration::from_secs(3);
    while Instant::now() < end {
        call(&next, &address).await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    running.stop().await.unwrap();
}

#[tokio::test]
async fn a_silent_connection_holds_no_call_up() {
    let dir = certificates();
    let running = start("memory", settings(dir.path(), "memory")).await;
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(tokio::net::TcpStream::connect(running.addr()).await.unwrap());
    }
    // one that begins, and goes on slowly
    silent[0].write_all(&[0x16, 0x03, 0x01]).await.unwrap();
    let begun = Instant::now();
    call(&connector(dir.path(), "gateway"), &address(&running)).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_service_that_others_reach_starts_with_tls_or_with_a_word() {
    let open = |tls: TlsConfig| Common { listen: "0.0.0.0:0".parse().unwrap(), tls, ..Common::on_ports(0, 0) };
    let refusal: StartError = Setup::bind("memory", open(TlsConfig::default())).await.err().expect("it started");
    let refusal = refusal.to_string();
    assert!(refusal.contains("tls.cert") && refusal.contains("tls.insecure = true"), "{refusal}");
    let insecure = TlsConfig { insecure: true, ..TlsConfig::default() };
    Setup::bind("memory", open(insecure)).await.unwrap();
    let dir = certificates();
    Setup::bind("memory", open(settings(dir.path(), "memory"))).await.unwrap();
    let gone = TlsConfig { key: Some("no/such.key".into()), ..settings(dir.path(), "memory") };
    assert!(Setup::bind("memory", open(gone)).await.is_err());
}

#[tokio::test]
async fn health_over_http_stays_plain() {
    let dir = certificates();
    let running = start("memory", settings(dir.path(), "memory")).await;
    let mut stream = tokio::net::TcpStream::connect(running.metrics_addr()).await.unwrap();
    stream.write_all(b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
}

#[tokio::test]
async fn plain_text_elsewhere_is_refused_where_the_channel_is_made() {
    let setup = Setup::bind("gateway", Common::on_ports(0, 0)).await.unwrap();
    let refused = setup.connector().connect_lazy("http://plan-agent:7401").unwrap_err();
    assert!(matches!(refused, AddressError::PlainText { .. }));
    let insecure = TlsConfig { insecure: true, ..TlsConfig::default() };
    let setup = Setup::bind("gateway", Common { tls: insecure, ..Common::on_ports(0, 0) }).await.unwrap();
    assert!(setup.connector().connect_lazy("http://plan-agent:7401").is_ok());
}
