//! What a model with random weights writes for a tool with a schema is a call that satisfies it:
//! composed, decoded, read and checked as in the service. `AUTOACT_TEST_LONG=1`: 1,000 calls.
#![allow(clippy::unwrap_used, clippy::expect_used)] // tests

use std::collections::BTreeMap;
use std::sync::Arc;

use autoact_model::{Backend, Engine, EngineOptions, FinishReason, ModelDir};
use autoact_speaker::testing::tiny_model;
use autoact_speaker::{SpeakRequest, Speaker, params};
use autoact_tools::{Corpus, Page, Tool, ToolCall, ToolError, ToolLibrary, ToolOutput};
use autoact_trajectory::{Action, ParameterSchema, Role, Sampling, Step, ToolSpec, Trajectory, Turn};
use serde_json::{Value, json};

/// Does nothing: whether it is reached says whether its arguments satisfy its schema.
struct Reached(ToolSpec);

impl Tool for Reached {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn run(&self, _: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        Ok("reached".to_owned().into())
    }
}

/// An object of these properties, all of them required.
fn object(properties: Value) -> Value {
    let required: Vec<String> = properties.as_object().unwrap().keys().cloned().collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn text(most: usize) -> Value {
    json!({"type": "string", "maxLength": most})
}

/// One for each way in which a schema says what a value is, as far as a grammar can express it.
fn schemas() -> Vec<Value> {
    let place = object(json!({"name": text(8), "at": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}}));
    vec![
        object(json!({"name": text(12)})),
        object(json!({"from": text(6), "to": text(6), "when": {"type": "string", "format": "date"}})),
        object(json!({"at": {"type": "string", "format": "date-time"}})),
        object(json!({"at": {"type": "string", "format": "time"}, "for": {"type": "string", "format": "duration"}})),
        object(json!({"id": {"type": "string", "format": "uuid"}})),
        object(json!({"host": {"type": "string", "format": "ipv4"}})),
        object(json!({"code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3,5}$"}})),
        object(json!({"name": {"type": "string", "minLength": 3, "maxLength": 9}})),
        object(json!({"count": {"type": "integer", "minimum": 1, "maximum": 50}})),
        object(json!({"low": {"type": "integer", "exclusiveMinimum": -3, "exclusiveMaximum": 3}})),
        object(json!({"share": {"type": "number", "minimum": 0, "maximum": 1}})),
        object(json!({"degrees": {"type": "number", "exclusiveMinimum": -90, "maximum": 90.5}})),
        object(json!({"step": {"type": "integer", "multipleOf": 5, "minimum": 0, "maximum": 1000}})),
        object(json!({"unit": {"enum": ["km", "mi", "\"nautical\"", "ä", 7, null, true]}})),
        object(json!({"version": {"const": 2}, "kind": {"const": "a\nb"}})),
        object(json!({"flag": {"type": "boolean"}, "maybe": {"type": ["string", "null"], "maxLength": 4}})),
        object(json!({"tags": {"type": "array", "items": text(4), "minItems": 1, "maxItems": 3}})),
        object(
            json!({"pair": {"type": "array", "prefixItems": [{"type": "integer", "minimum": 0, "maximum": 9}, text(3)], "minItems": 2, "items": false}}),
        ),
        object(json!({"place": place, "near": {"type": "array", "items": place, "maxItems": 2}})),
        object(json!({"value": {"anyOf": [{"type": "integer", "minimum": 10, "maximum": 99}, {"type": "string", "maxLength": 3}]}})),
        object(
            json!({"shape": {"oneOf": [object(json!({"r": {"type": "integer", "minimum": 1, "maximum": 9}})), object(json!({"w": {"type": "integer", "minimum": 1, "maximum": 9}}))]}}),
        ),
        object(json!({"all": {"allOf": [{"type": "integer", "minimum": 3}, {"maximum": 8}]}})),
        json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/short"}, "b": {"$ref": "#/$defs/short"}},
            "required": ["a"], "additionalProperties": false, "$defs": {"short": text(5)}}),
        json!({"type": "object", "properties": {"q": text(8), "limit": {"type": "integer", "minimum": 1, "maximum": 20}, "exact": {"type": "boolean"}},
            "required": ["q"], "additionalProperties": false}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "additionalProperties": false,
            "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 7}, "s": text(5)}, "required": ["s", "n"]}),
    ]
}

#[test]
fn no_constrained_call_violates_its_schema() {
    let calls = if std::env::var_os("AUTOACT_TEST_LONG").is_some() { 1000 } else { 75 };
    let model = tiny_model("llama3").unwrap();
    let engine = Engine::start(&ModelDir::open(model.path()).unwrap(), EngineOptions::default()).unwrap();
    let speaker = Speaker::new(Arc::new(engine) as Arc<dyn Backend>);
    let spec = |(number, schema): (usize, Value)| ToolSpec {
        schema: Some(ParameterSchema::parse(&schema.to_string()).unwrap()),
        ..ToolSpec::new(format!("Tool{number}"))
    };
    let tools: Vec<ToolSpec> = schemas().into_iter().enumerate().map(spec).collect();
    let page = Page { title: "A page".into(), text: "Nothing.".into() };
    let mut library = ToolLibrary::bundled(Arc::new(Corpus::from_pages(vec![page]).unwrap())).unwrap();
    for tool in &tools {
        library = library.with_tool(Arc::new(Reached(tool.clone()))).unwrap();
    }
    let (mut whole, mut wrong, mut cut) = (0, Vec::new(), BTreeMap::<&str, usize>::new());
    for number in 0..calls {
        let tool = &tools[number % tools.len()];
        let step = Step { thought: "So.".into(), tool: tool.name.clone(), ..Step::default() };
        let trajectory = Trajectory {
            question: "What?".into(),
            tools: vec![tool.clone(), ToolSpec::new("Finish")],
            turns: vec![Turn::Step(step)],
            ..Trajectory::default()
        };
        let sampling = Sampling { temperature: 1.0, seed: number as u64, ..Sampling::default() };
        let request = SpeakRequest { sampling, ..SpeakRequest::new(Role::Tool, &trajectory) };
        let reply = futures::executor::block_on(speaker.reply(&request)).unwrap();
        if reply.finish != FinishReason::Grammar {
            *cut.entry(&tool.name).or_default() += 1;
            continue;
        }
        whole += 1;
        let params = params(&reply.text, Some(tool)).unwrap();
        let observation = library.execute(&Action { tool: tool.name.clone(), params: params.clone() }, &trajectory);
        if observation.text != "reached" {
            wrong.push(format!("{params}: {}", observation.text));
        }
    }
    println!("{calls} calls: {whole} whole, {} that violate their schema; cut: {cut:?}", wrong.len());
    assert!(wrong.is_empty(), "{} of {whole}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(whole * 10 >= calls * 9, "{whole} of {calls}");
}
