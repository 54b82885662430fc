//! What a certificate says: for people, and for deciding whether to renew it. Nothing is verified
//! here; that is done where a connection is made.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use time::OffsetDateTime;
use yasna::models::ObjectIdentifier;
use yasna::tags::{TAG_GENERALIZEDTIME, TAG_PRINTABLESTRING, TAG_UTCTIME, TAG_UTF8STRING};
use yasna::{ASN1Error, ASN1ErrorKind, ASN1Result, BERReader, Tag};

/// `subjectAltName`, `basicConstraints` and `commonName` (RFC 5280).
const ALTERNATIVE_NAMES: [u64; 4] = [2, 5, 29, 17];
const CONSTRAINTS: [u64; 4] = [2, 5, 29, 19];
const COMMON_NAME: [u64; 4] = [2, 5, 4, 3];
/// Kinds of names in `subjectAltName`.
const DNS_NAME: Tag = Tag { tag_class: yasna::TagClass::ContextSpecific, tag_number: 2 };
const IP_ADDRESS: Tag = Tag { tag_class: yasna::TagClass::ContextSpecific, tag_number: 7 };

/// What a certificate says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// Whom it is for: the common name.
    pub subject: String,
    /// Who made it: the authority's common name.
    pub issuer: String,
    /// DNS names and IP addresses.
    pub names: Vec<String>,
    /// The first moment of its validity.
    pub from: SystemTime,
    /// The last moment.
    pub to: SystemTime,
    /// Whether it may sign others.
    pub authority: bool,
}

/// Reads a certificate in DER.
///
/// # Errors
/// It is no certificate; the text says at which rule reading ended.
pub fn inspect(der: &[u8]) -> Result<Certificate, String> {
    yasna::parse_der(der, |reader| {
        reader.read_sequence(|reader| {
            let certificate = reader.next().read_sequence(signed)?;
            reader.next().read_der()?;
            reader.next().read_der()?;
            Ok(certificate)
        })
    })
    .map_err(|error| format!("no certificate ({error:?})"))
}

fn signed(reader: &mut yasna::BERReaderSeq<'_, '_>) -> ASN1Result<Certificate> {
    reader.read_optional(|reader| reader.read_tagged(Tag::context(0), |reader| reader.read_i64()))?;
    reader.next().read_der()?; // serial number
    reader.next().read_der()?; // algorithm
    let issuer = common_name(reader.next())?;
    let (from, to) = reader.next().read_sequence(|reader| Ok((moment(reader.next())?, moment(reader.next())?)))?;
    let subject = common_name(reader.next())?;
    reader.next().read_der()?; // public key
    let mut certificate = Certificate { subject, issuer, names: Vec::new(), from, to, authority: false };
    reader.read_optional(|reader| reader.read_tagged(Tag::context(3), |reader| extensions(reader, &mut certificate)))?;
    Ok(certificate)
}

fn extensions(reader: BERReader<'_, '_>, certificate: &mut Certificate) -> ASN1Result<()> {
    reader.read_sequence_of(|reader| {
        reader.read_sequence(|reader| {
            let kind = reader.next().read_oid()?;
            reader.read_optional(|reader| reader.read_bool())?;
            let content = reader.next().read_bytes()?;
            if kind == ObjectIdentifier::from_slice(&ALTERNATIVE_NAMES) {
                certificate.names = yasna::parse_der(&content, |reader| reader.collect_sequence_of(name))?;
            } else if kind == ObjectIdentifier::from_slice(&CONSTRAINTS) {
                certificate.authority = yasna::parse_der(&content, |reader| {
                    reader.read_sequence(|reader| {
                        let authority = reader.read_optional(|reader| reader.read_bool())?;
                        reader.read_optional(|reader| reader.read_i64())?;
                        Ok(authority.unwrap_or_default())
                    })
                })?;
            }
            Ok(())
        })
    })
}

fn name(reader: BERReader<'_, '_>) -> ASN1Result<String> {
    let tag = reader.lookahead_tag()?;
    if tag == DNS_NAME {
        return reader.read_tagged_implicit(tag, |reader| reader.read_ia5_string());
    }
    if tag == IP_ADDRESS {
        let bytes = reader.read_tagged_implicit(tag, |reader| reader.read_bytes())?;
        let address = match (<[u8; 4]>::try_from(bytes.as_slice()), <[u8; 16]>::try_from(bytes.as_slice())) {
            (Ok(four), _) => IpAddr::from(four),
            (_, Ok(sixteen)) => IpAddr::from(sixteen),
            _ => return Err(ASN1Error::new(ASN1ErrorKind::Invalid)),
        };
        return Ok(address.to_string());
    }
    // mail, URI and others: nobody here is known by them
    reader.read_der()?;
    Ok(format!("(kind {})", tag.tag_number))
}

/// The common name in a distinguished name; empty without one.
fn common_name(reader: BERReader<'_, '_>) -> ASN1Result<String> {
    let mut found = String::new();
    reader.read_sequence_of(|reader| {
        reader.read_set_of(|reader| {
            reader.read_sequence(|reader| {
                let kind = reader.next().read_oid()?;
                let value = reader.next();
                let tag = value.lookahead_tag()?;
                match tag {
                    TAG_UTF8STRING if kind.components().as_slice() == COMMON_NAME => found = value.read_utf8string()?,
                    TAG_PRINTABLESTRING if kind.components().as_slice() == COMMON_NAME => found = value.read_printable_string()?,
                    _ => drop(value.read_der()?),
                }
                Ok(())
            })
        })
    })?;
    Ok(found)
}

fn moment(reader: BERReader<'_, '_>) -> ASN1Result<SystemTime> {
    let tag = reader.lookahead_tag()?;
    let time: OffsetDateTime = match tag {
        TAG_UTCTIME => *reader.read_utctime()?.datetime(),
        TAG_GENERALIZEDTIME => *reader.read_generalized_time()?.datetime(),
        _ => return Err(ASN1Error::new(ASN1ErrorKind::Invalid)),
    };
    let seconds = u64::try_from(time.unix_timestamp()).unwrap_or_default();
    Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}
