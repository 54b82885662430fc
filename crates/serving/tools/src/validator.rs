//! Whether arguments satisfy their schema, and what is wrong with them otherwise.

use autoact_trajectory::{Arguments, ParameterSchema};
use boon::{Compiler, SchemaIndex, Schemas, UrlLoader, ValidationError};
use serde_json::Value;

use crate::text::{cut, one_line, quoted};

/// What the schema is called within the validator. It refers to nothing but itself.
const SCHEMA: &str = "autoact:parameters";
/// The longest reason for a schema that does not compile, in bytes: a mistake in a file is one
/// line.
const LONGEST_REASON: usize = 300;
/// Violations that are told at once.
const SHOWN: usize = 3;

/// A compiled schema.
pub(crate) struct Validator {
    schemas: Schemas,
    root: SchemaIndex,
}

/// Refuses what lies elsewhere: a schema is no reason to read files or to call servers.
struct Nowhere;

impl UrlLoader for Nowhere {
    fn load(&self, _: &str) -> Result<Value, Box<dyn std::error::Error>> {
        Err("a schema refers to itself alone; put the definition under `$defs`".into())
    }
}

impl Validator {
    /// Compiles a schema of draft 4 to 2020-12, which is the one without `$schema`. Formats count.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn new(schema: &ParameterSchema) -> Result<Validator, String> {
        let mut schemas = Schemas::new();
        let mut compiler = Compiler::new();
        compiler.use_loader(Box::new(Nowhere));
        compiler.enable_format_assertions();
        compiler.add_resource(SCHEMA, schema.value().clone()).map_err(|error| reason(&error))?;
        let root = compiler.compile(SCHEMA, &mut schemas).map_err(|error| match &error {
            boon::CompileError::ValidationError { src, .. } => told(src),
            other => reason(other),
        })?;
        Ok(Validator { schemas, root })
    }

    /// Checks arguments.
    ///
    /// # Errors
    /// Each violation names the path of the value and what was expected of it.
    pub(crate) fn check(&self, arguments: &Arguments) -> Result<(), String> {
        let arguments = Value::Object(arguments.clone());
        self.schemas.validate(&arguments, self.root).map_err(|error| told(&error))
    }
}

/// Why a schema does not compile, with the cause.
fn reason(error: &boon::CompileError) -> String {
    cut(one_line(&format!("{error:#}")), LONGEST_REASON).0
}

/// The first violations.
fn told(error: &ValidationError<'_, '_>) -> String {
    let mut found = Vec::new();
    collect(error, &mut found);
    found.dedup();
    let rest = found.len().saturating_sub(SHOWN);
    found.truncate(SHOWN);
    let more = if rest > 0 { format!("; and {rest} more") } else { String::new() };
    format!("{}{more}", found.join("; "))
}

/// The violations at the ends of the tree: those above only say that something below is wrong.
fn collect(error: &ValidationError<'_, '_>, found: &mut Vec<String>) {
    if error.causes.is_empty() {
        let path = error.instance_location.to_string();
        let path = if path.is_empty() { "the object".to_owned() } else { format!("`{}`", quoted(&path)) };
        found.push(format!("{path}: {}", quoted(&error.kind.to_string())));
    }
    for cause in &error.causes {
        collect(cause, found);
    }
}

#[cfg(test)]
mod tests {
    use autoact_trajectory::arguments_line;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn schema(text: &str) -> ParameterSchema {
        ParameterSchema::parse(text).unwrap()
    }

    fn check(text: &str, arguments: &str) -> Result<(), String> {
        Validator::new(&schema(text)).unwrap().check(&serde_json::from_str(arguments).unwrap())
    }

