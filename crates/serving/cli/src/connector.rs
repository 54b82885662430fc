//! How this command connects: plain text to `http://` addresses, and with a certificate to
//! `https://` ones.
//!
//! The certificate is the one of the flags or variables. Without them it is the operator's, which
//! `autoact up` has made in its state directory; so what is run beside a group needs no flags.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use autoact_certificates::{AUTHORITY, OPERATOR, files};
use autoact_tls::{Tls, TlsError, TlsFiles};
use autoact_wire::client::Connector;

use crate::args::{DEFAULT_STATE_DIR, TlsOptions};

/// The certificates of a local group, in its state directory.
pub(crate) const TLS_DIR: &str = "tls";

/// What the command line says. One command is one process, and every connection is made alike.
static OPTIONS: OnceLock<TlsOptions> = OnceLock::new();

/// Remembers the options of the command line.
pub(crate) fn set_up(options: TlsOptions) {
    // set twice only by tests, which say the same
    let _ = OPTIONS.set(options);
}

/// How an address is called: with its scheme, and by what.
pub(crate) struct Route {
    pub(crate) address: String,
    pub(crate) connector: Connector,
}

/// The way to `address`. Where it names no scheme, the flags decide; without flags, the services of
/// a local group are called with its operator's certificate if `grouped`, and with plain text
/// otherwise: `autoact up` shows plain text at the gateway's door alone.
pub(crate) fn route(address: &str, grouped: bool) -> Result<Route, TlsError> {
    let options = OPTIONS.get().cloned().unwrap_or_default();
    let plain = |address: String| Route { address, connector: Connector::default().plain_anywhere(true) };
    let named = address.contains("://");
    if named && !address.starts_with("https://") {
        return Ok(plain(address.to_owned()));
    }
    let secured = |tls| {
        let connector = Connector::new(Some(tls)).plain_anywhere(true);
        Route { address: connector.with_scheme(address), connector }
    };
    match given(options)? {
        Some(tls) => Ok(secured(tls)),
        None if !named && !grouped => Ok(plain(format!("http://{address}"))),
        None => Ok(match operator(&state_dir())? {
            Some(tls) => secured(tls),
            // an `https://` address is refused with the way to a certificate
            None if named => Route { address: address.to_owned(), connector: Connector::default() },
            None => plain(format!("http://{address}")),
        }),
    }
}

/// With the operator's certificate of the group whose state is in `state_dir`, if there is one.
pub(crate) fn operator(state_dir: &Path) -> Result<Option<Tls>, TlsError> {
    let dir = state_dir.join(TLS_DIR);
    let ((ca, _), (cert, key)) = (files(&dir, AUTHORITY), files(&dir, OPERATOR));
    if !key.exists() {
        return Ok(None);
    }
    Tls::read(TlsFiles { ca, cert, key }, true).map(Some)
}

fn given(options: TlsOptions) -> Result<Option<Tls>, TlsError> {
    let set = |path: Option<PathBuf>| path.filter(|path| !path.as_os_str().is_empty());
    match (set(options.tls_ca), set(options.tls_cert), set(options.tls_key)) {
        (None, None, None) => Ok(None),
        (Some(ca), None, None) => Tls::authority(ca).map(Some),
        (Some(ca), Some(cert), Some(key)) => Tls::read(TlsFiles { ca, cert, key }, true).map(Some),
        _ => Err(TlsError::Settings("`--tls-cert` and `--tls-key` come together, and with `--tls-ca`; fix: give all three".to_owned())),
    }
}

/// Where a local group keeps its files: as `autoact up` finds it.
pub(crate) fn state_dir() -> PathBuf {
    std::env::var_os("AUTOACT_STATE_DIR").filter(|dir| !dir.is_empty()).map_or_else(|| DEFAULT_STATE_DIR.into(), PathBuf::from)
}
