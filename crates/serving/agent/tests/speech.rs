//! What an agent asks a model, and what it makes of the reply.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::result_large_err, clippy::redundant_clone, clippy::zombie_processes)] // tests

use std::sync::Arc;

use autoact_agent::testing::{ScriptedBackend, history, step, tiny_model, tools};
use autoact_agent::{Agent, AgentError, AgentOptions, EngineConfig, Request};
use autoact_model::{ChatTemplate, GenerateError, Generated, Grammar};
use autoact_speaker::{ReplyEvent, SpeakError, params, reflection, thought};
use autoact_trajectory::Role;
use autoact_wire::v1;

async fn whole(agent: &Arc<Agent>, trajectory: v1::Trajectory) -> Result<(String, Generated), AgentError> {
    let mut speech = agent.speak(Request { trajectory: Some(trajectory), ..Request::default() }).await?;
    let mut streamed = String::new();
    loop {
        match speech.next().await.expect("a speech ends with Done or an error")? {
            ReplyEvent::Delta(text) => streamed.push_str(&text),
            ReplyEvent::Done(generated) => return Ok((streamed, generated)),
        }
    }
}

fn agent(role: Role, backend: &Arc<ScriptedBackend>, options: AgentOptions) -> Arc<Agent> {
    Arc::new(Agent::new(role, Arc::clone(backend) as Arc<dyn autoact_model::Backend>, options))
}

#[tokio::test]
async fn the_prompt_is_the_transcript_and_the_cue() {
    let backend = Arc::new(ScriptedBackend::saying(" Paris it is.\nAction: Finish\n").with_adapter("plan"));
    let agent = agent(Role::Plan, &backend, AgentOptions { adapter: Some("plan".into()), ..AgentOptions::default() });
    let done = step("Retrieve", Some("Loire"), Some("A river in France."));
    let (streamed, generated) = whole(&agent, history(vec![done])).await.unwrap();
    assert_eq!(streamed, generated.text);
    assert_eq!(generated.adapter.unwrap().name, "plan");
    let asked = backend.requests().pop().unwrap();
    assert!(asked.prompt.starts_with("Tools: Retrieve[title] Finish[answer]\nQuestion: Where is it?\nThought:"), "{}", asked.prompt);
    assert!(asked.prompt.ends_with("\nObservation: A river in France.\nThought:"), "{}", asked.prompt);
    assert_eq!(asked.adapter.as_deref(), Some("plan"));
    assert_eq!(asked.add_bos, None);
    assert!(matches!(asked.grammar, Some(Grammar::Regex(regex)) if regex.contains("(Retrieve|Finish)")));
}

#[tokio::test]
async fn a_chat_model_is_asked_with_its_template() {
    let source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";
    let template = ChatTemplate::new(source.into(), String::new(), String::new()).unwrap();
    let backend = Arc::new(ScriptedBackend::saying(" Loire\n"));
    let agent = agent(Role::Tool, &backend, AgentOptions { template: Some(template), ..AgentOptions::default() });
    whole(&agent, history(vec![step("Retrieve", None, None)])).await.unwrap();
    let asked = backend.requests().pop().unwrap();
    assert!(asked.prompt.starts_with("<system>You operate the tools"), "{}", asked.prompt);
    assert!(asked.prompt.contains("- Finish[answer]: The tool Finish.\n<user>Tools: "), "{}", asked.prompt);
    assert!(asked.prompt.ends_with("\nAction: Retrieve\n<assistant>Input:"), "{}", asked.prompt);
    assert_eq!(asked.add_bos, Some(false));
    // the template's own words, and nothing of the messages or the cue
    let prompt = &asked.prompt;
    let template: Vec<&str> = prompt.template_ranges().iter().map(|range| &prompt[range.clone()]).collect();
    assert_eq!(template.iter().map(|part| part.trim()).collect::<Vec<_>>(), ["<system>", "<user>", "<assistant>"]);
}

