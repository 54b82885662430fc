//! What a model is asked, and what becomes of its reply, without an async runtime.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use autoact_model::{Backend, ChatTemplate, FinishReason, GenerateError, Generated, Grammar, WordBias, WordLimit};
use autoact_speaker::testing::{ScriptedBackend, tools};
use autoact_speaker::{ParseError, ReplyEvent, SpeakError, SpeakRequest, Speaker, reflection, thought};
use autoact_trajectory::{Role, Sampling, Step, Trajectory, Turn};
use futures::executor::block_on;

const TEMPLATE: &str = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>";

fn history(turns: Vec<Turn>) -> Trajectory {
    Trajectory { question: "Where is it?".into(), tools: tools(), turns, ..Trajectory::default() }
}

fn step(tool: &str, params: Option<&str>) -> Turn {
    Turn::Step(Step {
        thought: "I need it.".into(),
        tool: tool.into(),
        params: params.map(Into::into),
        observation: None,
        ..Step::default()
    })
}

fn template(source: &str) -> ChatTemplate {
    ChatTemplate::new(source.into(), String::new(), String::new()).unwrap()
}

fn speaker(backend: &Arc<ScriptedBackend>) -> Speaker {
    Speaker::new(Arc::clone(backend) as Arc<dyn Backend>)
}

/// The deltas and the whole reply.
fn whole(speaker: &Speaker, request: &SpeakRequest<'_>) -> Result<(String, Generated), SpeakError> {
    block_on(async {
        let mut reply = speaker.speak(request)?;
        let mut deltas = String::new();
        loop {
            match reply.next().await.expect("a reply ends with Done or an error")? {
                ReplyEvent::Delta(text) => deltas.push_str(&text),
                ReplyEvent::Done(generated) => {
                    assert!(reply.next().await.is_none(), "nothing follows the end");
                    return Ok((deltas, generated));
                }
            }
        }
    })
}

#[test]
fn a_request_says_all_there_is_to_say() {
    let backend = Arc::new(ScriptedBackend::saying(" Paris it is.\nAction: Finish\n").with_adapter("plan"));
    let trajectory = history(vec![]);
    let bias = WordBias::all(["Paris"], 1.0);
    let limit = WordLimit::new(["Paris".to_owned()]);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let request = SpeakRequest {
        sampling: Sampling { temperature: 0.7, top_k: 5, top_p: 1.0, seed: 9 },
        adapter: Some("plan"),
        word_bias: &bias,
        word_limit: Some(&limit),
        deadline: Some(deadline),
        ..SpeakRequest::new(Role::Plan, &trajectory)
    };
    let (deltas, generated) = whole(&speaker(&backend), &request).unwrap();
    assert_eq!(deltas, generated.text);
    let asked = backend.requests().pop().unwrap();
    assert_eq!(asked.prompt, "Tools: Retrieve[title] Finish[answer]\nQuestion: Where is it?\nThought:");
    assert_eq!(asked.word_limit, Some(limit));
    assert_eq!((asked.adapter.as_deref(), asked.word_bias, asked.deadline, asked.add_bos), (Some("plan"), bias, Some(deadline), None));
    let sampling = asked.sampling;
    assert_eq!((sampling.temperature, sampling.top_k, sampling.top_p, sampling.seed), (0.7, Some(5), None, 9));
    assert!(matches!(asked.grammar, Some(Grammar::Regex(regex)) if regex.contains("(Retrieve|Finish)")));
}

#[test]
fn the_models_template_is_used_unless_another_is_set() {
    let backend = Arc::new(ScriptedBackend::saying(" Loire\n").with_template(template(TEMPLATE)));
    let trajectory = history(vec![step("Retrieve", None)]);
    let request = SpeakRequest::new(Role::Tool, &trajectory);
    whole(&speaker(&backend), &request).unwrap();
    whole(&speaker(&backend).with_template(template("[{{ messages[1].content }}]")), &request).unwrap();
    let asked = backend.requests();
    assert!(asked[0].prompt.starts_with("<system>You operate the tools"), "{}", asked[0].prompt);
    assert!(asked[0].prompt.ends_with("\nAction: Retrieve\n<assistant>Input:"), "{}", asked[0].prompt);
    assert!(asked[1].prompt.starts_with("[Tools: "), "{}", asked[1].prompt);
    assert!(asked.iter().all(|asked| asked.add_bos == Some(false)));
    let broken = speaker(&backend).with_template(template("{{ raise_exception('no system role') }}"));
    assert!(matches!(whole(&broken, &request), Err(SpeakError::Template(why)) if why.contains("no system role")));
}

