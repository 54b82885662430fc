//! Bytes as text. What is not UTF-8 has to say what it is.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

use crate::error::ReadError;

/// HTML declares its encoding within so many bytes (the standard's rule for browsers).
const DECLARATION_BYTES: usize = 1024;

/// The text of a file: UTF-8, or UTF-16 with a byte order mark.
pub(crate) fn decode(bytes: &[u8]) -> Result<String, ReadError> {
    let (encoding, mark) = Encoding::for_bom(bytes).unwrap_or((UTF_8, 0));
    strict(encoding, bytes, mark)
}

/// The text of an HTML file: by its byte order mark, else as it declares, else UTF-8. What does not
/// fit a declared encoding becomes `�`.
pub(crate) fn decode_html(bytes: &[u8]) -> Result<String, ReadError> {
    if Encoding::for_bom(bytes).is_some() {
        return decode(bytes);
    }
    let Some(label) = declared(bytes) else {
        return decode(bytes);
    };
    // a file whose ASCII can be read is not UTF-16: the standard reads such a declaration as UTF-8
    match Encoding::for_label(label.as_bytes()) {
        Some(encoding) if encoding == UTF_16BE || encoding == UTF_16LE => Ok(UTF_8.decode_without_bom_handling(bytes).0.into_owned()),
        Some(encoding) => Ok(encoding.decode_without_bom_handling(bytes).0.into_owned()),
        None => Err(ReadError::UnknownEncoding { label }),
    }
}

fn strict(encoding: &'static Encoding, bytes: &[u8], mark: usize) -> Result<String, ReadError> {
    let body = bytes.get(mark..).unwrap_or_default();
    if encoding == UTF_8 {
        return match std::str::from_utf8(body) {
            Ok(text) => Ok(text.to_owned()),
            Err(error) => Err(ReadError::Encoding { encoding: "UTF-8".into(), offset: mark + error.valid_up_to() }),
        };
    }
    match encoding.decode_without_bom_handling_and_without_replacement(body) {
        Some(text) => Ok(text.into_owned()),
        None => Err(ReadError::Encoding { encoding: encoding.name().into(), offset: mark }),
    }
}

/// The label after the first `charset=` (or the `encoding=` of an XML declaration).
fn declared(bytes: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(DECLARATION_BYTES)]).to_ascii_lowercase();
    let after = |key: &str| head.find(key).map(|at| &head[at + key.len()..]);
    let xml = head.starts_with("<?xml").then(|| after("encoding=")).flatten();
    let value = xml.or_else(|| after("charset="))?;
    let value = value.trim_start().trim_start_matches(['"', '\'']);
    let label: String = value.chars().take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.')).collect();
    (!label.is_empty()).then_some(label)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn byte_order_marks_decide() {
        assert_eq!(decode(b"\xef\xbb\xbf\xc3\xa9").unwrap(), "é");
        assert_eq!(decode(b"\xff\xfee\x00\xe9\x00").unwrap(), "eé");
        assert_eq!(decode(b"\xfe\xff\x00e\x00\xe9").unwrap(), "eé");
    }

    #[test]
    fn what_is_not_declared_must_be_utf_8() {
        let error = decode(b"caf\xe9 au lait").unwrap_err();
        assert!(matches!(&error, ReadError::Encoding { encoding, offset: 3 } if encoding == "UTF-8"), "{error}");
        assert!(matches!(decode_html(b"<p>caf\xe9"), Err(ReadError::Encoding { .. })));
        assert!(matches!(decode(b"\xff\xfe\x00\xd8"), Err(ReadError::Encoding { encoding, .. }) if encoding == "UTF-16LE"));
    }

    #[test]
    fn html_declares_its_encoding() {
        assert_eq!(decode_html(b"<meta charset=\"iso-8859-1\"><p>caf\xe9").unwrap(), "<meta charset=\"iso-8859-1\"><p>café");
        let xml = b"<?xml version=\"1.0\" encoding='windows-1251'?><p>\xe4\xe0";
        assert!(decode_html(xml).unwrap().ends_with("да"));
        assert!(decode_html(b"<meta charset=utf-16><p>\xc3\xa9").unwrap().ends_with('é'));
        assert!(matches!(decode_html(b"<meta charset=klingon>"), Err(ReadError::UnknownEncoding { .. })));
    }

    proptest! {
        #[test]
        fn any_bytes_decode_without_panic(bytes in any::<Vec<u8>>(), head in "(<meta charset=[a-z0-9-]{0,12}>)?") {
            let _ = decode(&bytes);
            let _ = decode_html(&[head.as_bytes(), &bytes].concat());
        }
    }
}