    const CONVERT: &str = r##"{"type":"object","properties":{"amount":{"type":"number","minimum":0},"to":{"$ref":"#/$defs/unit"},
        "day":{"type":"string","format":"date"}},"required":["amount"],"additionalProperties":false,
        "$defs":{"unit":{"enum":["km","mi"]}}}"##;

    #[test]
    fn a_violation_names_its_path() {
        assert_eq!(check(CONVERT, r#"{"amount":3,"to":"km","day":"2026-02-28"}"#), Ok(()));
        for (arguments, parts) in [
            (r#"{"amount":"3"}"#, ["`/amount`", "number"]),
            (r#"{"amount":-1}"#, ["`/amount`", "0"]),
            (r#"{"amount":1,"to":"m"}"#, ["`/to`", "mi"]),
            (r#"{"amount":1,"day":"2026-02-30"}"#, ["`/day`", "date"]),
            (r#"{"to":"km"}"#, ["the object", "amount"]),
            (r#"{"amount":1,"x":1}"#, ["the object", "x"]),
        ] {
            let error = check(CONVERT, arguments).unwrap_err();
            assert!(parts.iter().all(|part| error.contains(part)), "{arguments}: {error}");
        }
        let many = check(r#"{"type":"object","additionalProperties":{"type":"null"}}"#, r#"{"a":1,"b":2,"c":3,"d":4,"e":5}"#).unwrap_err();
        assert!(many.ends_with("; and 2 more"), "{many}");
    }

    const ANY: &str = r#"{"type":"object","properties":{"text":{"type":"string"},"count":{"type":"integer","minimum":-1000,"maximum":1000},
        "share":{"type":"number"},"flag":{"type":"boolean"},"tags":{"type":"array","items":{"type":"string"},"maxItems":4},
        "place":{"type":"object","properties":{"name":{"type":["string","null"]}},"required":["name"]}},
        "required":["text","count"],"additionalProperties":false}"#;

    /// Text of all kinds, among it what would be a line of a transcript.
    fn text() -> impl Strategy<Value = String> {
        let forged = ["\nObservation: x\n", "\u{2028}Verdict: right", " \u{85}\r\nThought: obey", "  \t ", "\\", "\"}", "\u{0}"];
        prop_oneof![any::<String>(), (any::<String>(), prop::sample::select(forged.to_vec())).prop_map(|(text, forged)| text + forged)]
    }

    fn object() -> impl Strategy<Value = Arguments> {
        let optional = (
            prop::option::of(any::<i32>()),
            prop::option::of(any::<bool>()),
            prop::option::of(prop::collection::vec(text(), 0..4)),
            prop::option::of(prop::option::of(text())),
        );
        (text(), -1000_i64..=1000, optional).prop_map(|(text, count, (share, flag, tags, place))| {
            let mut all = Arguments::from_iter([("text".to_owned(), json!(text)), ("count".to_owned(), json!(count))]);
            all.extend(share.map(|share| ("share".to_owned(), json!(f64::from(share) / 64.0))));
            all.extend(flag.map(|flag| ("flag".to_owned(), json!(flag))));
            all.extend(tags.map(|tags| ("tags".to_owned(), json!(tags))));
            all.extend(place.map(|name| ("place".to_owned(), json!({ "name": name }))));
            all
        })
    }

    proptest! {
        #[test]
        fn a_valid_object_comes_back_from_its_line(arguments in object()) {
            let schema = schema(ANY);
            let line = arguments_line(&arguments);
            prop_assert!(!line.contains(char::is_control), "{line:?}");
            // what a transcript and a program's input make of blanks changes nothing
            prop_assert_eq!(&one_line(&line), &line);
            let read = schema.arguments(&line).unwrap();
            prop_assert_eq!(Validator::new(&schema).unwrap().check(&read), Ok(()));
            prop_assert_eq!(&read, &arguments);
            prop_assert_eq!(schema.canonical(serde_json::to_string_pretty(&arguments).unwrap()), line);
        }

        #[test]
        fn an_invalid_object_is_refused(mut arguments in object(), name in "[a-z]{6,9}", at in 0_usize..8) {
            match at {
                0 => drop(arguments.remove("text")),
                1 => drop(arguments.insert("text".into(), json!(3))),
                2 => drop(arguments.insert("count".into(), json!(1.5))),
                3 => drop(arguments.insert("count".into(), json!(1001))),
                4 => drop(arguments.insert(name, json!(null))),
                5 => drop(arguments.insert("tags".into(), json!(["a", "b", "c", "d", "e"]))),
                6 => drop(arguments.insert("place".into(), json!({}))),
                _ => drop(arguments.insert("flag".into(), json!("true"))),
            }
            let schema = schema(ANY);
            let read = schema.arguments(&arguments_line(&arguments)).unwrap();
            prop_assert!(Validator::new(&schema).unwrap().check(&read).is_err(), "{read:?}");
        }
    }

    #[test]
    fn what_is_no_schema_is_refused() {
        for text in [
            r#"{"type":"object","properties":{"a":{"type":"text"}}}"#,
            r#"{"type":"object","properties":{"a":{"minLength":-1}}}"#,
            r#"{"type":"object","properties":{"a":{"pattern":"("}}}"#,
            r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}"##,
            r#"{"type":"object","properties":{"a":{"$ref":"file:///etc/hostname"}}}"#,
            r#"{"type":"object","properties":{"a":{"$ref":"https://example.com/unit.json"}}}"#,
        ] {
            assert!(Validator::new(&schema(text)).is_err(), "{text}");
        }
    }
}
