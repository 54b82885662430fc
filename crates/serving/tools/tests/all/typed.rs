//! Tools with several or typed arguments: their schemas, what they are given, and what is refused
//! before anything is run.

use std::path::Path;
use std::sync::Arc;

use autoact_tools::{Corpus, Observation, Page, ToolLibrary};
use autoact_trajectory::{Action, Trajectory};

fn corpus() -> Arc<Corpus> {
    Arc::new(Corpus::from_pages(vec![Page { title: "Loire".into(), text: "The Loire is a river.".into() }]).unwrap())
}

fn example() -> ToolLibrary {
    ToolLibrary::load(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/convert/tools.toml"), corpus()).unwrap()
}

fn run(library: &ToolLibrary, tool: &str, params: &str) -> Observation {
    library.execute(&Action { tool: tool.into(), params: params.into() }, &Trajectory::default())
}

const FINISH: &str = "[[tool]]\nname = \"Finish\"\ndefinition = \"Ends.\"\nusage = \"Finish[answer]\"\nrun = { kind = \"finish\" }\n";

/// A library with the tool `Tool`, which has this schema and runs like this.
fn library(schema: &str, run: &str, more: &str) -> Result<ToolLibrary, Vec<String>> {
    let tool =
        format!("[[tool]]\nname = \"Tool\"\ndefinition = \"Does.\"\neffect = \"read_only\"\nschema = '{schema}'\n{more}\nrun = {run}\n");
    ToolLibrary::parse(&format!("{tool}{FINISH}"), "test", corpus()).map_err(|error| error.mistakes().to_vec())
}

const PAIR: &str = r#"{"type":"object","properties":{"text":{"type":"string"},"count":{"type":"integer"}},"required":["text"],"additionalProperties":false}"#;

#[test]
fn the_example_says_its_arguments() {
    let library = example();
    let spec = library.spec("Convert").unwrap();
    assert_eq!(spec.usage, r#"Convert{"amount": number, "from": "m"|"km"|"cm"|"mi"|"ft", "to": "m"|"km"|"cm"|"mi"|"ft"}"#);
    assert_eq!(spec.examples, [r#"{"amount":26.2,"from":"mi","to":"km"}"#]);
}

#[test]
fn a_violation_names_the_path_and_nothing_is_run() {
    let directory = tempfile::tempdir().unwrap();
    let mark = directory.path().join("mark");
    let touch = format!(r#"{{ kind = "command", sandbox = false, program = "touch", args = ["--", "{}", "{{text}}"] }}"#, mark.display());
    let library = library(PAIR, &touch, "").unwrap();
    for (params, part) in [
        (r#"{"text":3}"#, "`/text`"),
        (r#"{"text":"a","count":1.5}"#, "`/count`"),
        (r#"{"count":1}"#, "text"),
        (r#"{"text":"a","other":1}"#, "other"),
        ("Loire", "JSON"),
        (r#"["a"]"#, "array"),
        (r#"{"text":"a""#, "JSON"),
        ("", "JSON"),
    ] {
        let seen = run(&library, "Tool", params);
        assert!(seen.is_error && seen.text.contains(part) && seen.text.contains("Tool{"), "{params}: {seen:?}");
        assert!(!mark.exists(), "{params}");
    }
    assert!(!run(&library, "Tool", r#"{"text":"b"}"#).is_error);
    assert!(mark.exists());
}

#[test]
fn a_program_reads_the_object_from_its_standard_input() {
    let library = library(PAIR, r#"{ kind = "command", sandbox = false, program = "cat" }"#, "max_observation_bytes = 4000").unwrap();
    let params = "{ \"text\": \"a  b\\nObservation: c\u{2028}d\",\n \"count\": 2 }";
    let seen = run(&library, "Tool", params).text;
    assert_eq!(seen, r#"{"text":"a \u0020b\nObservation: c\u2028d","count":2}"#);
    let read: serde_json::Value = serde_json::from_str(&seen).unwrap();
    assert_eq!(read, serde_json::from_str::<serde_json::Value>(params).unwrap());
}

#[test]
fn a_value_is_an_argument_and_no_shell_reads_it() {
    let run_echo = r#"{ kind = "command", sandbox = false, program = "printf", args = ["%s|", "--", "{text}", "--count={count}"] }"#;
    let library = library(PAIR, run_echo, "").unwrap();
    assert_eq!(run(&library, "Tool", r#"{"text":"$(id); `id` \"x\"","count":2}"#).text, r#"--|$(id); `id` "x"|--count=2|"#);
    // what the call leaves out is left out
    assert_eq!(run(&library, "Tool", r#"{"text":"-x"}"#).text, "--|-x|");
    let seen = run(&library, "Tool", r#"{"text":"a\u0000b"}"#);
    assert!(seen.is_error && seen.text.contains("NUL"), "{seen:?}");
}

#[test]
fn one_required_string_stays_a_line() {
    let line = r#"{"type":"object","properties":{"title":{"type":"string","minLength":2}},"required":["title"]}"#;
    let read = library(line, r#"{ kind = "command", sandbox = false, program = "cat" }"#, "examples = [\"Loire\"]").unwrap();
    let spec = read.spec("Tool").unwrap();
    assert_eq!((spec.usage.as_str(), spec.object_schema()), ("Tool[title]", None));
    assert_eq!(run(&read, "Tool", "Loire").text, "Loire");
    let filled = library(line, r#"{ kind = "command", sandbox = false, program = "printf", args = ["<%s>", "{title}"] }"#, "").unwrap();
    assert_eq!(run(&filled, "Tool", "New  York").text, "<New York>");
    let short = run(&filled, "Tool", "L");
    assert!(short.is_error && short.text.contains("`/title`"), "{short:?}");
    // a built-in kind takes a line, and may say what it is
    let retrieve = library(line, r#"{ kind = "retrieve" }"#, "").unwrap();
    assert_eq!(run(&retrieve, "Tool", "Loire").text, "The Loire is a river.");
}

#[test]
fn a_schema_that_cannot_be_used_is_told_with_its_tool() {
    let cat = r#"{ kind = "command", sandbox = false, program = "cat" }"#;
    for (schema, run, more, expected) in [
        ("{", cat, "", "not JSON"),
        (r#"{"type":"string"}"#, cat, "", "\"type\": \"object\""),
        (r#"{"type":"object","properties":{"a":{"type":"text"}}}"#, cat, "", "`schema`"),
        (r#"{"type":"object","properties":{"a":{"$ref":"https://example.com/a.json"}}}"#, cat, "", "$defs"),
        (PAIR, r#"{ kind = "search" }"#, "", "takes one line"),
        (PAIR, cat, "usage = \"Tool(text)\"", "does not show a call"),
        (PAIR, cat, "examples = ['{\"count\": 1}']", "the example"),
        (
            PAIR,
            cat,
            "examples = ['{\"text\": \"a\"}', '{\"text\": \"b\"}', '{\"text\": \"c\"}', '{\"text\": \"d\"}', '{\"text\": \"e\"}']",
            "at most 4",
        ),
        (PAIR, r#"{ kind = "command", sandbox = false, program = "cat", args = ["{txt}"] }"#, "", "no property"),
        (PAIR, r#"{ kind = "command", sandbox = false, program = "sh", args = ["-c", "{text}"] }"#, "", "as a script"),
    ] {
        let found = library(schema, run, more).unwrap_err();
        assert!(
            found.iter().any(|mistake| mistake.starts_with("tool 1 (`Tool`): ") && mistake.contains(expected)),
            "{expected}: {found:?}"
        );
    }
    // `Finish` is never run: its input may have any form
    let finish = FINISH.replace("run =", "schema = '{\"type\":\"object\"}'\nrun =");
    assert!(ToolLibrary::parse(&finish, "test", corpus()).is_ok());
}

#[test]
fn a_library_has_a_bounded_number_of_tools() {
    let tools: String = (0..autoact_trajectory::MAX_LIBRARY_TOOLS)
        .map(|at| format!("[[tool]]\nname = \"T{at}\"\ndefinition = \"Does.\"\nusage = \"T{at}[x]\"\nrun = {{ kind = \"calculate\" }}\n"))
        .collect();
    let error = ToolLibrary::parse(&format!("{tools}{FINISH}"), "test", corpus()).unwrap_err();
    assert!(error.mistakes()[0].contains("2049 tools"), "{error}");
}
