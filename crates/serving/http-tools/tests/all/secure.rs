//! A server with TLS, whose certificate is that of the tests of `autoact-openai`.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;

/// For `localhost`, signed by itself.
pub(crate) const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../engine/openai/tests/tls/localhost.pem");
const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../engine/openai/tests/tls/localhost.key");

/// Starts it on a thread of its own, and returns its port.
pub(crate) fn start(answer: impl Fn() -> String + Send + 'static) -> u16 {
    let certificates = CertificateDer::pem_file_iter(CERTIFICATE).unwrap().map(Result::unwrap).collect();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificates, PrivateKeyDer::from_pem_file(KEY).unwrap())
        .unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    listener.set_nonblocking(true).unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let acceptor = TlsAcceptor::from(Arc::new(config));
            while let Ok((stream, _)) = listener.accept().await {
                // a client that does not trust us goes away
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(answer().as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        });
    });
    port
}
