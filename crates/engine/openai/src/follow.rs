//! Checks a text against its grammar byte by byte, because the server's tokens are not known here.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use autoact_model::{GenerateError, Grammar};
use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use serde_json::{Value, json};
use toktrie::ApproximateTokEnv;

use crate::error::RemoteError;

/// Number of compiled grammars kept for later requests.
const CACHED: usize = 32;

/// Compiles grammars over bytes.
pub(crate) struct Grammars {
    inner: Mutex<Inner>,
}

struct Inner {
    factory: ParserFactory,
    /// The most recently used one is last.
    compiled: VecDeque<(Grammar, Matcher)>,
}

impl Grammars {
    pub(crate) fn new() -> Result<Grammars, RemoteError> {
        let factory = ParserFactory::new_simple(&ApproximateTokEnv::single_byte_env());
        let mut factory = factory.map_err(|error| RemoteError::Grammars { reason: format!("{error:#}") })?;
        factory.quiet();
        Ok(Grammars { inner: Mutex::new(Inner { factory, compiled: VecDeque::new() }) })
    }

    /// The initial state of a grammar.
    pub(crate) fn start(&self, grammar: &Grammar) -> Result<Follow, GenerateError> {
        let invalid = |reason: String| GenerateError::InvalidGrammar { reason };
        let inner = &mut *self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = inner.compiled.iter().position(|(known, _)| known == grammar).and_then(|at| inner.compiled.remove(at));
        let entry = match cached {
            Some(entry) => entry,
            None => {
                let matcher = Matcher::new(inner.factory.create_parser(top(grammar).map_err(invalid)?));
                if let Some(reason) = matcher.get_error() {
                    return Err(invalid(reason));
                }
                (grammar.clone(), matcher)
            }
        };
        let follow = Follow { matcher: entry.1.deep_clone() };
        if inner.compiled.len() == CACHED {
            inner.compiled.pop_front();
        }
        inner.compiled.push_back(entry);
        Ok(follow)
    }
}

/// Converts it to llguidance's form, or returns what is wrong with it. In contrast to the engine, a
/// server's JSON may have white space between its parts.
fn top(grammar: &Grammar) -> Result<TopLevelGrammar, String> {
    match grammar {
        Grammar::Regex(pattern) => Ok(TopLevelGrammar::from_regex(pattern)),
        Grammar::Lark(text) => Ok(TopLevelGrammar::from_lark(text.clone())),
        Grammar::JsonSchema(schema) => Ok(TopLevelGrammar::from_json_schema(schema.clone())),
        Grammar::JsonLine(schema) => {
            let mut schema = schema.clone();
            if let Some(fields) = schema.as_object_mut() {
                fields.entry("x-guidance").or_insert_with(|| json!({ "lenient": true }));
            }
            // a server that holds to the schema begins with the object and ends after it
            Ok(TopLevelGrammar::from_lark(format!("start: \" \"? json\njson: %json {schema}\n")))
        }
        Grammar::Choice(choices) => {
            if choices.is_empty() || choices.iter().any(String::is_empty) {
                return Err("a choice needs at least one text, and none may be empty".to_owned());
            }
            let literals: Vec<String> = choices.iter().map(|choice| Value::from(choice.as_str()).to_string()).collect();
            Ok(TopLevelGrammar::from_lark(format!("start: {}", literals.join(" | "))))
        }
    }
}

/// The result of checking a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// All of it matches, and more text is allowed.
    Open,
    /// This number of bytes match and complete the grammar: nothing may follow.
    Complete(usize),
    /// This number of bytes match, and the next character does not.
    Broken(usize),
}

/// A grammar's state within one text.
pub(crate) struct Follow {
    matcher: Matcher,
}

impl Follow {
    /// Advances by `text`, character by character.
    pub(crate) fn take(&mut self, text: &str) -> Result<Fit, GenerateError> {
        for (at, character) in text.char_indices() {
            if self.matcher.is_stopped() {
                return self.healthy(Fit::Complete(at));
            }
            let mut utf8 = [0; 4];
            let bytes: Vec<u32> = character.encode_utf8(&mut utf8).bytes().map(u32::from).collect();
            if self.matcher.validate_tokens(&bytes).map_err(broke)? < bytes.len() {
                return self.healthy(Fit::Broken(at));
            }
            self.matcher.consume_tokens(&bytes).map_err(broke)?;
        }
        let fit = if self.matcher.is_stopped() { Fit::Complete(text.len()) } else { Fit::Open };
        self.healthy(fit)
    }

