//! Grammars for constrained decoding, compiled by llguidance.

use std::collections::VecDeque;

use autoact_base::error::chain;
use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::InferenceCapabilities;
use llguidance::{Matcher, ParserFactory};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toktrie::{SimpleVob, TokEnv};

use crate::narrowed::narrow;
use crate::{GenerateError, LoadError};

/// A grammar that the whole completion must match.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grammar {
    /// A regular expression (syntax of the `regex` crate, without look-around).
    Regex(String),
    /// One of these texts.
    Choice(Vec<String>),
    /// A context-free grammar in llguidance's dialect of Lark, with the start symbol `start`:
    /// <https://github.com/guidance-ai/llguidance/blob/main/docs/syntax.md>
    Lark(String),
    /// JSON that satisfies this schema, without white space between its parts.
    JsonSchema(Value),
    /// One line: a space, such JSON and a line break. Keywords that a grammar cannot express are
    /// ignored; the reader of the JSON checks them. A remote server may omit the space and the line
    /// break.
    JsonLine(Value),
}

impl Grammar {
    /// Converts it to llguidance's form, or returns what is wrong with it.
    fn compile(&self) -> Result<TopLevelGrammar, String> {
        match self {
            Self::Regex(pattern) => Ok(TopLevelGrammar::from_regex(pattern)),
            Self::Lark(text) => Ok(TopLevelGrammar::from_lark(text.clone())),
            Self::Choice(choices) => {
                if choices.is_empty() || choices.iter().any(String::is_empty) {
                    return Err("a choice needs at least one text, and none may be empty".to_owned());
                }
                let literals: Vec<String> = choices.iter().map(|c| Value::from(c.as_str()).to_string()).collect();
                Ok(TopLevelGrammar::from_lark(format!("start: {}", literals.join(" | "))))
            }
            // Small models tend to generate optional white space without end.
            Self::JsonSchema(schema) => Ok(TopLevelGrammar::from_json_schema(guided(schema, json!({ "whitespace_flexible": false })))),
            Self::JsonLine(schema) => {
                let schema = guided(schema, json!({ "whitespace_flexible": false, "lenient": true }));
                Ok(TopLevelGrammar::from_lark(format!("start: \" \" json \"\\n\"\njson: %json {schema}\n")))
            }
        }
    }
}

/// The schema, narrowed, with options for llguidance, where it has none of its own.
fn guided(schema: &Value, options: Value) -> Value {
    let mut schema = schema.clone();
    narrow(&mut schema);
    if let Some(fields) = schema.as_object_mut() {
        fields.entry("x-guidance").or_insert(options);
    }
    schema
}

/// Number of compiled grammars kept for later requests.
const CACHED: usize = 32;

/// Class of tokens whose mask inside a JSON string is precomputed: up to ten more characters. So
/// masks there are cheap. llguidance's default has three more classes, nearly equal to this one,
/// which take 3 MB for 50,000 tokens in every agent.
const INSIDE_TEXT: &str = r#"[^"\\\x00-\x1F\x7F]{1,10}"#;

/// Compiles grammars for one vocabulary.
pub(crate) struct Grammars {
    factory: ParserFactory,
    /// The most recently used one is last.
    compiled: VecDeque<(Grammar, Matcher)>,
}

impl Grammars {
    pub(crate) fn new(env: &TokEnv) -> Result<Self, LoadError> {
        let slices = [INSIDE_TEXT.to_owned()];
        let factory = ParserFactory::new(env, InferenceCapabilities::default(), &slices);
        let mut factory = factory.map_err(|e| LoadError::Grammars { reason: chain(e.as_ref()) })?;
        factory.quiet();
        Ok(Self { factory, compiled: VecDeque::new() })
    }

    /// The initial state of a grammar for a new sequence.
    pub(crate) fn start(&mut self, grammar: &Grammar) -> Result<Constraint, GenerateError> {
        let invalid = |reason: String| GenerateError::InvalidGrammar { reason };
        let cached = self.compiled.iter().position(|(g, _)| g == grammar).and_then(|at| self.compiled.remove(at));
        let (key, matcher) = match cached {
            Some(entry) => entry,
            None => {
                let top = grammar.compile().map_err(invalid)?;
                let matcher = Matcher::new(self.factory.create_parser(top));
                if let Some(reason) = matcher.get_error() {
                    return Err(invalid(reason));
                }
                (grammar.clone(), matcher)
            }
        };
        let constraint = Constraint { matcher: matcher.deep_clone() };
        if self.compiled.len() == CACHED {
            self.compiled.pop_front();
        }
        self.compiled.push_back((key, matcher));
        Ok(constraint)
    }
}

