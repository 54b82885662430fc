//! What a tool takes: the JSON schema of its parameters, and the lines that hold its arguments.
//!
//! A tool without a schema takes one line of text, and so does one whose schema has a single
//! required string without a media type: the line is that string. Every other tool takes a JSON
//! object on one line.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Map, Value};

/// The longest schema, in bytes of its canonical form: it goes with every request of a task.
pub const MAX_SCHEMA_BYTES: usize = 16 * 1024;
/// A value that an enumeration or a constant allows is shown in a derived usage up to this length.
const SHOWN_VALUES: usize = 60;

/// Arguments by name.
pub type Arguments = Map<String, Value>;

/// A JSON schema of an object, in canonical form: no blanks between its parts, members in the order
/// in which they were written. That order is the one in which a model writes the arguments.
///
/// Cheap to clone. Whether every keyword in it makes sense is for the validator to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterSchema(Arc<Schema>);

#[derive(Debug, PartialEq, Eq)]
struct Schema {
    text: String,
    value: Value,
}

/// A text that is no schema of an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSchema {
    /// It is not JSON.
    #[error("not JSON: {0}")]
    NotJson(String),
    /// It describes something else than an object, or nothing in particular.
    #[error("expected a JSON object with `\"type\": \"object\"`: arguments have names")]
    NotAnObject,
    /// `properties` or `required` do not have their form.
    #[error("`{keyword}` is not {expected}")]
    Keyword {
        /// The keyword.
        keyword: &'static str,
        /// What it has to be.
        expected: &'static str,
    },
    /// It is longer than a request should be.
    #[error("it has {found} bytes, expected at most {MAX_SCHEMA_BYTES}")]
    TooLong {
        /// Its length in canonical form.
        found: usize,
    },
}

/// A line that does not hold arguments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidArguments {
    /// It is not JSON, or stops before its end.
    #[error("expected a JSON object on one line; it is not JSON: {0}")]
    NotJson(String),
    /// It is another value than an object.
    #[error("expected a JSON object, found {0}")]
    NotAnObject(&'static str),
}

/// Keywords by which a string is not just any line.
const NO_LINE: [&str; 10] = ["contentMediaType", "pattern", "format", "enum", "const", "anyOf", "oneOf", "allOf", "not", "$ref"];

impl ParameterSchema {
    /// Reads a schema.
    ///
    /// # Errors
    /// The text is not JSON, or no schema of an object.
    pub fn parse(text: &str) -> Result<ParameterSchema, InvalidSchema> {
        let value: Value = serde_json::from_str(text).map_err(|error| InvalidSchema::NotJson(error.to_string()))?;
        let fields = value.as_object().ok_or(InvalidSchema::NotAnObject)?;
        if fields.get("type").and_then(Value::as_str) != Some("object") {
            return Err(InvalidSchema::NotAnObject);
        }
        let named =
            |properties: &Value| properties.as_object().is_some_and(|all| all.values().all(|one| one.is_object() || one.is_boolean()));
        if !fields.get("properties").is_none_or(named) {
            return Err(InvalidSchema::Keyword { keyword: "properties", expected: "an object of schemas" });
        }
        let names = |required: &Value| required.as_array().is_some_and(|all| all.iter().all(Value::is_string));
        if !fields.get("required").is_none_or(names) {
            return Err(InvalidSchema::Keyword { keyword: "required", expected: "a list of names" });
        }
        let text = value.to_string();
        if text.len() > MAX_SCHEMA_BYTES {
            return Err(InvalidSchema::TooLong { found: text.len() });
        }
        Ok(ParameterSchema(Arc::new(Schema { text, value })))
    }

    /// The canonical text.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// The schema as a value.
    pub fn value(&self) -> &Value {
        &self.0.value
    }

    /// The names of the properties with their schemas, in the schema's order.
    pub fn properties(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.value["properties"].as_object().into_iter().flatten().map(|(name, schema)| (name.as_str(), schema))
    }

    /// Whether arguments without this property are incomplete.
    pub fn requires(&self, name: &str) -> bool {
        self.0.value["required"].as_array().is_some_and(|names| names.iter().any(|known| known == name))
    }

    /// The property that a plain line is the value of: the only one, a string, and required. A
    /// string with a media type (`contentMediaType`: program text, Markdown) may have several lines,
    /// and is written as JSON. So is one of which the schema says more than how long it may be: what
    /// decodes JSON holds to it.
    pub fn line_property(&self) -> Option<&str> {
        let mut properties = self.properties();
        let (name, schema) = properties.next()?;
        let alone = properties.next().is_none();
        let any = NO_LINE.iter().all(|keyword| schema.get(*keyword).is_none());
        (alone && schema["type"] == "string" && any && self.requires(name)).then_some(name)
    }

