//! What the three files say, as the settings of both sides of a connection.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{CertificateError, ClientConfig, RootCertStore, ServerConfig};

use crate::error::TlsError;

/// What both sides speak inside of TLS: gRPC needs HTTP/2.
const HTTP2: &[u8] = b"h2";
/// The log warns so long before a certificate ends.
const SOON: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The files: whom to believe, and who we are.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) ca: PathBuf,
    /// Our certificate and its key.
    pub(crate) own: Option<(PathBuf, PathBuf)>,
}

impl Files {
    /// All of them.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        let own = self.own.iter().flat_map(|(cert, key)| [cert, key]);
        std::iter::once(&self.ca).chain(own).cloned().collect()
    }

    /// The one that a message names.
    pub(crate) fn shown(&self) -> &Path {
        self.own.as_ref().map_or(&self.ca, |(cert, _)| cert)
    }
}

/// What is made of the files.
#[derive(Debug)]
pub(crate) struct Material {
    /// For callers, if there is a certificate to show them.
    pub(crate) server: Option<Arc<ServerConfig>>,
    pub(crate) client: Arc<ClientConfig>,
    chain: Vec<CertificateDer<'static>>,
    verifier: Arc<dyn ClientCertVerifier>,
}

impl Material {
    /// Reads the files. `demand`: callers must show a certificate.
    pub(crate) fn read(files: &Files, demand: bool) -> Result<Material, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let refused = |reason: String| TlsError::Authority { ca: files.ca.clone(), reason };
        let roots = Arc::new(authorities(&files.ca)?);
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
        let verifier = if demand { builder.build() } else { builder.allow_unauthenticated().build() };
        let verifier = verifier.map_err(|error| refused(error.to_string()))?;
        let client = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(&[&TLS13]);
        let client = client.map_err(|error| refused(error.to_string()))?.with_root_certificates(roots);
        let Some((cert, key)) = &files.own else {
            let client = finish(client.with_no_client_auth());
            return Ok(Material { server: None, client, chain: Vec::new(), verifier });
        };
        let unfit = |source| TlsError::Key { key: key.clone(), cert: cert.clone(), source };
        let chain = certificates("tls.cert", cert)?;
        let client = finish(client.with_client_auth_cert(chain.clone(), private_key(key)?).map_err(unfit)?);

        let server = ServerConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13]);
        let server = server.map_err(|error| refused(error.to_string()))?.with_client_cert_verifier(Arc::clone(&verifier));
        let mut server = server.with_single_cert(chain.clone(), private_key(key)?).map_err(unfit)?;
        server.alpn_protocols = vec![HTTP2.to_vec()];
        // a resumed session would go on with a certificate that has ended meanwhile
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;

        let material = Material { server: Some(Arc::new(server)), client, chain, verifier };
        match material.at(SystemTime::now()) {
            Ok(()) => Ok(material),
            Err(source) if is_about_time(&source) => Err(TlsError::NotValidNow { cert: cert.clone(), source }),
            // peers may trust an authority that we do not
            Err(error) => {
                let (cert, ca) = (cert.display(), files.ca.display());
                tracing::warn!(%cert, %ca, %error, "our own certificate is not one that we would accept; others may refuse it");
                Ok(material)
            }
        }
    }

    /// Whether the certificate ends within days.
    pub(crate) fn ends_soon(&self) -> bool {
        self.at(SystemTime::now() + SOON).is_err_and(|error| is_about_time(&error))
    }

    /// Whether we would accept our own certificate at a time.
    fn at(&self, time: SystemTime) -> Result<(), rustls::Error> {
        let Some((own, between)) = self.chain.split_first() else { return Ok(()) };
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.verifier.verify_client_cert(own, between, UnixTime::since_unix_epoch(since)).map(drop)
    }
}

fn finish(mut client: ClientConfig) -> Arc<ClientConfig> {
    client.alpn_protocols = vec![HTTP2.to_vec()];
    client.resumption = Resumption::disabled();
    Arc::new(client)
}

fn is_about_time(error: &rustls::Error) -> bool {
    matches!(
        error,
        rustls::Error::InvalidCertificate(
            CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. }
        )
    )
}

fn authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("tls.ca", path)? {
        roots.add(certificate).map_err(|error| TlsError::Authority { ca: path.to_owned(), reason: error.to_string() })?;
    }
    Ok(roots)
}

fn certificates(setting: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unreadable = |reason: String| TlsError::File { setting, path: path.to_owned(), reason };
    let read = CertificateDer::pem_file_iter(path).map_err(|error| unreadable(error.to_string()))?;
    let found: Vec<_> = read.collect::<Result<_, _>>().map_err(|error| unreadable(error.to_string()))?;
    if found.is_empty() {
        return Err(TlsError::Empty { setting, path: path.to_owned(), what: "certificate" });
    }
    Ok(found)
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    use rustls::pki_types::pem::Error;
    PrivateKeyDer::from_pem_file(path).map_err(|error| match error {
        Error::NoItemsFound => TlsError::Empty { setting: "tls.key", path: path.to_owned(), what: "private key" },
        error => TlsError::File { setting: "tls.key", path: path.to_owned(), reason: error.to_string() },
    })
}
