//! How long the parts of an event may be. Together they keep every event below what the bus stores.
//!
//! Sizes are bytes of UTF-8. A request or an agent's reply that is longer is refused with the
//! figure. What a tool returned and what is written for people is cut instead, and says so.

/// An observation's text, the note on a repetition included.
pub const MAX_OBSERVATION_BYTES: usize = 32 * 1024;
/// A tool's parameters, and so an answer.
pub const MAX_PARAMS_BYTES: usize = 32 * 1024;
/// A thought of Plan-Agent or Reflect-Agent.
pub const MAX_THOUGHT_BYTES: usize = 16 * 1024;
/// A detail for people: why a task ended or waits.
pub const MAX_DETAIL_BYTES: usize = 4 * 1024;
/// A name: of a tool, a model or an adapter.
pub const MAX_NAME_BYTES: usize = 256;

/// Artifacts of one observation.
pub const MAX_ARTIFACTS: usize = 16;
/// The bytes of all artifacts of one observation: they travel in one message.
pub const MAX_ARTIFACT_BYTES: usize = 4 * 1024 * 1024;
/// An artifact's name.
pub const MAX_ARTIFACT_NAME_BYTES: usize = 128;
/// What the model reads of an artifact.
pub const MAX_ARTIFACT_TEXT_BYTES: usize = 512;

/// Sources of one observation.
pub const MAX_SOURCES: usize = 16;
/// The text of a source.
pub const MAX_SOURCE_TEXT_BYTES: usize = 4 * 1024;
/// The collection and the path of a source together.
pub const MAX_SOURCE_PATH_BYTES: usize = 512;
/// The title of a source, and its heading.
pub const MAX_SOURCE_HEADING_BYTES: usize = 256;
/// The sources of one observation, with their names and places.
pub const MAX_SOURCES_BYTES: usize = 16 * 1024;
/// The text and the sources of one observation together: the rest of its event is for artifacts.
/// Sources give way.
pub const MAX_OBSERVED_BYTES: usize = 46 * 1024;
/// What the numbers and the tags of a source take of an event, at most.
pub(crate) const SOURCE_OVERHEAD_BYTES: usize = 48;

/// Citations of one answer.
pub const MAX_CITATIONS: usize = 16;
/// The quotes of one answer's citations together.
pub const MAX_QUOTES_BYTES: usize = 8 * 1024;

/// What was recalled of a conversation: texts, labels and numbers of all items.
pub const MAX_RECALLED_BYTES: usize = 32 * 1024;

/// The mark at the end of a text that was cut.
pub const CUT_MARK: &str = " … (cut)";

/// `text` in at most `max_bytes`, cut between two characters and marked with [`CUT_MARK`]; says
/// whether it was cut.
pub fn cut(text: String, max_bytes: usize) -> (String, bool) {
    if text.len() <= max_bytes {
        return (text, false);
    }
    let (room, mark) = match max_bytes.checked_sub(CUT_MARK.len()) {
        Some(room) => (room, CUT_MARK),
        None => (max_bytes, ""),
    };
    let end = text.floor_char_boundary(room);
    (format!("{}{mark}", text[..end].trim_end()), true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cuts_say_so() {
        assert_eq!(cut("short".into(), 5), ("short".into(), false));
        assert_eq!(cut("ééééééééééééé".into(), 15), (format!("éé{CUT_MARK}"), true));
        assert_eq!(cut("ééé".into(), 3), ("é".into(), true));
    }

    proptest! {
        #[test]
        fn a_cut_text_keeps_the_bound(text in ".{0,80}", bound in 0_usize..60) {
            let (cut, was) = cut(text.clone(), bound);
            prop_assert!(cut.len() <= bound);
            prop_assert_eq!(was, text.len() > bound);
        }
    }
}