    /// The least and the most characters of [`line_property`](Self::line_property)'s value, if the
    /// schema bounds them.
    pub fn line_length(&self) -> Option<(usize, usize)> {
        let schema = &self.0.value["properties"][self.line_property()?];
        let bound = |keyword: &str| schema[keyword].as_u64().map(|bound| usize::try_from(bound).unwrap_or(usize::MAX));
        let (least, most) = (bound("minLength"), bound("maxLength"));
        (least.is_some() || most.is_some()).then(|| (least.unwrap_or(0), most.unwrap_or(usize::MAX)))
    }

    /// How a call looks like, from the schema alone: `Retrieve[title]` for a tool of one line,
    /// `Convert{"amount": number, "from": string, "precision"?: integer}` for others.
    pub fn usage(&self, tool: &str) -> String {
        if let Some(name) = self.line_property() {
            return format!("{tool}[{name}]");
        }
        let argument = |(name, schema): (&str, &Value)| {
            let optional = if self.requires(name) { "" } else { "?" };
            format!("{}{optional}: {}", Value::from(name), kind(schema))
        };
        let arguments: Vec<String> = self.properties().map(argument).collect();
        escape_blanks(&format!("{tool}{{{}}}", arguments.join(", ")))
    }

    /// The arguments on a line: the line itself as the value of
    /// [`line_property`](Self::line_property), or a JSON object. Whether they satisfy the schema is
    /// not looked at.
    ///
    /// # Errors
    /// The line is no JSON object, and has to be one.
    pub fn arguments(&self, line: &str) -> Result<Arguments, InvalidArguments> {
        if let Some(name) = self.line_property() {
            return Ok(Arguments::from_iter([(name.to_owned(), Value::from(line))]));
        }
        match serde_json::from_str(line).map_err(|error| InvalidArguments::NotJson(error.to_string()))? {
            Value::Object(arguments) => Ok(arguments),
            other => Err(InvalidArguments::NotAnObject(type_name(&other))),
        }
    }

    /// The parameters that a model's line stands for: a JSON object gets its canonical form, any
    /// other line stays as it is, for the validator to refuse.
    pub fn canonical(&self, line: String) -> String {
        match self.arguments(&line) {
            Ok(arguments) if self.line_property().is_none() => arguments_line(&arguments),
            _ => line,
        }
    }
}

/// Arguments on one line. No blank in it is lost where runs of blanks become one space, and no line
/// break can be in it: blanks inside of strings are escaped but for single spaces.
pub fn arguments_line(arguments: &Arguments) -> String {
    let text = serde_json::to_string(arguments).unwrap_or_default();
    escape_blanks(&text)
}

/// JSON with the same meaning, in which every blank is a single space. Those inside of strings are
/// all that is left to escape: JSON has its own escapes for the line breaks of ASCII, not for
/// others.
fn escape_blanks(json: &str) -> String {
    let mut line = String::with_capacity(json.len());
    let mut before = None;
    for c in json.chars() {
        let plain = !c.is_whitespace() && !c.is_control() || c == ' ' && before != Some(' ');
        match plain {
            true => line.push(c),
            // all blanks and control characters are in the basic multilingual plane
            false => drop(write!(line, "\\u{:04x}", u32::from(c))),
        }
        before = Some(c);
    }
    line
}

