//! Handshakes over real sockets: who is let in, who is not and by which alert, and that nobody
//! keeps others waiting.
#![allow(clippy::unwrap_used, clippy::expect_used)] // tests

use std::error::Error as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use autoact_certificates::{Authority, Issued, Lifetime, Subject};
use autoact_config::TlsFiles;
use autoact_tls::{Connect, ConnectFailure, Connection, Doors, Handshakes, Looked, SeatBounds, Seats, Tls, TlsError};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{AlertDescription, CertificateError, ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_stream::StreamExt as _;
use tonic::transport::server::Connected as _;
use tower::ServiceExt as _;

const DEADLINE: Duration = Duration::from_secs(20);

/// An authority, and a directory with its certificates.
struct Group {
    authority: Authority,
    own: Issued,
    dir: TempDir,
}

impl Group {
    fn new() -> Group {
        let (authority, own) = Authority::new(Lifetime::days(2)).unwrap();
        Group { authority, own, dir: tempfile::tempdir().unwrap() }
    }

    /// The files of `name`, valid for these days.
    fn files(&self, name: &str, lifetime: Lifetime) -> TlsFiles {
        let at = |what: &str| self.dir.path().join(format!("{name}.{what}"));
        let files = TlsFiles { ca: at("ca"), cert: at("pem"), key: at("key") };
        write(&files, &self.own, &self.issue(name, lifetime));
        files
    }

    fn issue(&self, name: &str, lifetime: Lifetime) -> Issued {
        let subject = Subject { name: name.into(), names: vec!["localhost".into(), "127.0.0.1".into()], serves: true };
        self.authority.issue(&subject, lifetime).unwrap()
    }

    fn tls(&self, name: &str) -> Tls {
        Tls::read(self.files(name, Lifetime::days(1)), true).unwrap()
    }
}

fn write(files: &TlsFiles, authority: &Issued, issued: &Issued) {
    std::fs::write(&files.ca, &authority.certificate).unwrap();
    std::fs::write(&files.cert, &issued.certificate).unwrap();
    std::fs::write(&files.key, &issued.key).unwrap();
}

/// What ended a second ago.
fn expired() -> Lifetime {
    let now = SystemTime::now();
    Lifetime { from: now - Duration::from_secs(3600), to: now - Duration::from_secs(1) }
}

/// A server that says who it talks to, and then everything back.
async fn serve(tls: Tls, bounds: Handshakes) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let places = SeatBounds { most: 4096, per_address: None, first_call: DEADLINE * 10 };
    let mut doors = Doors::tls(listener, tls, bounds, Seats::new("test", places));
    tokio::spawn(async move {
        while let Some(Ok(mut io)) = doors.next().await {
            tokio::spawn(async move {
                let Connection { peer, tcp, .. } = io.connect_info();
                assert!(tcp.remote_addr().is_some());
                let names = peer.map(|peer| peer.names().join(",")).unwrap_or_default();
                io.write_all(format!("{names}\n").as_bytes()).await.unwrap();
                let (mut reads, mut writes) = tokio::io::split(io);
                let _ = tokio::io::copy(&mut reads, &mut writes).await;
            });
        }
    });
    address
}

/// A client that shows `own`, if anything, and believes `believed`.
fn client(believed: &Issued, own: Option<&Issued>) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(believed.certificate.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots);
    let config = match own {
        Some(own) => {
            let certificate = CertificateDer::from_pem_slice(own.certificate.as_bytes()).unwrap();
            config.with_client_auth_cert(vec![certificate], PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap()).unwrap()
        }
        None => config.with_no_client_auth(),
    };
    TlsConnector::from(Arc::new(config))
}

/// Connects and reads the line that says who we are.
async fn greeted(connector: &TlsConnector, address: SocketAddr) -> std::io::Result<(TlsStream<TcpStream>, String)> {
    let stream = TcpStream::connect(address).await?;
    let mut stream = connector.connect(ServerName::try_from("localhost").unwrap(), stream).await?;
    let mut line = Vec::new();
    loop {
        match stream.read_u8().await? {
            b'\n' => return Ok((stream, String::from_utf8(line).unwrap())),
            byte => line.push(byte),
        }
    }
}

/// What TLS says about a connection that did not come to be.
fn cause(error: &std::io::Error) -> &rustls::Error {
    error.get_ref().and_then(|error| error.downcast_ref()).unwrap_or_else(|| panic!("no error of TLS: {error:?}"))
}

