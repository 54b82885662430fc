//! Fills `{slots}` of templates, with the necessary grammar: `the` before some names, `a` or `an`,
//! capitals.

/// The names of the slots of a template, in order.
pub(crate) fn slots(template: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        let after = &rest[open + 1..];
        let Some(close) = after.find('}') else { break };
        out.push(&after[..close]);
        rest = &after[close + 1..];
    }
    out
}

/// The template with every slot replaced by the result of `value`. Slots without a value stay.
pub(crate) fn fill(template: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(template.len() + 32);
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        let (before, after) = (&rest[..open], &rest[open + 1..]);
        out.push_str(before);
        let Some(close) = after.find('}') else {
            out.push('{');
            rest = after;
            continue;
        };
        match value(&after[..close]) {
            Some(text) => out.push_str(&text),
            None => out.push_str(&rest[open..open + close + 2]),
        }
        rest = &after[close + 1..];
    }
    out.push_str(rest);
    out
}

/// The template with the values of its slots; a slot without one is kept.
pub(crate) fn say(template: &str, values: &[(&str, &str)]) -> String {
    fill(template, |slot| values.iter().find(|(name, _)| *name == slot).map(|(_, value)| (*value).to_owned()))
}

/// Capitalises the article at the beginning of a sentence.
pub(crate) fn sentence_case(mut text: String) -> String {
    for (small, large) in [("the ", "The "), ("a ", "A "), ("an ", "An ")] {
        if text.starts_with(small) {
            text.replace_range(..small.len(), large);
        }
    }
    text
}

/// Adds `a` or `an` by spelling, which is sufficient for the nouns of the schemas.
pub(crate) fn with_article(noun: &str) -> String {
    let an = noun.chars().next().is_some_and(|c| "aeiouAEIOU".contains(c)) && !noun.starts_with("uni") && !noun.starts_with("eu");
    format!("{} {noun}", if an { "an" } else { "a" })
}

/// Whether `needle` occurs in `text` at word boundaries.
pub(crate) fn contains_words(text: &str, needle: &str) -> bool {
    if needle.is_empty() {
        return false;
    }
    let bounded = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    text.match_indices(needle)
        .any(|(at, found)| bounded(text[..at].chars().next_back()) && bounded(text[at + found.len()..].chars().next()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_fill() {
        assert_eq!(slots("{e} is {a kind} in {v}."), ["e", "a kind", "v"]);
        let filled = fill("{e} lies in {v}. {odd", |slot| (slot == "e").then(|| "Ur".to_owned()));
        assert_eq!(filled, "Ur lies in {v}. {odd");
        assert_eq!(sentence_case("the Loire flows".into()), "The Loire flows");
        assert_eq!(with_article("opera"), "an opera");
        assert_eq!(with_article("university"), "a university");
    }

    #[test]
    fn words_are_whole() {
        assert!(contains_words("born in Rome.", "Rome"));
        assert!(!contains_words("born in Romeo.", "Rome"));
        assert!(!contains_words("x", ""));
    }
}