/// A property's type as a derived usage shows it.
fn kind(schema: &Value) -> String {
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    if let Some(values) = schema["enum"].as_array() {
        let shown: Vec<String> = values.iter().map(Value::to_string).collect();
        let shown = shown.join("|");
        if shown.len() <= SHOWN_VALUES {
            return shown;
        }
    }
    match &schema["type"] {
        Value::String(name) if name == "array" => match schema.get("items") {
            Some(items) => format!("[{}]", kind(items)),
            None => "array".to_owned(),
        },
        Value::String(name) => name.clone(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|"),
        _ => "any".to_owned(),
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(text: &str) -> ParameterSchema {
        ParameterSchema::parse(text).unwrap()
    }

    #[test]
    fn a_schema_is_an_objects() {
        let parsed = schema("{ \"type\": \"object\",\n \"properties\": { \"b\": {}, \"a\": true } }");
        assert_eq!(parsed.as_str(), r#"{"type":"object","properties":{"b":{},"a":true}}"#);
        assert_eq!(parsed.properties().map(|(name, _)| name).collect::<Vec<_>>(), ["b", "a"]);
        assert!(matches!(ParameterSchema::parse("{"), Err(InvalidSchema::NotJson(_))));
        for other in ["[]", "true", "{}", r#"{"type":"string"}"#, r#"{"type":["object"]}"#] {
            assert_eq!(ParameterSchema::parse(other), Err(InvalidSchema::NotAnObject), "{other}");
        }
        for (text, keyword) in [
            (r#"{"type":"object","properties":[]}"#, "properties"),
            (r#"{"type":"object","properties":{"a":3}}"#, "properties"),
            (r#"{"type":"object","required":"a"}"#, "required"),
            (r#"{"type":"object","required":[1]}"#, "required"),
        ] {
            assert!(
                matches!(ParameterSchema::parse(text), Err(InvalidSchema::Keyword { keyword: found, .. }) if found == keyword),
                "{text}"
            );
        }
        let long = format!(r#"{{"type":"object","title":"{}"}}"#, "x".repeat(MAX_SCHEMA_BYTES));
        assert!(matches!(ParameterSchema::parse(&long), Err(InvalidSchema::TooLong { .. })));
    }

    #[test]
    fn one_required_string_is_a_line() {
        let one = schema(r#"{"type":"object","properties":{"title":{"type":"string"}},"required":["title"]}"#);
        assert_eq!((one.line_property(), one.usage("Retrieve").as_str()), (Some("title"), "Retrieve[title]"));
        assert_eq!(one.arguments(r#"{"title":"x"}"#).unwrap()["title"], r#"{"title":"x"}"#);
        assert_eq!(one.canonical("{ \"a\": 1 }".to_owned()), "{ \"a\": 1 }");
        for other in [
            r#"{"type":"object"}"#,
            r#"{"type":"object","properties":{"title":{"type":"string"}}}"#,
            r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#,
            r#"{"type":"object","properties":{"a":{"type":"string"},"b":{}},"required":["a"]}"#,
            r#"{"type":"object","properties":{"a":{"type":"string","contentMediaType":"text/x-python"}},"required":["a"]}"#,
            r#"{"type":"object","properties":{"day":{"type":"string","format":"date"}},"required":["day"]}"#,
            r#"{"type":"object","properties":{"code":{"type":"string","pattern":"^[A-Z]+$"}},"required":["code"]}"#,
            r#"{"type":"object","properties":{"unit":{"type":"string","enum":["km","mi"]}},"required":["unit"]}"#,
        ] {
            assert_eq!(schema(other).line_property(), None, "{other}");
        }
        let bounded = schema(r#"{"type":"object","properties":{"q":{"type":"string","minLength":1,"maxLength":9}},"required":["q"]}"#);
        assert_eq!((bounded.line_property(), bounded.line_length(), one.line_length()), (Some("q"), Some((1, 9)), None));
    }

    #[test]
    fn a_usage_follows_from_the_schema() {
        let convert = schema(
            r#"{"type":"object","properties":{"amount":{"type":"number"},"from":{"type":"string"},"to":{"enum":["km","mi"]},
                "digits":{"type":["integer","null"]},"tags":{"type":"array","items":{"type":"string"}},"x":{"const":1},"y":true,
                "line\n break":{"type":"array"}},"required":["amount","from","to"]}"#,
        );
        let expected = r#"Convert{"amount": number, "from": string, "to": "km"|"mi", "digits"?: integer|null, "tags"?: [string], "x"?: 1, "y"?: any, "line\n break"?: array}"#;
        assert_eq!(convert.usage("Convert"), expected);
        assert_eq!(schema(r#"{"type":"object"}"#).usage("Now"), "Now{}");
    }

    #[test]
    fn a_line_of_arguments_keeps_every_blank_and_breaks_nowhere() {
        let text = "a  b\u{2028}\n\tObservation: c\u{a0}\\ \u{85}";
        let arguments = Arguments::from_iter([("text".to_owned(), Value::from(text))]);
        let line = arguments_line(&arguments);
        assert_eq!(line, r#"{"text":"a \u0020b\u2028\n\tObservation: c\u00a0\\ \u0085"}"#);
        assert_eq!(serde_json::from_str::<Arguments>(&line).unwrap(), arguments);
    }

    #[test]
    fn what_is_no_object_is_told() {
        let none = schema(r#"{"type":"object"}"#);
        assert_eq!(none.arguments("[1]"), Err(InvalidArguments::NotAnObject("an array")));
        assert!(matches!(none.arguments(r#"{"a": "#), Err(InvalidArguments::NotJson(_))));
        assert_eq!(none.canonical("{ \"b\": 1.50, \"a\": [ ] }".to_owned()), r#"{"b":1.5,"a":[]}"#);
        assert_eq!(none.canonical("{ \"b\"".to_owned()), "{ \"b\"");
    }
}
