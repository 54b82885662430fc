//! What a server says about an error, as one line of bounded length.

use serde_json::Value;

/// Maximum length of a server's message in an error, in characters.
const SHOWN: usize = 400;

/// A server's error message: `error.message`, `message` or `detail` of its JSON, or the whole text.
pub fn shown(body: &[u8]) -> String {
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    let words = ["/error/message", "/message", "/detail", "/error"].iter().find_map(|path| json.pointer(path)?.as_str());
    match words {
        Some(words) => clip(words),
        None => clip(&String::from_utf8_lossy(&body[..body.len().min(4 * SHOWN)])),
    }
}

/// The text as one line with a maximum length.
pub fn clip(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match line.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("`{}…`", &line[..at]),
        None if line.is_empty() => "nothing".to_owned(),
        None => format!("`{line}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_has_a_bound() {
        let long = shown("é".repeat(100_000).as_bytes());
        assert!(long.chars().count() < SHOWN + 10, "{}", long.len());
        assert_eq!(shown(b""), "nothing");
        assert_eq!(shown(b"<html>\n  bad gateway</html>"), "`<html> bad gateway</html>`");
    }
}
