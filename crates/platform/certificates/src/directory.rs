//! An authority and its certificates in a directory.

use std::fs::{DirBuilder, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::authority::{Authority, Issued, Lifetime, Subject};
use crate::error::CertificateError;
use crate::inspect::{Certificate, inspect};
use crate::{OPERATOR, SERVICES};

/// The authority's files: `ca.pem` and `ca.key`.
pub const AUTHORITY: &str = "ca";
/// By what names a service is called on its own machine.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
/// What a name of all services holds in place of a service's name.
const PLACE: &str = "{service}";
/// An authority outlives its certificates: replacing it means replacing everything at once.
const AUTHORITY_DAYS: u32 = 3650;
/// The default of certificates.
const DAYS: u32 = 365;
/// [`ensure`] renews what ends within this time.
const RENEW_WITHIN: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// How certificates are made.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long they are valid.
    pub days: u32,
    /// Further DNS names and IP addresses of every service; `{service}` stands for its name.
    pub names: Vec<String>,
    /// Replace what is there.
    pub force: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { days: DAYS, names: Vec::new(), force: false }
    }
}

/// The certificate and the key of `name` in `dir`.
pub fn files(dir: &Path, name: &str) -> (PathBuf, PathBuf) {
    (dir.join(format!("{name}.pem")), dir.join(format!("{name}.key")))
}

/// Makes an authority and all certificates. Returns the files.
///
/// # Errors
/// The directory has an authority and `force` is not set; a name cannot be; it cannot be written.
pub fn init(dir: &Path, options: &Options) -> Result<Vec<PathBuf>, CertificateError> {
    let lifetime = lifetime(options)?;
    if !options.force
        && [AUTHORITY, OPERATOR].iter().chain(&SERVICES).any(|name| files(dir, name).0.exists() || files(dir, name).1.exists())
    {
        return Err(CertificateError::Exists { dir: dir.to_owned() });
    }
    let (authority, own) = Authority::new(Lifetime::days(AUTHORITY_DAYS))?;
    // all of them before the first is written
    let mut made = vec![(AUTHORITY, own)];
    for subject in SERVICES.iter().map(|name| service(name, &options.names)).chain([operator()]) {
        let name = SERVICES.iter().copied().find(|name| *name == subject.name).unwrap_or(OPERATOR);
        made.push((name, authority.issue(&subject, lifetime)?));
    }
    private_dir(dir)?;
    let mut written = Vec::new();
    for (name, issued) in made {
        written.extend(write(dir, name, &issued)?);
    }
    Ok(written)
}

/// Makes new certificates and keys with the authority that is there: with the names that the old
/// ones have, and those of the options. Returns the files.
///
/// # Errors
/// There is no authority, it is none of ours, it ends earlier than they would, or files cannot be
/// written.
pub fn renew(dir: &Path, options: &Options) -> Result<Vec<PathBuf>, CertificateError> {
    renew_where(dir, options, |_| true)
}

/// What `autoact up` needs: makes what is missing, and renews what ends within 30 days. Returns the
/// files that were written.
///
/// # Errors
/// As [`init`] and [`renew`].
pub fn ensure(dir: &Path) -> Result<Vec<PathBuf>, CertificateError> {
    let soon = SystemTime::now() + RENEW_WITHIN;
    let authority = read(&files(dir, AUTHORITY).0);
    let usable = files(dir, AUTHORITY).1.exists() && authority.is_ok_and(|authority| authority.to > Lifetime::days(DAYS).to);
    if !usable {
        return init(dir, &Options { force: true, ..Options::default() });
    }
    let wanted = |name: &str| {
        let (certificate, key) = files(dir, name);
        !key.exists() || read(&certificate).map_or(true, |certificate| certificate.to < soon)
    };
    renew_where(dir, &Options::default(), wanted)
}

