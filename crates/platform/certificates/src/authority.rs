//! An authority in memory, and what it issues.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType};
use rustls::pki_types::PrivateKeyDer;
use time::OffsetDateTime;

use crate::error::CertificateError;

/// What the subject of an authority begins with; the beginning of its key's identifier follows. So
/// two authorities are told apart: "unknown issuer" instead of "bad signature".
const NAME: &str = "autoact development authority";
/// A certificate is valid from so long ago on: clocks differ.
const BACKDATED: Duration = Duration::from_secs(60 * 60);
/// The width of a line of PEM (RFC 7468).
const PEM_WIDTH: usize = 64;

/// From when to when a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// The first moment.
    pub from: SystemTime,
    /// The last moment.
    pub to: SystemTime,
}

impl Lifetime {
    /// From now (an hour ago: clocks differ) for so many days.
    pub fn days(days: u32) -> Lifetime {
        let now = SystemTime::now();
        Lifetime { from: now - BACKDATED, to: now + Duration::from_secs(u64::from(days) * 24 * 60 * 60) }
    }
}

/// Whom a certificate is for.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The name by which others know it: the first of its DNS names.
    pub name: String,
    /// Further DNS names and IP addresses, which clients may call it by.
    pub names: Vec<String>,
    /// Whether it may be called, and not only call.
    pub serves: bool,
}

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub struct Issued {
    /// The certificate.
    pub certificate: String,
    /// Its key: a secret.
    pub key: String,
}

/// An authority with its key.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// A new one, and its certificate and key.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn new(lifetime: Lifetime) -> Result<(Authority, Issued), CertificateError> {
        let key = KeyPair::generate().map_err(CertificateError::make)?;
        let params = params(&key, lifetime)?;
        let certificate = params.self_signed(&key).map_err(CertificateError::make)?;
        let issued = Issued { certificate: pem("CERTIFICATE", certificate.der()), key: pem("PRIVATE KEY", &key.serialize_der()) };
        Ok((Authority { issuer: Issuer::new(params, key) }, issued))
    }

    /// The authority that has this key.
    ///
    /// # Errors
    /// It is no key that an authority of ours has.
    pub fn of_key(key: &PrivateKeyDer<'_>) -> Result<Authority, CertificateError> {
        let key = KeyPair::try_from(key).map_err(CertificateError::make)?;
        Ok(Authority { issuer: Issuer::new(params(&key, Lifetime::days(1))?, key) })
    }

    /// A certificate with a new key.
    ///
    /// # Errors
    /// A name is none that a certificate can have.
    pub fn issue(&self, subject: &Subject, lifetime: Lifetime) -> Result<Issued, CertificateError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, subject.name.as_str());
        for name in std::iter::once(&subject.name).chain(&subject.names) {
            let alternative = alternative(name)?;
            if !params.subject_alt_names.contains(&alternative) {
                params.subject_alt_names.push(alternative);
            }
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        if subject.serves {
            params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        }
        params.use_authority_key_identifier_extension = true;
        (params.not_before, params.not_after) = (moment(lifetime.from)?, moment(lifetime.to)?);
        let key = KeyPair::generate().map_err(CertificateError::make)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(CertificateError::make)?;
        Ok(Issued { certificate: pem("CERTIFICATE", certificate.der()), key: pem("PRIVATE KEY", &key.serialize_der()) })
    }
}

fn params(key: &KeyPair, lifetime: Lifetime) -> Result<CertificateParams, CertificateError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    let identifier: String = params.key_identifier(key).iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    params.distinguished_name.push(DnType::CommonName, format!("{NAME} {identifier}"));
    // it signs certificates of services, and no further authorities
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    (params.not_before, params.not_after) = (moment(lifetime.from)?, moment(lifetime.to)?);
    Ok(params)
}

fn alternative(name: &str) -> Result<SanType, CertificateError> {
    if let Ok(address) = name.parse() {
        return Ok(SanType::IpAddress(address));
    }
    let refused = || CertificateError::Name { name: name.to_owned() };
    let host = name.strip_prefix("*.").unwrap_or(name);
    rustls::pki_types::DnsName::try_from(host).map_err(|_| refused())?;
    Ok(SanType::DnsName(name.try_into().map_err(|_| refused())?))
}

fn moment(time: SystemTime) -> Result<OffsetDateTime, CertificateError> {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let seconds = i64::try_from(since).unwrap_or(i64::MAX);
    OffsetDateTime::from_unix_timestamp(seconds).map_err(|error| CertificateError::Make(error.to_string()))
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut out = format!("-----BEGIN {label}-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(PEM_WIDTH));
        out.push_str(line);
        out.push('\n');
        rest = after;
    }
    out.push_str(&format!("-----END {label}-----\n"));
    out
}
