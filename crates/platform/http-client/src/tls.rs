//! TLS settings: the trusted certificate authorities, the system's and those of a file.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::error::ClientError;

/// The TLS settings for `url`: the system's certificate authorities and those of a PEM file. Without
/// https, no certificates are read.
///
/// # Errors
/// The file cannot be used, or there is no certificate authority at all.
pub fn config(url: &str, https: bool, ca_file: Option<&Path>) -> Result<ClientConfig, ClientError> {
    let mut roots = RootCertStore::empty();
    if https {
        // an unreadable certificate of the system does not prevent using the others
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if let Some(path) = ca_file {
            add(&mut roots, path)?;
        }
        if roots.is_empty() {
            return Err(ClientError::NoAuthorities { url: url.to_owned() });
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| ClientError::Url { url: url.to_owned(), reason: error.to_string() })?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

fn add(roots: &mut RootCertStore, path: &Path) -> Result<(), ClientError> {
    let refused = |reason: String| ClientError::Certificates { path: path.to_owned(), reason };
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| refused(error.to_string()))?;
    let before = roots.len();
    for certificate in certificates {
        let certificate = certificate.map_err(|error| refused(error.to_string()))?;
        roots.add(certificate).map_err(|error| refused(error.to_string()))?;
    }
    if roots.len() == before { Err(refused("it holds none".to_owned())) } else { Ok(()) }
}
