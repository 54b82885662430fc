//! A tool with several typed arguments, from the question to the answer: with a scripted model, and
//! with random weights that only the grammar holds to the schema.
#![allow(clippy::unwrap_used)] // tests

use std::path::Path;
use std::sync::Arc;

use autoact_in_process::{LocalGroup, RunOptions, Voices};
use autoact_model::{Backend, ChatTemplate, Engine, EngineOptions, FinishReason, GenerateError, Grammar, ModelDir};
use autoact_speaker::testing::{ScriptedBackend, tiny_model};
use autoact_speaker::{SpeakRequest, Speaker, params};
use autoact_tools::{Corpus, Page, ToolLibrary};
use autoact_trajectory::{Role, Sampling, Step, Task, Trajectory, Turn};
use futures::executor::block_on;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../serving/tools/examples/convert");
const QUESTION: &str = "How many kilometres are 26.2 miles?";

/// The example's. Its program is trusted: a confined one is started by this executable, which a
/// test's cannot do.
fn library() -> Arc<ToolLibrary> {
    let page = Page { title: "Loire".into(), text: "The Loire is a river.".into() };
    let text = std::fs::read_to_string(Path::new(EXAMPLE).join("tools.toml")).unwrap();
    let trusted = text.replace("program = \"./", &format!("sandbox = false, program = \"{EXAMPLE}/"));
    assert_ne!(trusted, text);
    Arc::new(ToolLibrary::parse(&trusted, EXAMPLE, Arc::new(Corpus::from_pages(vec![page]).unwrap())).unwrap())
}

/// What comes of the question when Tool-Agent writes these lines, one after the other.
fn run(backend: ScriptedBackend) -> (Task, Arc<ScriptedBackend>) {
    let backend = Arc::new(backend);
    let group = LocalGroup::new(Arc::clone(&backend) as Arc<dyn Backend>, library(), Voices::base());
    let task = group.run(QUESTION, group.library().specs(), &RunOptions::default()).unwrap();
    (task, backend)
}

fn scripted(inputs: [&'static str; 2]) -> ScriptedBackend {
    ScriptedBackend::new(move |request| {
        let prompt: &str = &request.prompt;
        let calls = prompt.matches("Action: Convert").count();
        Ok(match prompt.rsplit(['\n', '>']).next().unwrap_or_default() {
            "Thought:" if prompt.contains("42.1648 km") => " It is 42.1648 km.\nAction: Finish\n".to_owned(),
            "Thought:" => " I need the length in km.\nAction: Convert\n".to_owned(),
            "Input:" if prompt.contains("Action: Finish") => " 42.1648 km\n".to_owned(),
            "Input:" => inputs[(calls - 1).min(1)].to_owned(),
            "Reflection:" => " So it is.\nVerdict: right\n".to_owned(),
            other => return Err(GenerateError::engine(format!("asked `{other}`"))),
        })
    })
}

#[test]
fn a_scripted_model_calls_a_tool_with_several_arguments() {
    let (task, backend) = run(scripted([" { \"amount\": 26.2,\n \"from\": \"mi\", \"to\": \"km\" }\n", ""]));
    assert!(task.finished().unwrap().approved, "{task:?}");
    let step = task.trajectory().steps().next().unwrap();
    assert_eq!(step.params.as_deref(), Some(r#"{"amount":26.2,"from":"mi","to":"km"}"#));
    assert_eq!(step.observation.as_deref(), Some("26.2 mi is 42.1648 km."));
    let asked = backend.requests();
    let input = asked.iter().find(|asked| asked.prompt.ends_with("Action: Convert\nInput:")).unwrap();
    assert!(matches!(&input.grammar, Some(Grammar::JsonLine(schema)) if schema["required"][0] == "amount"), "{:?}", input.grammar);
    assert!(asked[0].prompt.starts_with("Tools: Convert{\"amount\": number, "), "{}", asked[0].prompt.as_str());
    // the answer stays a plain line
    let answer = asked.iter().find(|asked| asked.prompt.ends_with("Action: Finish\nInput:")).unwrap();
    assert!(matches!(&answer.grammar, Some(Grammar::Regex(_))));
    assert!(
        answer.prompt.contains("\nInput: {\"amount\":26.2,\"from\":\"mi\",\"to\":\"km\"}\nObservation: "),
        "{}",
        answer.prompt.as_str()
    );
}

#[test]
fn arguments_that_violate_the_schema_are_an_observation() {
    let (task, _) = run(scripted([" {\"amount\": \"26.2\", \"from\": \"mi\"}\n", " {\"amount\":26.2,\"from\":\"mi\",\"to\":\"km\"}\n"]));
    let seen: Vec<&str> = task.trajectory().steps().filter_map(|step| step.observation.as_deref()).collect();
    assert!(seen[0].contains("`/amount`") && seen[0].contains("Convert{"), "{seen:?}");
    assert_eq!(seen[1], "26.2 mi is 42.1648 km.");
    assert!(task.finished().unwrap().approved);
}

#[test]
fn a_chat_says_what_the_arguments_are() {
    let template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>";
    let template = ChatTemplate::new(template.into(), String::new(), String::new()).unwrap();
    let (task, backend) = run(scripted([" {\"amount\":26.2,\"from\":\"mi\",\"to\":\"km\"}\n", ""]).with_template(template));
    assert!(task.finished().unwrap().approved, "{task:?}");
    let asked = backend.requests()[0].prompt.as_str().to_owned();
    for part in [
        "Its input is a JSON object on one line. For example: {\"amount\":26.2,\"from\":\"mi\",\"to\":\"km\"}\n",
        "\n  - amount: the length\n",
        "\n- Finish[answer]: Gives the answer to the question.\n",
    ] {
        assert!(asked.contains(part), "{part} is not in {asked}");
    }
}

#[test]
fn random_weights_write_arguments_that_are_run() {
    let library = library();
    let step = Step { thought: "So.".into(), tool: "Convert".into(), ..Step::default() };
    let trajectory =
        Trajectory { question: QUESTION.into(), tools: library.specs().to_vec(), turns: vec![Turn::Step(step)], ..Trajectory::default() };
    for fixture in ["qwen2", "mistral"] {
        let files = tiny_model(fixture).unwrap();
        let engine = Engine::start(&ModelDir::open(files.path()).unwrap(), EngineOptions::default()).unwrap();
        let speaker = Speaker::new(Arc::new(engine));
        for seed in 0..8 {
            let sampling = Sampling { temperature: 1.5, seed, ..Sampling::default() };
            let reply = block_on(speaker.reply(&SpeakRequest { sampling, ..SpeakRequest::new(Role::Tool, &trajectory) })).unwrap();
            assert_eq!(reply.finish, FinishReason::Grammar, "{}", reply.text);
            assert!(reply.text.starts_with(" {") && reply.text.ends_with("}\n") && reply.text.lines().count() == 1, "{:?}", reply.text);
            let params = params(&reply.text, library.spec("Convert")).unwrap();
            let seen = library.execute(&autoact_trajectory::Action { tool: "Convert".into(), params }, &trajectory);
            assert!(!seen.is_error && seen.text.contains(" is "), "{}: {seen:?}", reply.text);
        }
    }
}