fn renew_where(dir: &Path, options: &Options, wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, CertificateError> {
    let lifetime = lifetime(options)?;
    let (certificate, key) = files(dir, AUTHORITY);
    for path in [&certificate, &key] {
        if !path.exists() {
            return Err(CertificateError::NoAuthority { path: path.clone() });
        }
    }
    let ends = read(&certificate)?.to;
    if ends < lifetime.to {
        let left = ends.duration_since(SystemTime::now()).unwrap_or_default();
        return Err(CertificateError::AuthorityEnds { dir: dir.to_owned(), days: left.as_secs() / (24 * 60 * 60) });
    }
    let unreadable = |reason: String| CertificateError::Unreadable { path: key.clone(), expected: "a key", reason };
    let loaded = PrivateKeyDer::from_pem_file(&key).map_err(|error| unreadable(error.to_string()))?;
    let authority = Authority::of_key(&loaded).map_err(|error| unreadable(error.to_string()))?;
    let mut made = Vec::new();
    for name in SERVICES.into_iter().chain([OPERATOR]).filter(|name| wanted(name)) {
        let mut subject = if name == OPERATOR { operator() } else { service(name, &options.names) };
        if let Ok(old) = read(&files(dir, name).0) {
            subject.names.extend(old.names.into_iter().filter(|old| old != name));
        }
        let issued = authority.issue(&subject, lifetime)?;
        if !signed_by(&issued, &certificate)? {
            return Err(CertificateError::NotOurs { dir: dir.to_owned() });
        }
        made.push((name, issued));
    }
    let mut written = Vec::new();
    for (name, issued) in made {
        written.extend(write(dir, name, &issued)?);
    }
    Ok(written)
}

/// What the certificates of a directory, or those of a file, say.
///
/// # Errors
/// There is none, or a file is none.
pub fn show(path: &Path) -> Result<Vec<(PathBuf, Certificate)>, CertificateError> {
    let mut paths = Vec::new();
    if path.is_dir() {
        let entries = std::fs::read_dir(path).map_err(CertificateError::io("read", path))?;
        for entry in entries {
            let entry = entry.map_err(CertificateError::io("read", path))?.path();
            if entry.extension().is_some_and(|extension| extension == "pem" || extension == "crt") {
                paths.push(entry);
            }
        }
        paths.sort();
    } else {
        paths.push(path.to_owned());
    }
    let mut found = Vec::new();
    for path in paths {
        for certificate in all(&path)? {
            found.push((path.clone(), certificate));
        }
    }
    if found.is_empty() {
        let reason = "it holds none".to_owned();
        return Err(CertificateError::Unreadable { path: path.to_owned(), expected: "a certificate", reason });
    }
    Ok(found)
}

fn service(name: &str, further: &[String]) -> Subject {
    let further = further.iter().map(|further| further.replace(PLACE, name));
    Subject { name: name.to_owned(), names: LOCAL.map(str::to_owned).into_iter().chain(further).collect(), serves: true }
}

fn operator() -> Subject {
    Subject { name: OPERATOR.to_owned(), names: Vec::new(), serves: false }
}

fn lifetime(options: &Options) -> Result<Lifetime, CertificateError> {
    let most = AUTHORITY_DAYS - 1;
    if !(1..=most).contains(&options.days) {
        return Err(CertificateError::Days { days: options.days, most });
    }
    Ok(Lifetime::days(options.days))
}

fn read(path: &Path) -> Result<Certificate, CertificateError> {
    let empty = || CertificateError::Unreadable { path: path.to_owned(), expected: "a certificate", reason: "it holds none".to_owned() };
    all(path)?.into_iter().next().ok_or_else(empty)
}

fn all(path: &Path) -> Result<Vec<Certificate>, CertificateError> {
    let unreadable = |reason: String| CertificateError::Unreadable { path: path.to_owned(), expected: "a certificate", reason };
    let read = CertificateDer::pem_file_iter(path).map_err(|error| unreadable(error.to_string()))?;
    read.map(|der| inspect(&der.map_err(|error| unreadable(error.to_string()))?).map_err(unreadable)).collect()
}

/// Whether a certificate is one that those who trust `authority` accept.
fn signed_by(issued: &Issued, authority: &Path) -> Result<bool, CertificateError> {
    use rustls::RootCertStore;
    use rustls::pki_types::UnixTime;
    use rustls::server::WebPkiClientVerifier;

    let make = |error: String| CertificateError::Make(error);
    let mut roots = RootCertStore::empty();
    for der in CertificateDer::pem_file_iter(authority).map_err(|error| make(error.to_string()))?.flatten() {
        roots.add(der).map_err(|error| make(error.to_string()))?;
    }
    let provider = rustls::crypto::ring::default_provider().into();
    let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider).build().map_err(|error| make(error.to_string()))?;
    let der = CertificateDer::from_pem_slice(issued.certificate.as_bytes()).map_err(|error| make(error.to_string()))?;
    Ok(verifier.verify_client_cert(&der, &[], UnixTime::now()).is_ok())
}

fn private_dir(dir: &Path) -> Result<(), CertificateError> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(CertificateError::io("make", dir))
}

