//! The bytes of a page as text.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// HTML declares its encoding within so many bytes (the standard's rule for browsers).
const DECLARATION_BYTES: usize = 1024;

/// The text: by its byte order mark, else by the `charset` of the media type, else as the page
/// declares, else UTF-8, else windows-1252 as in browsers. What does not fit becomes `�`, and a
/// label that nobody knows counts for nothing.
pub(crate) fn decode(bytes: &[u8], content_type: &str, html: bool) -> String {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return encoding.decode_without_bom_handling(&bytes[mark..]).0.into_owned();
    }
    let sent = label(content_type.as_bytes());
    let declared = || html.then(|| label(&bytes[..bytes.len().min(DECLARATION_BYTES)])).flatten();
    let encoding = match (sent, declared) {
        (Some(sent), _) => Some(sent),
        // a page whose ASCII can be read is not UTF-16: the standard reads such a declaration as UTF-8
        (None, declared) => declared().map(|own| if own == UTF_16BE || own == UTF_16LE { UTF_8 } else { own }),
    };
    match encoding {
        Some(encoding) => encoding.decode_without_bom_handling(bytes).0.into_owned(),
        None => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => WINDOWS_1252.decode_without_bom_handling(bytes).0.into_owned(),
        },
    }
}

/// The encoding after the first `charset=`, or the `encoding=` of an XML declaration.
fn label(text: &[u8]) -> Option<&'static Encoding> {
    let text = String::from_utf8_lossy(text).to_ascii_lowercase();
    let after = |key: &str| text.find(key).map(|at| &text[at + key.len()..]);
    let xml = text.starts_with("<?xml").then(|| after("encoding=")).flatten();
    let value = xml.or_else(|| after("charset="))?.trim_start().trim_start_matches(['"', '\'']);
    let end = value.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.'))).unwrap_or(value.len());
    Encoding::for_label(&value.as_bytes()[..end])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_encoding_is_found_as_browsers_find_it() {
        let html = "text/html";
        assert_eq!(decode(b"\xef\xbb\xbf\xc3\xa9", "text/html; charset=latin1", true), "é");
        assert_eq!(decode(b"\xe9", "text/html; charset=ISO-8859-1", true), "é");
        assert_eq!(decode(b"\xe4\xe0", "text/html;charset=\"windows-1251\"", true), "да");
        assert_eq!(decode(b"<meta charset=windows-1251>\xe4\xe0", html, true), "<meta charset=windows-1251>да");
        assert_eq!(decode(b"<?xml version='1.0' encoding='windows-1251'?>\xe4", html, true).chars().last(), Some('д'));
        assert_eq!(decode(b"\x82\xb1", "text/plain; charset=Shift_JIS", false), "こ");
        // a server that says UTF-8 of what is none; nothing said; nothing known
        assert_eq!(decode(b"caf\xe9!", "text/html; charset=utf-8", true), "caf\u{fffd}!");
        assert_eq!(decode(b"caf\xe9", html, true), "café");
        assert_eq!(decode("café".as_bytes(), "text/html; charset=klingon", true), "café");
        assert_eq!(decode(b"<meta charset=utf-16>\xc3\xa9", html, true).chars().last(), Some('é'));
    }

    proptest! {
        #[test]
        fn any_bytes_are_text(bytes in any::<Vec<u8>>(), sent in "(text/html; ?charset=[a-z0-9-]{0,12})?", html in any::<bool>()) {
            let _ = decode(&bytes, &sent, html);
        }
    }
}