/// A thought without an end that never says the same twice.
fn rambling() -> String {
    (0..400).map(|number| format!(" {number}")).collect()
}

#[test]
fn a_reply_that_repeats_itself_is_marked() {
    let repeats = Arc::new(ScriptedBackend::new(|request| {
        let closing = matches!(&request.grammar, Some(Grammar::Regex(regex)) if regex.starts_with("\\nAction: "));
        Ok(if closing { "\nAction: Retrieve\n".to_owned() } else { format!(" I need it.{}", " It is R.".repeat(400)) })
    }));
    let trajectory = history(vec![]);
    let (_, generated) = whole(&speaker(&repeats), &SpeakRequest::new(Role::Plan, &trajectory)).unwrap();
    assert!(generated.text.ends_with("\nAction: Retrieve\n"), "{}", generated.text);
    assert_eq!(generated.finish, FinishReason::Repetition);
    // and an input
    let repeats = Arc::new(ScriptedBackend::new(|_| Ok(format!(" J.{}", " R.".repeat(400)))));
    let trajectory = history(vec![step("Retrieve", None)]);
    let (_, generated) = whole(&speaker(&repeats), &SpeakRequest::new(Role::Tool, &trajectory)).unwrap();
    // an answer that ends within its first copy would look whole
    assert!(generated.text.starts_with(" J. R. R. R. R."), "{}", generated.text);
    assert_eq!(generated.finish, FinishReason::Repetition);
}

#[test]
fn a_cut_thought_is_closed_once() {
    let closes = Arc::new(ScriptedBackend::new(|request| {
        let closing = matches!(&request.grammar, Some(Grammar::Regex(regex)) if regex.starts_with("\\nAction: "));
        Ok(if closing { "\nAction: Retrieve\n".to_owned() } else { rambling() })
    }));
    let trajectory = history(vec![]);
    let (deltas, generated) = whole(&speaker(&closes), &SpeakRequest::new(Role::Plan, &trajectory)).unwrap();
    assert_eq!(deltas, generated.text);
    assert_eq!(thought(&generated.text, &trajectory.tools).unwrap().tool, "Retrieve");
    let asked = closes.requests();
    assert_eq!(asked.len(), 2);
    assert!(asked[1].prompt.starts_with(asked[0].prompt.as_str()) && asked[1].prompt.contains(" 100 "), "{}", asked[1].prompt);
    assert_ne!(generated.finish, FinishReason::Repetition);
    assert_eq!(asked[1].sampling, asked[0].sampling);

    // the closing is cut as well: no loop
    let never = Arc::new(ScriptedBackend::new(|_| Ok(rambling())));
    let trajectory = history(vec![step("Finish", Some("x"))]);
    let (_, generated) = whole(&speaker(&never), &SpeakRequest::new(Role::Reflect, &trajectory)).unwrap();
    assert_eq!(generated.finish, FinishReason::Length);
    assert!(matches!(reflection(&generated), Err(ParseError::Form(_))));
    assert_eq!(never.requests().len(), 2);
}

#[test]
fn what_the_model_cannot_do_is_an_error() {
    let trajectory = history(vec![]);
    let refuses = Arc::new(ScriptedBackend::new(|_| Err(GenerateError::PromptTooLong { tokens: 9, limit: 5 })));
    let error = whole(&speaker(&refuses), &SpeakRequest::new(Role::Plan, &trajectory)).unwrap_err();
    assert_eq!(error, SpeakError::Generate(GenerateError::PromptTooLong { tokens: 9, limit: 5 }));
    // the model is gone by the time the cut thought is to be closed
    let gone = Arc::new(ScriptedBackend::new(|request| match &request.grammar {
        Some(Grammar::Regex(regex)) if regex.starts_with("\\nAction") => Err(GenerateError::engine("gone")),
        _ => Ok(" hm".repeat(400)),
    }));
    let error = whole(&speaker(&gone), &SpeakRequest::new(Role::Plan, &trajectory)).unwrap_err();
    assert_eq!(error, SpeakError::Generate(GenerateError::engine("gone")));
}