#[tokio::test]
async fn a_closed_thought_is_one_call() {
    let backend = Arc::new(ScriptedBackend::new(|request| {
        let closing = matches!(&request.grammar, Some(Grammar::Regex(regex)) if regex.starts_with("\\nAction: "));
        Ok(if closing { "\nAction: Retrieve\n".to_owned() } else { (0..400).map(|number| format!(" {number}")).collect() })
    }));
    let agent = agent(Role::Plan, &backend, AgentOptions::default());
    let (streamed, generated) = whole(&agent, history(vec![])).await.unwrap();
    assert_eq!(streamed, generated.text);
    assert!(generated.text.ends_with(" 254 \nAction: Retrieve\n"), "{}", generated.text);
    assert_eq!(generated.completion_tokens, 256 + 2, "of both completions");
    assert_eq!(backend.requests().len(), 2);
}

#[tokio::test]
async fn dropping_a_speech_stops_the_model() {
    let pace = Arc::new(tokio::sync::Semaphore::new(1));
    let backend = Arc::new(ScriptedBackend::saying(" one two three\nAction: Finish\n").paced(Arc::clone(&pace)));
    let agent = agent(Role::Plan, &backend, AgentOptions::default());
    let mut speech = agent.speak(Request { trajectory: Some(history(vec![])), ..Request::default() }).await.unwrap();
    assert!(matches!(speech.next().await, Some(Ok(ReplyEvent::Delta(_)))));
    drop(speech);
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(5);
    while backend.cancelled() == 0 {
        assert!(tokio::time::Instant::now() < deadline, "the model goes on");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_broken_model_says_so() {
    let backend = Arc::new(ScriptedBackend::new(|_| Err(GenerateError::engine("NaN"))));
    let agent = agent(Role::Plan, &backend, AgentOptions::default());
    let error = whole(&agent, history(vec![])).await.unwrap_err();
    assert!(matches!(error, AgentError::Speak(SpeakError::Generate(GenerateError::Engine { .. }))), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn random_weights_keep_the_form() {
    for fixture in ["llama3", "qwen3"] {
        let dir = tiny_model(fixture).unwrap();
        for role in Role::ALL {
            let config = EngineConfig { threads: 1, ..EngineConfig::default() };
            let agent = Arc::new(autoact_agent::load(role, dir.path(), &dir.path().join("adapter"), &config, false).await.unwrap());
            let turns = match role {
                Role::Plan => vec![],
                Role::Tool => vec![step("Retrieve", None, None)],
                Role::Reflect => vec![step("Finish", Some("x"), None)],
            };
            let (streamed, generated) = whole(&agent, history(turns)).await.unwrap();
            assert!(!streamed.is_empty(), "{fixture} {role:?}");
            match role {
                Role::Plan => drop(thought(&generated.text, &tools()).unwrap()),
                Role::Tool => assert!(!params(&generated.text, None).unwrap().is_empty()),
                Role::Reflect => drop(reflection(&generated).unwrap()),
            }
            assert_eq!(generated.adapter.as_ref().unwrap().name, "adapter");
            assert!(generated.prompt_tokens > 0 && generated.completion_tokens > 0);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_loaded_is_one_line_with_its_fix() {
    let config = EngineConfig { threads: 1, ..EngineConfig::default() };
    let dir = tiny_model("llama3").unwrap();
    let other = tiny_model("qwen3").unwrap();
    let none = std::path::Path::new("");
    let fails = async |model: &std::path::Path, adapter: &std::path::Path, parts: &[&str]| {
        let error = autoact_agent::load(Role::Plan, model, adapter, &config, false).await.err().expect("must not load").to_string();
        assert!(!error.contains('\n'), "{error}");
        for part in parts {
            assert!(error.contains(part), "`{part}` is not in: {error}");
        }
    };
    fails("no/such/model".as_ref(), none, &["cannot open model `no/such/model`", "config.json", "; fix: set `--model DIR`"]).await;
    fails(dir.path(), "no/such/adapter".as_ref(), &["cannot open adapter `no/such/adapter`", "; fix: set `--adapter DIR`"]).await;
    fails(other.path(), &dir.path().join("adapter"), &["cannot open adapter", "does not fit base", "; fix: "]).await;
    let weights = dir.path().join("model.safetensors");
    let bytes = std::fs::read(&weights).unwrap();
    std::fs::write(&weights, &bytes[..bytes.len() / 2]).unwrap();
    fails(dir.path(), none, &["cannot open model", "model.safetensors", "not a complete safetensors file"]).await;
}
