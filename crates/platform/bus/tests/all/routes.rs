//! The servers of a cluster show each other certificates: what `server_config` says of it against
//! real nats-servers.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use autoact_bus::{Bus, BusConfig, NatsConfig, Routes, ServerConfig, key_file, make_keys, public_keys, routes_password, server_config};
use autoact_certificates::{AUTHORITY, NATS, Options, files};
use autoact_testkit::{NatsError, NatsServer, poll_until, ports, within};
use autoact_trajectory::{Event, EventBody, Submitted, TaskKey};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Servers elect a leader in seconds, on a machine that builds on every core too.
const LIMIT: Duration = Duration::from_secs(60);

fn authority() -> TempDir {
    let dir = TempDir::with_prefix("autoact-nats-tls-").unwrap();
    autoact_certificates::init(dir.path(), &Options::default()).unwrap();
    dir
}

fn certificate(dir: &Path) -> (PathBuf, PathBuf, PathBuf) {
    let (cert, key) = files(dir, NATS);
    (files(dir, AUTHORITY).0, cert, key)
}

/// A server of the cluster whose routes listen on `port`.
async fn serve(keys: &Path, hosts: &[String], port: u16, tls: Option<(PathBuf, PathBuf, PathBuf)>) -> Result<NatsServer, NatsError> {
    let routes = Routes { hosts: hosts.to_vec(), password: routes_password(keys).unwrap() };
    let text = server_config(&public_keys(keys).unwrap(), &ServerConfig { routes: Some(routes), tls, ..ServerConfig::default() });
    // all of them are on this machine
    let own = text.replace("listen: \"0.0.0.0:6222\"", &format!("listen: \"127.0.0.1:{port}\""));
    assert_ne!(own, text);
    NatsServer::start_with(format!("server_name: \"n{port}\"\nhttp: \"127.0.0.1:-1\"\n{own}")).await
}

/// The names of the servers that a server has routes to.
async fn neighbours(server: &NatsServer) -> BTreeSet<String> {
    let monitoring = server.monitoring().unwrap();
    let host = monitoring.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(host).await.unwrap();
    stream.write_all(format!("GET /routez HTTP/1.0\r\nHost: {host}\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let answer: serde_json::Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let routes = answer["routes"].as_array().cloned().unwrap_or_default();
    routes.iter().map(|route| route["remote_name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn servers_with_certificates_form_a_cluster_and_no_other_is_let_in() {
    let (keys, ours, theirs) = (TempDir::with_prefix("autoact-nats-keys-").unwrap(), authority(), authority());
    make_keys(keys.path(), false).unwrap();
    let ports = ports::distinct(5).unwrap();
    let (members, strangers) = ports.split_at(3);
    let hosts: Vec<String> = members.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let started = members.iter().map(|port| serve(keys.path(), &hosts, *port, Some(certificate(ours.path()))));
    let servers = futures::future::try_join_all(started).await.unwrap();

    // the cluster stores what a gateway writes, three times
    let (cert, key) = files(ours.path(), "gateway");
    let nats = NatsConfig {
        nkey_file: Some(key_file(keys.path(), "gateway")),
        ca: Some(files(ours.path(), AUTHORITY).0),
        cert: Some(cert),
        key: Some(key),
        ..NatsConfig::at(servers.iter().map(NatsServer::url).collect::<Vec<_>>().join(","))
    };
    let config = BusConfig { replicas: 3, max_bytes: 64 << 20, patience: LIMIT, connect_limit: LIMIT, ..BusConfig::over(nats) };
    let bus = Bus::connect(config).await.unwrap();
    let task = TaskKey::new("acme".parse().unwrap(), "one".parse().unwrap());
    let submitted = EventBody::Submitted(Submitted { question: "q".into(), ..Submitted::default() });
    bus.append(&Event::new(&task, 1, SystemTime::now(), "g", submitted), 0).await.unwrap();

    // the password alone opens nothing, and neither does another authority's certificate
    let names = |ports: &[u16]| ports.iter().map(|port| format!("n{port}")).collect::<BTreeSet<_>>();
    for (port, tls) in strangers.iter().zip([None, Some(certificate(theirs.path()))]) {
        let refusals = || servers.iter().map(|server| server.log().matches("TLS route handshake error").count()).sum::<usize>();
        let before = refusals();
        let stranger = serve(keys.path(), &hosts, *port, tls).await.unwrap();
        let refused = async || (refusals() > before).then_some(());
        poll_until(LIMIT, "a server that turned the stranger away", refused).await.unwrap();
        assert_eq!(neighbours(&stranger).await, BTreeSet::new());
        for (server, own) in servers.iter().zip(members) {
            let mut others = names(members);
            others.remove(&format!("n{own}"));
            assert_eq!(within(LIMIT, "routes", neighbours(server)).await.unwrap(), others);
        }
    }
}
