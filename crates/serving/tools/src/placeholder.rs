//! Arguments of a program that are filled in for each call: `{name}` or `--option={name}`.
//!
//! A value is one argument of the program, whatever it holds. No shell reads it.

use autoact_trajectory::{Arguments, ParameterSchema};
use serde_json::Value;

use crate::text::quoted;
use crate::tool::ToolError;

/// Programs that read the argument after `-c` as a script.
const SHELLS: [&str; 8] = ["sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "busybox"];

/// One argument of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Argument {
    /// Always the same.
    Fixed(String),
    /// The value of a property; left out when the call has none.
    Value {
        /// What stands before it: nothing, or `--option=`.
        prefix: String,
        /// The property's name.
        property: String,
        /// Whether a `-` at its beginning would make it an option of the program.
        bare: bool,
    },
}

/// The arguments of `program` as the tool library writes them. Without a schema there is nothing to
/// fill in.
pub(crate) fn arguments(program: &str, args: Vec<String>, schema: Option<&ParameterSchema>, mistakes: &mut Vec<String>) -> Vec<Argument> {
    let Some(schema) = schema else { return args.into_iter().map(Argument::Fixed).collect() };
    let shell = SHELLS.contains(&program.rsplit('/').next().unwrap_or(program));
    let mut options_end = false;
    let mut script_next = false;
    let mut all = Vec::with_capacity(args.len());
    for text in args {
        let argument = match placeholder(&text) {
            None => Argument::Fixed(text.clone()),
            Some((prefix, property)) => {
                if !schema.properties().any(|(name, _)| name == property) {
                    mistakes.push(format!("`run` fills in `{}`, which is no property of the schema", quoted(&text)));
                }
                if shell && script_next {
                    mistakes.push(format!(
                        "`run` gives `{}` to `{program}` as a script; write a fixed script and give it the value after it, as `$1`",
                        quoted(&text)
                    ));
                }
                Argument::Value { prefix: prefix.to_owned(), property: property.to_owned(), bare: prefix.is_empty() && !options_end }
            }
        };
        options_end |= text == "--";
        script_next = text.starts_with('-') && !text.starts_with("--") && text.contains('c');
        all.push(argument);
    }
    all
}

/// The prefix and the property of `{name}` and `--option={name}`.
fn placeholder(text: &str) -> Option<(&str, &str)> {
    let (prefix, rest) = match text.split_once('=') {
        Some((option, rest)) if option.starts_with("--") => (&text[..=option.len()], rest),
        _ => ("", text),
    };
    let name = rest.strip_prefix('{')?.strip_suffix('}')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (!name.is_empty() && name.chars().all(plain)).then_some((prefix, name))
}

/// The arguments of one call.
pub(crate) fn fill(arguments: &[Argument], values: Option<&Arguments>) -> Result<Vec<String>, ToolError> {
    let mut filled = Vec::with_capacity(arguments.len());
    for argument in arguments {
        match argument {
            Argument::Fixed(text) => filled.push(text.clone()),
            Argument::Value { prefix, property, bare } => {
                let Some(value) = values.and_then(|values| values.get(property)) else { continue };
                filled.push(format!("{prefix}{}", shown(property, value, *bare)?));
            }
        }
    }
    Ok(filled)
}

/// A text as it is, anything else as JSON.
fn shown(property: &str, value: &Value, bare: bool) -> Result<String, ToolError> {
    let Value::String(text) = value else { return Ok(value.to_string()) };
    if text.contains('\0') {
        return Err(ToolError::Params(format!("`/{property}`: no program can be given a text with a NUL character")));
    }
    if bare && text.starts_with('-') {
        return Err(ToolError::Params(format!("`/{property}`: expected a text that does not begin with `-`")));
    }
    Ok(text.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(program: &str, args: &[&str]) -> (Vec<Argument>, Vec<String>) {
        let schema = r#"{"type":"object","properties":{"amount":{"type":"number"},"from":{"type":"string"}}}"#;
        let schema = ParameterSchema::parse(schema).unwrap();
        let mut mistakes = Vec::new();
        let arguments = arguments(program, args.iter().map(|arg| (*arg).to_owned()).collect(), Some(&schema), &mut mistakes);
        (arguments, mistakes)
    }

    fn filled(args: &[&str], values: &str) -> Result<Vec<String>, ToolError> {
        let (arguments, mistakes) = read("units", args);
        assert!(mistakes.is_empty(), "{mistakes:?}");
        fill(&arguments, Some(&serde_json::from_str(values).unwrap()))
    }

    #[test]
    fn a_value_is_one_argument_whatever_it_holds() {
        let all = ["-t", "--from={from}", "{ from }", "x{from}", "{}", "{amount}"];
        let hostile = r#"{"amount":-3.5,"from":"a b; rm -rf / $(x) `y` \"z\" {amount}"}"#;
        let expected = ["-t", "--from=a b; rm -rf / $(x) `y` \"z\" {amount}", "{ from }", "x{from}", "{}", "-3.5"];
        assert_eq!(filled(&all, hostile).unwrap(), expected);
        assert_eq!(filled(&all, "{}").unwrap(), ["-t", "{ from }", "x{from}", "{}"]);
        assert_eq!(fill(&[Argument::Fixed("{x}".into())], None).unwrap(), ["{x}"]);
    }

    #[test]
    fn a_text_cannot_become_an_option() {
        let dash = r#"{"from":"-o/etc/passwd"}"#;
        assert!(matches!(filled(&["{from}"], dash), Err(ToolError::Params(_))));
        assert_eq!(filled(&["--", "{from}"], dash).unwrap(), ["--", "-o/etc/passwd"]);
        assert_eq!(filled(&["--from={from}"], dash).unwrap(), ["--from=-o/etc/passwd"]);
        assert!(matches!(filled(&["--from={from}"], "{\"from\":\"a\\u0000\"}"), Err(ToolError::Params(_))));
    }

    #[test]
    fn a_text_cannot_become_a_script() {
        assert_eq!(read("/bin/sh", &["-c", "{from}"]).1.len(), 1);
        assert_eq!(read("bash", &["-ec", "{from}"]).1.len(), 1);
        assert_eq!(read("sh", &["-c", "echo \"$1\"", "sh", "{from}"]).1, Vec::<String>::new());
        assert_eq!(read("units", &["{to}"]).1.len(), 1);
    }
}