/// A grammar's state within one sequence.
pub(crate) struct Constraint {
    matcher: Matcher,
}

impl Constraint {
    /// Sets the logits of all tokens that the grammar does not allow next to minus infinity.
    pub(crate) fn mask(&mut self, logits: &mut [f32]) -> Result<(), GenerateError> {
        let allowed: SimpleVob = self.matcher.compute_mask().map_err(|e| GenerateError::engine(chain(e.as_ref())))?;
        for (token, logit) in logits.iter_mut().enumerate() {
            if !allowed.is_allowed(token as u32) {
                *logit = f32::NEG_INFINITY;
            }
        }
        Ok(())
    }

    /// Number of `tokens`, from the first on, that the grammar allows. The state does not change.
    pub(crate) fn allows(&mut self, tokens: &[u32]) -> Result<usize, GenerateError> {
        self.matcher.validate_tokens(tokens).map_err(|e| GenerateError::engine(chain(e.as_ref())))
    }

    /// The tokens that must come next because the grammar allows no others; often none. The state
    /// does not change.
    pub(crate) fn forced(&mut self) -> Vec<u32> {
        self.matcher.compute_ff_tokens()
    }

    /// Advances the state by `token`. Returns true if only the end can follow.
    pub(crate) fn accept(&mut self, token: u32) -> Result<bool, GenerateError> {
        self.matcher.consume_token(token).map_err(|e| GenerateError::engine(chain(e.as_ref())))?;
        Ok(self.matcher.is_stopped())
    }
}

#[cfg(test)]
mod tests {
    use crate::ModelDir;

    use super::*;

    /// Checking a single token must give the same result as the mask of all tokens.
    #[test]
    fn a_token_is_allowed_where_the_mask_allows_it() {
        let grammars = [
            Grammar::Regex("(yes|no), [0-9]{2,4}\\.".to_owned()),
            Grammar::Regex(" ?[A-Za-z]+( [A-Za-z]+)*\n".to_owned()),
            Grammar::Choice(vec!["Retrieve".to_owned(), "Retriever".to_owned(), "東京".to_owned()]),
            Grammar::Lark("start: \"(\" start? \")\"".to_owned()),
            Grammar::JsonSchema(json!({"type": "object", "properties": {"query": {"type": "string"}, "n": {"type": "integer"}}})),
            Grammar::JsonLine(json!({"type": "object", "properties": {"query": {"type": "string"}}, "not": {"required": ["n"]}})),
        ];
        for fixture in ["qwen2", "mistral"] {
            let dir = format!("{}/../../../tests/golden/fixtures/{fixture}", env!("CARGO_MANIFEST_DIR"));
            let tokenizer = ModelDir::open(dir).unwrap().tokenizer().unwrap();
            let mut all = Grammars::new(&tokenizer.env()).unwrap();
            for (grammar, seed) in grammars.iter().flat_map(|g| (0..4).map(move |seed| (g, seed))) {
                let mut constraint = all.start(grammar).unwrap();
                for step in 0..12 {
                    // As in a sequence: forced tokens are not sampled.
                    let forced = constraint.forced();
                    if !forced.is_empty() {
                        if forced.iter().any(|token| constraint.accept(*token).unwrap()) {
                            break;
                        }
                        continue;
                    }
                    let mut logits = vec![0f32; tokenizer.env().tok_trie().vocab_size()];
                    constraint.mask(&mut logits).unwrap();
                    let masked: Vec<u32> = (0..).zip(&logits).filter(|(_, l)| l.is_finite()).map(|(token, _)| token).collect();
                    let allowed = (0..logits.len() as u32).filter(|token| constraint.allows(&[*token]).unwrap() == 1);
                    assert!(allowed.eq(masked.iter().copied()), "{fixture}, {grammar:?}, step {step}");
                    if constraint.accept(masked[(step * 31 + seed * 7) % masked.len()]).unwrap() {
                        break;
                    }
                }
            }
        }
    }
}