    /// Whether the text may end here.
    pub(crate) fn accepts(&mut self) -> Result<bool, GenerateError> {
        Ok(self.matcher.is_stopped() || self.matcher.is_accepting().map_err(broke)?)
    }

    /// The text that must come next if the grammar allows only one; advances by it.
    pub(crate) fn forced(&mut self) -> Result<String, GenerateError> {
        if self.matcher.is_stopped() {
            return Ok(String::new());
        }
        let bytes = self.matcher.compute_ff_bytes();
        let text = match std::str::from_utf8(&bytes) {
            Ok(text) => text,
            // only whole characters are forced, not a part of one
            Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
        };
        self.take(text)?;
        Ok(text.to_owned())
    }

    /// Converts an error of the matcher, which otherwise looks like a stop.
    fn healthy(&self, fit: Fit) -> Result<Fit, GenerateError> {
        match self.matcher.get_error() {
            Some(reason) => Err(GenerateError::engine(reason)),
            None => Ok(fit),
        }
    }
}

fn broke(error: impl std::fmt::Display) -> GenerateError {
    GenerateError::engine(format!("cannot follow the grammar: {error:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow(grammar: Grammar) -> Follow {
        Grammars::new().unwrap().start(&grammar).unwrap()
    }

    const PLAN: &str = r" [^\n]{1,600}\nAction: (Retrieve|Finish)\n";

    #[test]
    fn a_reply_is_cut_where_the_grammar_is_satisfied() {
        let mut plan = follow(Grammar::Regex(PLAN.into()));
        assert_eq!(plan.take(" Ich weiß es.\nAction: Re").unwrap(), Fit::Open);
        assert!(!plan.accepts().unwrap());
        assert_eq!(plan.take("trieve\nInput: Loire\n").unwrap(), Fit::Complete("trieve\n".len()));
        assert!(plan.accepts().unwrap());
        assert_eq!(plan.take("more").unwrap(), Fit::Complete(0));
    }

    #[test]
    fn what_does_not_fit_is_found_and_what_is_forced_is_known() {
        let mut plan = follow(Grammar::Regex(PLAN.into()));
        assert_eq!(plan.take(" Hm.\nInput: x").unwrap(), Fit::Broken(" Hm.\n".len()));
        assert_eq!(plan.forced().unwrap(), "Action: ");
        assert_eq!(plan.take("Fi").unwrap(), Fit::Open);
        assert_eq!(plan.forced().unwrap(), "nish\n");
        assert_eq!(plan.take("").unwrap(), Fit::Complete(0));
        let mut none = follow(Grammar::Regex(PLAN.into()));
        assert_eq!(none.take("x").unwrap(), Fit::Broken(0));
    }

    #[test]
    fn every_kind_of_grammar_is_followed() {
        let mut choice = follow(Grammar::Choice(vec!["yes".into(), "no\"".into()]));
        assert_eq!(choice.take("no\"!").unwrap(), Fit::Complete(3));
        let mut lark = follow(Grammar::Lark("start: \"a\" \"b\"+".into()));
        assert_eq!((lark.take("abb").unwrap(), lark.accepts().unwrap()), (Fit::Open, true));
        let schema =
            json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"], "additionalProperties": false });
        for text in ["{\"n\":1}", "{ \"n\": 1 }"] {
            let mut object = follow(Grammar::JsonSchema(schema.clone()));
            assert_eq!(object.take(text).unwrap(), Fit::Complete(text.len()), "{text}");
        }
        for text in ["{\"n\":1}", " {\n  \"n\": 1\n}"] {
            let mut line = follow(Grammar::JsonLine(schema.clone()));
            assert_eq!(line.take(&format!("{text}\n")).unwrap(), Fit::Complete(text.len()), "{text}");
        }
        let invalid = Grammars::new().unwrap().start(&Grammar::Regex("(".into()));
        assert!(matches!(invalid.err(), Some(GenerateError::InvalidGrammar { .. })));
        assert!(Grammars::new().unwrap().start(&Grammar::Choice(vec![])).is_err());
    }

    #[test]
    fn characters_are_whole() {
        let mut regex = follow(Grammar::Regex("[é]+x".into()));
        assert_eq!(regex.take("éé").unwrap(), Fit::Open);
        // the first byte of `è` matches, the second does not
        assert_eq!(regex.take("èx").unwrap(), Fit::Broken(0));
        assert_eq!(regex.take("x").unwrap(), Fit::Complete(1));
    }
}
