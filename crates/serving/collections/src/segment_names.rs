//! The names of segments: the same whatever keeps them.

use autoact_tools::text::fold;

/// A longer title or alias is not a name.
const MAX_NAME_BYTES: usize = 1024;
/// A longer text names no segment.
pub const MAX_NAME_CHARS: usize = 256;
/// So many others that have a name as an alias are told with a segment.
pub const MOST_ALSO: usize = 3;

/// The names of a segment, folded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentNames {
    /// The title.
    pub name: String,
    /// The aliases, and names without their article, with which a misspelt name is compared. Sorted;
    /// never the title.
    pub aliases: Vec<String>,
}

impl SegmentNames {
    /// The names of a segment with a title and aliases.
    pub fn new(title: &str, aliases: &[String]) -> SegmentNames {
        let name = fold(title);
        let mut others: Vec<String> = aliases.iter().filter(|alias| alias.len() <= MAX_NAME_BYTES).map(|alias| fold(alias)).collect();
        let bare: Vec<String> = others.iter().chain([&name]).filter_map(|name| Some(name.strip_prefix("the ")?.to_owned())).collect();
        others.extend(bare);
        others.sort_unstable();
        others.dedup();
        others.retain(|other| *other != name && !other.is_empty());
        SegmentNames { name, aliases: others }
    }
}

/// The title that a segment of a file gets: with the file's name where another file has the title
/// already, with its path where that is taken too, and then with `number`, which no other has.
///
/// # Errors
/// What `is_taken` says of a folded title.
pub fn unique_title<E>(
    title: &str,
    path: &str,
    number: impl std::fmt::Display,
    is_taken: impl Fn(&str) -> Result<bool, E>,
) -> Result<String, E> {
    for form in title_forms(title, path) {
        if !is_taken(&fold(&form))? {
            return Ok(form);
        }
    }
    Ok(format!("{title} ({path}, {number})"))
}

/// The titles that a segment of a file may get, in the order in which they are tried.
pub fn title_forms(title: &str, path: &str) -> [String; 3] {
    let file = path.rsplit('/').next().unwrap_or(path);
    [title.to_owned(), format!("{title} ({file})"), format!("{title} ({path})")]
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn names_are_folded_and_distinct() {
        let aliases = ["The Seine".to_owned(), "la Seine".to_owned(), "seine".to_owned(), "x".repeat(2000)];
        let SegmentNames { name, aliases } = SegmentNames::new("Seine", &aliases);
        assert_eq!((name.as_str(), aliases.as_slice()), ("seine", ["la seine".to_owned(), "the seine".to_owned()].as_slice()));
        assert_eq!(SegmentNames::new("The Hague", &[]).aliases, ["hague"]);
    }

    #[test]
    fn a_title_that_is_taken_gets_its_file() {
        let title = |taken: &[&str]| {
            let is_taken = |form: &str| Ok::<_, Infallible>(taken.contains(&form));
            unique_title("Hotels", "a/b.md", 7, is_taken).unwrap_or_default()
        };
        assert_eq!(title(&[]), "Hotels");
        assert_eq!(title(&["hotels"]), "Hotels (b.md)");
        let (file, path) = (fold("Hotels (b.md)"), fold("Hotels (a/b.md)"));
        assert_eq!(title(&["hotels", &file]), "Hotels (a/b.md)");
        assert_eq!(title(&["hotels", &file, &path]), "Hotels (a/b.md, 7)");
    }
}
