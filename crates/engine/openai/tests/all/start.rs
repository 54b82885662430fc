//! Finding a server and the model it is to speak with.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::{engine, fixture, options, run};
use autoact_config::Secret;
use autoact_model::{Backend, EngineOptions, GenerateRequest};
use autoact_openai::{ClientError, Dialect, Remote, RemoteError, RemoteOptions};
use autoact_testkit::{Kind, List, OpenAiOptions, OpenAiServer, files, ports};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

async fn llama(options: OpenAiOptions) -> OpenAiServer {
    OpenAiServer::of_engine(engine("llama2", EngineOptions::default()), options).await.unwrap()
}

#[tokio::test]
async fn a_served_name_is_found_with_its_base_and_limit() {
    let server = llama(OpenAiOptions::default()).await;
    let remote = Remote::connect(options(&server, "plan")).await.unwrap();
    assert_eq!((remote.info().name.as_str(), remote.info().context_length), ("llama2", 256));
    assert_eq!(remote.speaker().unwrap().name, "plan");
    let shorter = Remote::connect(RemoteOptions { context_length: Some(100), ..options(&server, "llama2") }).await.unwrap();
    assert_eq!((shorter.info().context_length, shorter.speaker()), (100, None));
    assert_eq!(shorter.adapters().len(), 1);
}

#[tokio::test]
async fn a_name_that_is_not_served_is_told_at_once() {
    let server = llama(OpenAiOptions::default()).await;
    let started = Instant::now();
    let error = Remote::connect(options(&server, "reflect")).await.unwrap_err();
    assert!(matches!(&error, RemoteError::UnknownModel { served, .. } if served == &["llama2", "plan"]), "{error}");
    // an address that is no API
    let root = server.url().replace("/v1", "");
    let error = Remote::connect(RemoteOptions { url: root, ..options(&server, "plan") }).await.unwrap_err();
    assert!(matches!(error, RemoteError::Mute { .. }), "{error}");
    assert!(started.elapsed() < Duration::from_secs(30));
}

/// vLLM takes an activated adapter for one that always acts, and says nothing.
#[tokio::test]
async fn an_activated_adapter_is_refused_by_name() {
    let server = llama(OpenAiOptions::default()).await;
    let base = Remote::connect(options(&server, "llama2")).await.unwrap();
    for (name, files) in [("always", "adapter"), ("cued", "activated")] {
        base.load_adapter(name, &fixture("llama2").join(files).display().to_string()).await.unwrap();
    }
    assert_eq!(Remote::connect(options(&server, "always")).await.unwrap().speaker().unwrap().name, "always");
    let error = Remote::connect(options(&server, "cued")).await.unwrap_err();
    assert!(matches!(&error, RemoteError::Activated { model, .. } if model == "cued"), "{error}");
    assert!(error.to_string().contains("`cued`"), "{error}");
}

#[tokio::test]
async fn openai_does_not_say_how_long_a_prompt_may_be() {
    let server = llama(OpenAiOptions { kind: Kind::OpenAi, ..OpenAiOptions::default() }).await;
    let remote = Remote::connect(options(&server, "plan")).await.unwrap();
    assert_eq!((remote.info().context_length, remote.dialect()), (4096, Dialect::Openai));
    let remote = Remote::connect(RemoteOptions { context_length: Some(256), ..options(&server, "plan") }).await.unwrap();
    assert_eq!(remote.info().context_length, 256);
    // nothing says that it is an adapter: it is the model
    assert_eq!((remote.info().name.as_str(), remote.speaker()), ("plan", None));
}

#[tokio::test]
async fn a_server_that_lists_nothing_is_tried_with_one_token() {
    for (kind, list) in [(Kind::Vllm, List::Empty), (Kind::OpenAi, List::Empty), (Kind::OpenAi, List::Broken)] {
        let server = llama(OpenAiOptions { kind, list, ..OpenAiOptions::default() }).await;
        let remote = Remote::connect(options(&server, "plan")).await.unwrap();
        assert_eq!((remote.info().name.as_str(), remote.path()), ("plan", "/completions"));
        assert_eq!(server.asked()[0].body["max_tokens"], 1);
        assert!(run(&remote, GenerateRequest { max_tokens: 2, ..GenerateRequest::new("x") }).await.is_ok());
        let error = Remote::connect(options(&server, "reflect")).await.unwrap_err();
        let unknown = matches!(&error, RemoteError::UnknownModel { served, .. } if served.is_empty());
        assert!(if list == List::Empty { unknown } else { matches!(error, RemoteError::Mute { .. }) }, "{error}");
        assert!(error.to_string().contains("`reflect`"), "{error}");
    }
}

