//! What people ask of the atlas's types that its pages do not tell.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Of each type: the noun of what is asked for, and questions for it, with the slot `{x}`.
type Untold = BTreeMap<String, Vec<(String, Vec<String>)>>;

/// The nouns and questions of a type; none for types that are not the atlas's.
pub(crate) fn untold(kind: &str) -> Option<&'static [(String, Vec<String>)]> {
    // a mistake in the file is found by this module's test
    static UNTOLD: LazyLock<Untold> = LazyLock::new(|| parse().unwrap_or_default());
    UNTOLD.get(kind).map(Vec::as_slice)
}

fn parse() -> Result<Untold, toml::de::Error> {
    let types: BTreeMap<String, BTreeMap<String, Vec<String>>> = toml::from_str(include_str!("../untold.toml"))?;
    Ok(types.into_iter().map(|(kind, nouns)| (kind, nouns.into_iter().collect())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_of_the_atlas_has_questions_that_name_it() {
        let atlas = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../corpora/atlas/schema.toml");
        let schema = crate::schema::Schema::load(std::path::Path::new(atlas)).unwrap();
        let types = parse().unwrap();
        let names: Vec<&str> = types.keys().map(String::as_str).collect();
        let mut all: Vec<&str> = schema.types.iter().map(|kind| kind.name.as_str()).collect();
        all.sort_unstable();
        assert_eq!(names, all);
        for (noun, questions) in types.values().flatten() {
            assert!(!questions.is_empty() && questions.iter().all(|text| text.matches("{x}").count() == 1), "{noun}");
        }
    }
}