/// Writes both files beside their places and moves them there: whoever reads sees an old one or a
/// new one. The key is nobody else's.
fn write(dir: &Path, name: &str, issued: &Issued) -> Result<[PathBuf; 2], CertificateError> {
    let (certificate, key) = files(dir, name);
    for (path, text, mode) in [(&key, &issued.key, 0o600), (&certificate, &issued.certificate, 0o644)] {
        let failed = CertificateError::io("write", path);
        let written = tempfile::NamedTempFile::new_in(dir).and_then(|mut file| {
            file.as_file().set_permissions(Permissions::from_mode(mode))?;
            file.write_all(text.as_bytes())?;
            file.as_file().sync_all()?;
            file.persist(path).map_err(|error| error.error)
        });
        written.map_err(failed)?;
    }
    Ok([certificate, key])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_directory_has_what_every_service_needs() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("tls");
        let options = Options { days: 30, names: vec!["autoact-{service}.ns.svc".into(), "10.0.0.1".into()], force: false };
        let written = init(&dir, &options).unwrap();
        assert_eq!(written.len(), 2 * (SERVICES.len() + 2));
        assert_eq!(mode(&dir), 0o700);
        for name in SERVICES {
            let (certificate, key) = files(&dir, name);
            assert_eq!((mode(&certificate), mode(&key)), (0o644, 0o600));
            let certificate = read(&certificate).unwrap();
            let further = format!("autoact-{name}.ns.svc");
            assert_eq!(certificate.names, [name, "localhost", "127.0.0.1", "::1", &further, "10.0.0.1"]);
            assert_eq!((certificate.subject.as_str(), certificate.authority), (name, false));
            let left = certificate.to.duration_since(SystemTime::now()).unwrap();
            assert!(left > Duration::from_secs(29 * 24 * 60 * 60) && left <= Duration::from_secs(30 * 24 * 60 * 60));
            assert!(certificate.from < SystemTime::now());
        }
        assert_eq!(read(&files(&dir, OPERATOR).0).unwrap().names, [OPERATOR]);
        assert!(read(&files(&dir, AUTHORITY).0).unwrap().authority);
        assert_eq!(show(&dir).unwrap().len(), SERVICES.len() + 2);
        assert!(matches!(init(&dir, &options), Err(CertificateError::Exists { .. })));
    }

    #[test]
    fn renewing_keeps_the_authority_and_the_names() {
        let dir = tempfile::tempdir().unwrap();
        init(dir.path(), &Options { days: 5, names: vec!["host.example.org".into()], force: false }).unwrap();
        let text = |name: &str| std::fs::read_to_string(files(dir.path(), name).0).unwrap();
        let (authority, memory) = (text(AUTHORITY), text("memory"));
        let written = renew(dir.path(), &Options { days: 40, ..Options::default() }).unwrap();
        assert_eq!(written.len(), 2 * (SERVICES.len() + 1));
        assert_eq!(text(AUTHORITY), authority);
        assert_ne!(text("memory"), memory);
        let renewed = read(&files(dir.path(), "memory").0).unwrap();
        assert!(renewed.names.contains(&"host.example.org".to_owned()));
        assert!(renewed.to > SystemTime::now() + Duration::from_secs(39 * 24 * 60 * 60));
    }

    #[test]
    fn what_ends_soon_or_is_missing_is_made_anew() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(ensure(dir.path()).unwrap().len(), 2 * (SERVICES.len() + 2));
        assert_eq!(ensure(dir.path()).unwrap(), Vec::<PathBuf>::new());
        std::fs::remove_file(files(dir.path(), "memory").1).unwrap();
        assert_eq!(ensure(dir.path()).unwrap().len(), 2);
        renew(dir.path(), &Options { days: 3, ..Options::default() }).unwrap();
        assert_eq!(ensure(dir.path()).unwrap().len(), 2 * (SERVICES.len() + 1));
        std::fs::write(files(dir.path(), AUTHORITY).0, "no certificate").unwrap();
        assert_eq!(ensure(dir.path()).unwrap().len(), 2 * (SERVICES.len() + 2));
    }

    #[test]
    fn what_cannot_be_is_refused_before_anything_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("tls");
        let refusal = |options: Options| init(&at, &options).unwrap_err();
        assert!(matches!(refusal(Options { days: 0, ..Options::default() }), CertificateError::Days { days: 0, .. }));
        assert!(matches!(refusal(Options { names: vec!["a b".into()], ..Options::default() }), CertificateError::Name { .. }));
        assert!(matches!(renew(&at, &Options::default()), Err(CertificateError::NoAuthority { .. })));
        assert!(!at.exists());
        init(&at, &Options::default()).unwrap();
        let other = dir.path().join("other");
        init(&other, &Options::default()).unwrap();
        std::fs::copy(files(&other, AUTHORITY).1, files(&at, AUTHORITY).1).unwrap();
        assert!(matches!(renew(&at, &Options::default()), Err(CertificateError::NotOurs { .. })));
        std::fs::write(files(&at, AUTHORITY).1, "nothing").unwrap();
        assert!(matches!(renew(&at, &Options::default()), Err(CertificateError::Unreadable { .. })));
        assert!(matches!(
            renew(&other, &Options { days: 3649, ..Options::default() }),
            Ok(_) | Err(CertificateError::AuthorityEnds { .. })
        ));
        assert!(matches!(show(&dir.path().join("nowhere.pem")), Err(CertificateError::Unreadable { .. })));
    }
}