#[tokio::test]
async fn vllm_is_known_by_its_list() {
    let server = llama(OpenAiOptions::default()).await;
    let remote = Remote::connect(options(&server, "plan")).await.unwrap();
    assert_eq!((remote.dialect(), remote.path()), (Dialect::Vllm, "/completions"));
    let guided = RemoteOptions { dialect: Dialect::VllmGuided, ..options(&server, "plan") };
    assert_eq!(Remote::connect(guided).await.unwrap().dialect(), Dialect::VllmGuided);
}

#[tokio::test]
async fn the_key_is_sent_and_never_shown() {
    let server = llama(OpenAiOptions { api_key: Some("s3cret".into()), ..OpenAiOptions::default() }).await;
    for key in ["", "wrong"] {
        let error = Remote::connect(RemoteOptions { api_key: Secret::new(key), ..options(&server, "plan") }).await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains("401") && text.contains("key") && !text.contains("wrong"), "{text}");
    }
    let right = RemoteOptions { api_key: Secret::new("s3cret"), ..options(&server, "plan") };
    assert!(!format!("{right:?}").contains("s3cret"));
    let remote = Remote::connect(right).await.unwrap();
    assert!(!format!("{remote:?}").contains("s3cret"));
    assert!(run(&remote, GenerateRequest { max_tokens: 2, ..GenerateRequest::new("x") }).await.is_ok());
    let bad = RemoteOptions { api_key: Secret::new("a\nb"), ..options(&server, "plan") };
    assert!(matches!(Remote::connect(bad).await, Err(RemoteError::Client(ClientError::Key))));
}

#[tokio::test]
async fn a_server_that_is_not_there_yet_is_waited_for() {
    let port = ports::free_port().unwrap();
    let url = format!("http://127.0.0.1:{port}/v1");
    let never = RemoteOptions { start_timeout: Duration::from_millis(300), ..RemoteOptions::new(&url, "plan") };
    let error = Remote::connect(never).await.unwrap_err();
    assert!(matches!(&error, RemoteError::Unreachable { reason, .. } if reason.contains("refused")), "{error}");
    let waiting = tokio::spawn(Remote::connect(RemoteOptions::new(&url, "plan")));
    let _server = llama(OpenAiOptions { port, ..OpenAiOptions::default() }).await;
    assert!(waiting.await.unwrap().is_ok());
}

#[tokio::test]
async fn addresses_that_are_none_are_refused() {
    for url in ["", "vllm:8000", "ftp://x/v1", "http://", "http://me:pw@x/v1", "http://x/v1?key=1", "http://a b/v1"] {
        let error = Remote::connect(RemoteOptions::new(url, "plan")).await.unwrap_err();
        assert!(matches!(error, RemoteError::Client(ClientError::Url { .. })), "{url}: {error}");
    }
}

#[tokio::test]
async fn https_checks_the_servers_certificate() {
    let server = llama(OpenAiOptions::default()).await;
    let fixtures = files::root().join("crates/engine/openai/tests/tls");
    let certificate = fixtures.join("localhost.pem");
    let port = tls_front(&server, &certificate, &fixtures.join("localhost.key")).await;
    let url = format!("https://localhost:{port}/v1");
    let trusting = RemoteOptions { ca_file: Some(certificate), ..RemoteOptions::new(&url, "plan") };
    let remote = Remote::connect(trusting.clone()).await.unwrap();
    assert!(run(&remote, GenerateRequest { max_tokens: 2, ..GenerateRequest::new("x") }).await.is_ok());
    // not for this name, and at once: another attempt would not help
    let other = RemoteOptions { url: format!("https://127.0.0.1:{port}/v1"), ..trusting.clone() };
    let started = Instant::now();
    let error = Remote::connect(other).await.unwrap_err().to_string();
    assert!(error.contains("certificate") && started.elapsed() < Duration::from_secs(60), "{error}");
    let missing = RemoteOptions { ca_file: Some(fixtures.join("no.pem")), ..trusting.clone() };
    assert!(matches!(Remote::connect(missing).await, Err(RemoteError::Client(ClientError::Certificates { .. }))));
    let empty = RemoteOptions { ca_file: Some(fixtures.join("README.md")), ..trusting };
    assert!(matches!(Remote::connect(empty).await, Err(RemoteError::Client(ClientError::Certificates { .. }))));
}

/// Https in front of a server.
async fn tls_front(server: &OpenAiServer, certificate: &std::path::Path, key: &std::path::Path) -> u16 {
    let chain: Vec<_> = CertificateDer::pem_file_iter(certificate).unwrap().map(Result::unwrap).collect();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(chain, PrivateKeyDer::from_pem_file(key).unwrap()).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let behind = server.addr();
    tokio::spawn(async move {
        while let Ok((front, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut front) = acceptor.accept(front).await else { return };
                let mut back = TcpStream::connect(behind).await.unwrap();
                let _ = copy_bidirectional(&mut front, &mut back).await;
            });
        }
    });
    port
}
