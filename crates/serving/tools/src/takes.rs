//! The part of a tool's entry that says what the tool takes: its usage, its schema and its
//! examples.

use std::sync::Arc;

use autoact_trajectory::{ParameterSchema, arguments_line};

use crate::file::{LONGEST_TEXT, prose};
use crate::text::{one_line, quoted};
use crate::validator::Validator;

/// A model learns little from more, and all of them stand in its prompt.
const MOST_EXAMPLES: usize = 4;

/// What a tool takes.
pub(crate) struct Takes {
    pub(crate) usage: String,
    pub(crate) schema: Option<ParameterSchema>,
    pub(crate) validator: Option<Arc<Validator>>,
    pub(crate) examples: Vec<String>,
}

/// Reads an entry's part. A usage that is not written follows from the schema.
pub(crate) fn takes(name: &str, usage: Option<String>, schema: Option<&str>, examples: Vec<String>, mistakes: &mut Vec<String>) -> Takes {
    let written = schema.is_some();
    let schema = schema.and_then(|text| match ParameterSchema::parse(text) {
        Ok(schema) => Some(schema),
        Err(error) => {
            mistakes.push(format!("`schema`: {error}"));
            None
        }
    });
    let validator = schema.as_ref().and_then(|schema| match Validator::new(schema) {
        Ok(validator) => Some(Arc::new(validator)),
        Err(error) => {
            mistakes.push(format!("`schema`: {error}"));
            None
        }
    });
    let usage = match (&schema, usage) {
        (Some(schema), None) => derived(schema.usage(name), mistakes),
        // its schema is a mistake already
        (None, None) if written => String::new(),
        (schema, usage) => shown(name, prose("usage", usage, mistakes), schema.as_ref(), mistakes),
    };
    let examples = checked(examples, schema.as_ref(), validator.as_deref(), mistakes);
    Takes { usage, schema, validator, examples }
}

fn derived(usage: String, mistakes: &mut Vec<String>) -> String {
    if usage.len() > LONGEST_TEXT {
        mistakes
            .push(format!("the usage that follows from its schema has {} bytes; write a `usage` of at most {LONGEST_TEXT}", usage.len()));
    }
    usage
}

/// A written usage shows a call: brackets around a line, braces around arguments.
fn shown(name: &str, usage: String, schema: Option<&ParameterSchema>, mistakes: &mut Vec<String>) -> String {
    let object = schema.is_some_and(|schema| schema.line_property().is_none());
    let is_call = |open: char, close: char| usage.strip_prefix(name).is_some_and(|rest| rest.starts_with(open) && rest.ends_with(close));
    let shown = is_call('[', ']') || object && is_call('{', '}');
    if !(usage.is_empty() || shown) {
        mistakes.push(format!("the usage `{usage}` does not show a call; expected something like `{name}[what]`"));
    }
    usage
}

/// Examples as a model writes them. Each has to be a call that would be run.
fn checked(
    examples: Vec<String>,
    schema: Option<&ParameterSchema>,
    validator: Option<&Validator>,
    mistakes: &mut Vec<String>,
) -> Vec<String> {
    if examples.len() > MOST_EXAMPLES {
        mistakes.push(format!("it has {} `examples`; expected at most {MOST_EXAMPLES}", examples.len()));
    }
    let mut all = Vec::with_capacity(examples.len());
    for example in examples {
        let line = match line(&example, schema, validator) {
            Ok(line) => line,
            Err(mistake) => {
                mistakes.push(format!("the example `{}`: {mistake}", quoted(&example)));
                continue;
            }
        };
        if line.is_empty() || line.len() > LONGEST_TEXT {
            mistakes.push(format!("the example `{}` must be one line of at most {LONGEST_TEXT} bytes", quoted(&example)));
        }
        all.push(line);
    }
    all
}

fn line(example: &str, schema: Option<&ParameterSchema>, validator: Option<&Validator>) -> Result<String, String> {
    let (Some(schema), Some(validator)) = (schema, validator) else { return Ok(one_line(example)) };
    let arguments = schema.arguments(example).map_err(|error| error.to_string())?;
    validator.check(&arguments)?;
    Ok(if schema.line_property().is_some() { one_line(example) } else { arguments_line(&arguments) })
}