async fn alert(connector: &TlsConnector, address: SocketAddr) -> AlertDescription {
    let refused = greeted(connector, address).await.expect_err("it was let in");
    match cause(&refused) {
        rustls::Error::AlertReceived(alert) => *alert,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_certificate_of_the_authority_is_let_in_and_known_by_its_names() {
    let group = Group::new();
    let address = serve(group.tls("memory"), Handshakes::default()).await;
    let own = group.issue("gateway", Lifetime::days(1));
    let (_, names) = greeted(&client(&group.own, Some(&own)), address).await.unwrap();
    assert_eq!(names, "gateway,localhost");
}

#[tokio::test]
async fn without_the_right_certificate_nobody_is_let_in() {
    let (group, stranger) = (Group::new(), Group::new());
    let address = serve(group.tls("memory"), Handshakes::default()).await;
    assert_eq!(alert(&client(&group.own, None), address).await, AlertDescription::CertificateRequired);
    let foreign = stranger.issue("gateway", Lifetime::days(1));
    assert_eq!(alert(&client(&group.own, Some(&foreign)), address).await, AlertDescription::UnknownCA);
    let ended = group.issue("gateway", expired());
    assert_eq!(alert(&client(&group.own, Some(&ended)), address).await, AlertDescription::CertificateExpired);
    // and what we would connect to is looked at as closely
    let own = group.issue("gateway", Lifetime::days(1));
    let refused = greeted(&client(&stranger.own, Some(&own)), address).await.err().unwrap();
    assert!(matches!(cause(&refused), rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)), "{refused:?}");
}

#[tokio::test]
async fn a_gateway_may_let_in_callers_without_a_certificate_but_not_with_a_wrong_one() {
    let (group, stranger) = (Group::new(), Group::new());
    let tls = Tls::read(group.files("gateway", Lifetime::days(1)), false).unwrap();
    let address = serve(tls, Handshakes::default()).await;
    assert_eq!(greeted(&client(&group.own, None), address).await.unwrap().1, "");
    let foreign = stranger.issue("autoact", Lifetime::days(1));
    assert_eq!(alert(&client(&group.own, Some(&foreign)), address).await, AlertDescription::UnknownCA);
}

#[tokio::test]
async fn plain_text_is_answered_with_an_alert_and_the_end() {
    let group = Group::new();
    let address = serve(group.tls("memory"), Handshakes::default()).await;
    for greeting in [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"[..], b"GET / HTTP/1.1\r\n\r\n"] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(greeting).await.unwrap();
        let mut reply = Vec::new();
        let read = tokio::time::timeout(DEADLINE, stream.read_to_end(&mut reply)).await.expect("it stayed open");
        // an alert of TLS, or a reset that overtook it
        assert!(read.is_err() || reply.first() == Some(&0x15), "{reply:?}");
    }
}

#[tokio::test]
async fn silence_is_dropped_and_keeps_nobody_waiting() {
    let group = Group::new();
    let bounds = Handshakes { limit: Duration::from_millis(300), most: 64 };
    let address = serve(group.tls("memory"), bounds).await;
    let mut silent = Vec::new();
    for _ in 0..32 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    let own = group.issue("gateway", Lifetime::days(1));
    greeted(&client(&group.own, Some(&own)), address).await.unwrap();
    for mut stream in silent {
        let ended = tokio::time::timeout(DEADLINE, stream.read(&mut [0; 8])).await.expect("it stayed open");
        assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
    }
}

#[tokio::test]
async fn when_all_places_are_taken_the_oldest_handshake_goes() {
    let group = Group::new();
    let bounds = Handshakes { limit: Duration::from_secs(3600), most: 4 };
    let address = serve(group.tls("memory"), bounds).await;
    let mut silent = Vec::new();
    for _ in 0..12 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    let own = group.issue("gateway", Lifetime::days(1));
    greeted(&client(&group.own, Some(&own)), address).await.unwrap();
    let mut oldest = silent.swap_remove(0);
    let ended = tokio::time::timeout(DEADLINE, oldest.read(&mut [0; 8])).await.expect("it stayed open");
    assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
}

#[tokio::test]
async fn new_files_count_for_new_connections_and_broken_ones_for_none() {
    let (group, next) = (Group::new(), Group::new());
    let files = group.files("memory", Lifetime::days(1));
    let tls = Tls::read(files.clone(), true).unwrap();
    let address = serve(tls.clone(), Handshakes::default()).await;
    let old = client(&group.own, Some(&group.issue("gateway", Lifetime::days(1))));
    let new = client(&next.own, Some(&next.issue("gateway", Lifetime::days(1))));
    let (mut open, _) = greeted(&old, address).await.unwrap();
    assert!(matches!(tls.look(), Looked::Same));

    std::fs::write(&files.cert, "-----BEGIN CERTIFICATE-----\nAAAA").unwrap();
    assert!(matches!(tls.look(), Looked::Refused(TlsError::File { .. } | TlsError::Empty { .. })));
    assert!(matches!(tls.look(), Looked::Same), "told once");
    greeted(&old, address).await.unwrap();
    // half of a change: the certificate is the new one, and the key is not
    write(&files, &group.own, &next.issue("memory", Lifetime::days(1)));
    std::fs::write(&files.key, &group.issue("memory", Lifetime::days(1)).key).unwrap();
    assert!(matches!(tls.look(), Looked::Refused(TlsError::Key { .. })));
    write(&files, &group.own, &group.issue("memory", expired()));
    assert!(matches!(tls.look(), Looked::Refused(TlsError::NotValidNow { .. })));
    greeted(&old, address).await.unwrap();

    write(&files, &next.own, &next.issue("memory", Lifetime::days(1)));
    assert!(matches!(tls.look(), Looked::Reloaded));
    greeted(&new, address).await.unwrap();
    assert!(greeted(&old, address).await.is_err());
    // what was open goes on
    open.write_all(b"x").await.unwrap();
    assert_eq!(open.read_u8().await.unwrap(), b'x');
}

#[tokio::test]
async fn a_connection_wants_a_certificate_for_the_host_it_asked_for() {
    let (group, stranger) = (Group::new(), Group::new());
    let memory = serve(group.tls("memory"), Handshakes::default()).await;
    let connect = |tls: Tls, host: &str| {
        let uri: tonic::transport::Uri = format!("https://{host}:{}", memory.port()).parse().unwrap();
        Connect::new(tls).to(memory).oneshot(uri)
    };
    for host in ["127.0.0.1", "localhost", "memory"] {
        connect(group.tls("gateway"), host).await.unwrap();
    }
    let kind = |failure: ConnectFailure| match failure {
        ConnectFailure::Handshake(error) => cause(&error).clone(),
        other => panic!("{other} {:?}", other.source()),
    };
    let wrong = kind(connect(group.tls("gateway"), "plan-agent").await.err().unwrap());
    assert!(matches!(wrong, rustls::Error::InvalidCertificate(CertificateError::NotValidForNameContext { .. })), "{wrong:?}");
    let foreign = kind(connect(stranger.tls("gateway"), "memory").await.err().unwrap());
    assert!(matches!(foreign, rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)), "{foreign:?}");
    let gone: tonic::transport::Uri = "https://127.0.0.1:1".parse().unwrap();
    assert!(matches!(Connect::new(group.tls("gateway")).oneshot(gone).await, Err(ConnectFailure::Tcp(_))));
}

#[test]
fn files_that_cannot_be_used_are_refused_by_kind() {
    let group = Group::new();
    let files = group.files("memory", Lifetime::days(1));
    let refusal = |files: TlsFiles| Tls::read(files, true).unwrap_err();
    let with = |change: fn(&mut TlsFiles, &Path)| {
        let mut files = files.clone();
        change(&mut files, group.dir.path());
        refusal(files)
    };
    assert!(matches!(with(|files, _| files.ca = "no/such".into()), TlsError::File { setting: "tls.ca", .. }));
    assert!(matches!(with(|files, _| files.key = files.cert.clone()), TlsError::Empty { setting: "tls.key", .. }));
    assert!(matches!(with(|files, _| files.cert = files.key.clone()), TlsError::Empty { setting: "tls.cert", .. }));
    group.files("other", Lifetime::days(1));
    assert!(matches!(with(|files, dir| files.key = dir.join("other.key")), TlsError::Key { .. }));
    assert!(matches!(refusal(group.files("ended", expired())), TlsError::NotValidNow { .. }));
}
