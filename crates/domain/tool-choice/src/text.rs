//! What is known of a tool, as words.

use autoact_trajectory::{ToolBackground, ToolSpec};
use qdrant_rust_stemmers::{Algorithm, Stemmer};
use serde_json::Value;
use unicode_normalization::UnicodeNormalization;

/// Descriptions of parameters are read to this depth.
const DEPTH: usize = 6;
/// Longer ones are cut: the rest tells details.
const DESCRIPTION_CHARS: usize = 200;
/// Words longer than this are none of a language.
const LONGEST_WORD: usize = 40;

/// Words that say nothing about what somebody wants done. Sorted.
const STOP_WORDS: [&str; 88] = [
    "a", "about", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could", "did", "do",
    "does", "for", "from", "had", "has", "have", "how", "i", "if", "in", "into", "is", "it", "its", "just", "let", "like", "may", "me",
    "my", "need", "no", "not", "of", "on", "one", "or", "our", "out", "please", "s", "should", "so", "some", "t", "tell", "that", "the",
    "their", "them", "then", "there", "these", "they", "this", "to", "up", "us", "use", "used", "want", "was", "we", "were", "what",
    "when", "where", "which", "who", "why", "will", "with", "would", "you", "your", "yours", "im", "ive", "id",
];

/// What counts of a tool, in words.
pub(crate) struct Fields {
    /// Its name, in words.
    pub(crate) name: String,
    pub(crate) definition: String,
    pub(crate) details: String,
    /// Names, descriptions and choices of its parameters, and examples of calls.
    pub(crate) parameters: String,
    pub(crate) title: String,
    pub(crate) about: String,
}

impl Fields {
    pub(crate) fn of(spec: &ToolSpec, background: &ToolBackground) -> Fields {
        let mut parameters = Vec::new();
        if let Some(schema) = &spec.schema {
            described(&serde_json::from_str(schema.as_str()).unwrap_or_default(), DEPTH, &mut parameters);
        } else if let Some((_, rest)) = spec.usage.split_once('[') {
            parameters.push(rest.trim_end_matches(']').to_owned());
        }
        parameters.extend(spec.examples.iter().cloned());
        let ToolBackground { title, about, details } = background.clone();
        Fields { name: apart(&spec.name), definition: spec.definition.clone(), details, parameters: parameters.join(". "), title, about }
    }

    /// What a model of meaning is given of the tool itself. Its parameters are left out: with them
    /// less is found.
    pub(crate) fn own_text(&self) -> String {
        let what = if self.title.is_empty() { &self.name } else { &self.title };
        format!("{what}: {} {}", self.definition, self.details).trim().to_owned()
    }

    /// What it is given of what the tool belongs to; empty: it belongs to nothing.
    pub(crate) fn set_text(&self) -> String {
        match (self.title.as_str(), self.about.as_str()) {
            ("", about) => about.to_owned(),
            (title, "") => title.to_owned(),
            (title, about) => format!("{title}. {about}"),
        }
    }
}

/// Names and descriptions of a schema's properties.
fn described(schema: &Value, depth: usize, found: &mut Vec<String>) {
    let Some(depth) = depth.checked_sub(1) else { return };
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let description: String = property["description"].as_str().unwrap_or_default().chars().take(DESCRIPTION_CHARS).collect();
        let choices: Vec<&str> = property["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).take(12).collect();
        found.push([apart(name), description, choices.join(" ")].join(" ").trim().to_owned());
        described(property, depth, found);
    }
    if schema["items"].is_object() {
        described(&schema["items"], depth, found);
    }
}

/// `getWeatherByCity_v2` in words.
fn apart(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 8);
    let mut before = ' ';
    let mut rest = name.chars().peekable();
    while let Some(c) = rest.next() {
        let begins = c.is_uppercase() && (before.is_lowercase() || before.is_uppercase() && rest.peek().is_some_and(|c| c.is_lowercase()))
            || c.is_numeric() && before.is_alphabetic();
        if begins {
            words.push(' ');
        }
        words.push(if c.is_alphanumeric() { c } else { ' ' });
        before = c;
    }
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The stems of a text's words, stop words left out unless there is nothing else.
pub(crate) fn stems(text: &str) -> Vec<String> {
    let stemmer = Stemmer::create(Algorithm::English);
    let plain: String = text.nfkd().filter(|c| !unicode_normalization::char::is_combining_mark(*c)).collect::<String>().to_lowercase();
    let words = plain.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty() && word.len() <= LONGEST_WORD);
    let all: Vec<&str> = words.collect();
    let meaning: Vec<&str> = all.iter().copied().filter(|word| !STOP_WORDS.contains(word)).collect();
    let kept = if meaning.is_empty() { all } else { meaning };
    kept.into_iter().map(|word| stemmer.stem(word).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fall_into_words() {
        for (name, words) in [
            ("getWeatherByCity_v2", "get Weather By City v 2"),
            ("HTTPServerList", "HTTP Server List"),
            ("pets_findPetsByStatus", "pets find Pets By Status"),
            ("Retrieve", "Retrieve"),
            ("", ""),
        ] {
            assert_eq!(apart(name), words);
        }
    }

    #[test]
    fn stems_are_those_of_words_with_a_meaning() {
        assert_eq!(stems("Please tell me the Cities' weather, São Paulo"), ["citi", "weather", "sao", "paulo"]);
        assert_eq!(stems("what is it"), ["what", "is", "it"]);
        assert_eq!(stems(" ?! "), Vec::<String>::new());
    }
}
