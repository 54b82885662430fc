//! Captions that were recorded.

use std::collections::HashMap;
use std::path::Path;

use autoact_tables::MAX_FILE_BYTES;
use serde::Deserialize;

/// More mistakes of one file help nobody.
const SHOWN_MISTAKES: usize = 20;

/// Captions by a picture's name, its name without the ending, or the SHA-256 of its file.
#[derive(Debug, Default)]
pub(super) struct Captions(HashMap<String, String>);

#[derive(Deserialize)]
struct Line {
    picture: String,
    caption: String,
}

impl Captions {
    /// Reads a file: lines `{"picture": …, "caption": …}`, or, if it ends in `.tsv`, lines with the
    /// two separated by a tab.
    pub(super) fn read(path: &Path) -> Result<Captions, Vec<String>> {
        let shown = path.display();
        let failed = |error: std::io::Error| vec![format!("cannot read the captions `{shown}`: {error}")];
        if path.metadata().map_err(failed)?.len() > MAX_FILE_BYTES {
            return Err(vec![format!("the captions `{shown}` have more than {MAX_FILE_BYTES} bytes")]);
        }
        let text = std::fs::read_to_string(path).map_err(failed)?;
        let tabs = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("tsv"));
        let mut captions = HashMap::new();
        let mut mistakes = Vec::new();
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let read = match tabs {
                true => line.split_once('\t').map(|(picture, caption)| (picture.to_owned(), caption.to_owned())),
                false => serde_json::from_str(line).ok().map(|Line { picture, caption }| (picture, caption)),
            };
            let read = read.filter(|(picture, caption)| !picture.trim().is_empty() && !caption.trim().is_empty());
            let expected = if tabs { "a picture, a tab and its caption" } else { "{\"picture\": \"…\", \"caption\": \"…\"}" };
            match read {
                None => mistakes.push(format!("`{shown}`, line {}: expected {expected}", at + 1)),
                Some((picture, caption)) => {
                    if captions.insert(picture.trim().to_owned(), caption.trim().to_owned()).is_some() {
                        mistakes.push(format!("`{shown}`, line {}: the picture has a caption already", at + 1));
                    }
                }
            }
            if mistakes.len() >= SHOWN_MISTAKES {
                break;
            }
        }
        if mistakes.is_empty() { Ok(Captions(captions)) } else { Err(mistakes) }
    }

    /// The caption of the first key that has one.
    pub(super) fn find<'a>(&self, keys: impl IntoIterator<Item = &'a str>) -> Option<&str> {
        keys.into_iter().find_map(|key| self.0.get(key)).map(String::as_str)
    }

    /// The pictures that have one.
    pub(super) fn pictures(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}
