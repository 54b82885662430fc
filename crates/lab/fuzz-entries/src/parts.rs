//! Inputs that are several files or messages.

/// Stands between the parts of an input. Two bytes that texts do not have, and that a fuzzer's
/// dictionary can repeat.
const BETWEEN: &[u8] = b"\x1e\x1e";

/// The parts of an input, in order: at most `most`, the last with the rest.
pub(crate) fn parts(data: &[u8], most: usize) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    let mut rest = data;
    while parts.len() + 1 < most
        && let Some(at) = rest.windows(BETWEEN.len()).position(|window| window == BETWEEN)
    {
        parts.push(&rest[..at]);
        rest = &rest[at + BETWEEN.len()..];
    }
    parts.push(rest);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_cut_between_its_parts() {
        assert_eq!(parts(b"a\x1e\x1eb\x1e\x1e\x1ec", 9), [&b"a"[..], b"b", b"\x1ec"]);
        assert_eq!(parts(b"a\x1e\x1eb\x1e\x1ec", 2), [&b"a"[..], b"b\x1e\x1ec"]);
        assert_eq!(parts(b"", 3), [b""]);
    }
}
