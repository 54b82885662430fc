//! What a terminal tool's parameters say: the answer.

use autoact_base::lines::several_lines;
use serde_json::Value;

use crate::parameters::{Arguments, ParameterSchema};
use crate::tool::ToolSpec;

/// What a terminal tool takes where an answer may have several lines. A string with a media type is
/// a text, not a line, so the model writes it as JSON, in which a line break cannot begin a line of
/// the transcript.
const TEXT_ANSWER: &str = r#"{"type":"object","properties":{"answer":{"type":"string","contentMediaType":"text/plain"}},"required":["answer"],"additionalProperties":false}"#;
/// How a JSON object of one string ends.
const END: &str = "\"}";
/// The longest escape within a string of JSON, `\u12ab`, without its last character.
const LONGEST_PART: usize = 5;

impl ToolSpec {
    /// The terminal tool for an answer of several lines. A tool that takes an object stays as it is.
    #[must_use]
    pub fn with_multiline_answer(mut self) -> ToolSpec {
        if self.is_answer()
            && self.object_schema().is_none()
            && let Ok(schema) = ParameterSchema::parse(TEXT_ANSWER)
        {
            self.usage = schema.usage(&self.name);
            self.schema = Some(schema);
            // they show the plain line
            self.examples.clear();
        }
        self
    }

    /// The answer that these parameters of a terminal tool are. Of an object with a single string it
    /// is that string, of any other object its JSON. A JSON object that was cut within the string
    /// gives what there is of it.
    pub fn answer(&self, params: &str) -> String {
        let Some(schema) = self.object_schema() else { return params.to_owned() };
        let arguments = schema.arguments(params).ok().or_else(|| completed(params));
        let Some(arguments) = arguments else { return params.to_owned() };
        let mut values = arguments.values();
        match (values.next(), values.next()) {
            (Some(Value::String(text)), None) => several_lines(text),
            _ => params.to_owned(),
        }
    }
}

/// The arguments of an object that was cut within its string: the string ends where it was cut.
fn completed(params: &str) -> Option<Arguments> {
    // an escape may have been cut as well
    let ends = params.char_indices().rev().map(|(at, _)| at).take(LONGEST_PART);
    std::iter::once(params.len()).chain(ends).find_map(|end| serde_json::from_str(&format!("{}{END}", &params[..end])).ok())
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::parameters::arguments_line;
    use crate::tool::{FINISH, Terminal};
    use proptest::prelude::*;

    fn finish(schema: Option<&str>) -> ToolSpec {
        ToolSpec {
            definition: "Gives the answer.".into(),
            usage: "Finish[answer]".into(),
            schema: schema.map(|text| ParameterSchema::parse(text).unwrap()),
            examples: vec!["Paris".into()],
            ..ToolSpec::new(FINISH)
        }
    }

    #[test]
    fn an_answer_is_a_line_unless_asked() {
        assert_eq!(finish(None).answer("{\"answer\":\"x\"}"), "{\"answer\":\"x\"}");
        let lines = finish(None).with_multiline_answer();
        assert_eq!((lines.usage.as_str(), lines.examples.len()), (r#"Finish{"answer": string}"#, 0));
        assert_eq!(lines.answer(r#"{"answer":"1. Loire\n2. Rhine\u2028"}"#), "1. Loire\n2. Rhine");
        assert_eq!(lines.clone().with_multiline_answer(), lines);
        for terminal in [None, Some(Terminal::NoAnswer)] {
            let other = ToolSpec { terminal, ..finish(None) };
            assert_eq!(other.clone().with_multiline_answer(), other);
        }
    }

    #[test]
    fn an_object_of_several_values_is_its_json() {
        let schema = r#"{"type":"object","properties":{"river":{"type":"string"},"km":{"type":"number"}}}"#;
        let typed = finish(Some(schema)).with_multiline_answer();
        assert_eq!(typed.answer(r#"{"river":"Loire","km":1006}"#), r#"{"river":"Loire","km":1006}"#);
        assert_eq!(typed.answer("{}"), "{}");
    }

    #[test]
    fn what_is_no_json_is_the_answer() {
        let lines = finish(None).with_multiline_answer();
        for text in ["Paris", "", "{\"answer\"", "[1]", "{\"answer\":3"] {
            assert_eq!(lines.answer(text), text);
        }
    }

    proptest! {
        #[test]
        fn a_cut_answer_is_its_beginning(text in "[a-z\"\\\\\n\u{e9}\u{2028}]{0,12}", cut in 0_usize..80) {
            let params = arguments_line(&Arguments::from_iter([("answer".to_owned(), text.clone().into())]));
            let begun = params.find(':').unwrap_or_default() + 2;
            let cut = params.floor_char_boundary((begun + cut).min(params.len()));
            let answer = finish(None).with_multiline_answer().answer(&params[..cut]);
            prop_assert!(several_lines(&text).starts_with(answer.trim_end()), "{params}: {answer}");
        }
    }
}
