//! Servers that apply their model's chat template: which of their interfaces is used, and what
//! becomes of replies that they begin anew.

use std::sync::Arc;

use crate::common::{Script, engine, options, read, run};
use autoact_model::{
    Backend, ChatTemplate, EngineOptions, FinishReason, GenerateError, GenerateRequest, Grammar, Message, Odds, Prompt, Scores,
};
use autoact_openai::{Api, Dialect, Remote, RemoteError, RemoteOptions};
use autoact_testkit::{Kind, OpenAiOptions, OpenAiServer};

const PLAN: &str = r" [^\n]{1,600}\nAction: (Retrieve|Finish)\n";
/// Marks each message, as every template of a chat model does.
const MARKED: &str = "{% for message in messages %}[{{ message.role }}] {{ message.content }} {% endfor %}[assistant]";
/// Adds nothing.
const BARE: &str = "{% for message in messages %}{{ message.content }}{% endfor %}";

fn template(source: &str) -> Option<ChatTemplate> {
    Some(ChatTemplate::new(source.to_owned(), "<s>".to_owned(), "</s>".to_owned()).unwrap())
}

fn asked(begun: &str) -> GenerateRequest {
    let mut prompt = Prompt::reply_to(vec![Message::new("system", "Be brief."), Message::new("user", "Question: x\n")]);
    prompt.push_text(begun);
    GenerateRequest { grammar: Some(Grammar::Regex(PLAN.to_owned())), ..GenerateRequest::new(prompt) }
}

/// A server of a kind over a script, asked as a chat.
async fn chat(kind: Kind, script: &Arc<Script>) -> (OpenAiServer, Remote) {
    let served = OpenAiOptions { kind, chat_template: template(MARKED), ..OpenAiOptions::default() };
    let server = OpenAiServer::start(script.clone(), served).await.unwrap();
    let remote = Remote::connect(options(&server, "script")).await.unwrap();
    assert!(remote.takes_messages() && remote.path() == "/chat/completions");
    (server, remote)
}

#[tokio::test]
async fn a_server_with_a_chat_template_is_asked_as_a_chat() {
    let served = OpenAiOptions { chat_template: template(MARKED), ..OpenAiOptions::default() };
    let server = OpenAiServer::of_engine(engine("llama2", EngineOptions::default()), served).await.unwrap();
    let path = async |api: Api| Remote::connect(RemoteOptions { api, ..options(&server, "plan") }).await.unwrap().path();
    assert_eq!(path(Api::Auto).await, "/chat/completions");
    assert_eq!(path(Api::Chat).await, "/chat/completions");
    assert_eq!(path(Api::Completions).await, "/completions");
    let none = OpenAiServer::of_engine(engine("llama2", EngineOptions::default()), OpenAiOptions::default()).await.unwrap();
    let chat = Remote::connect(RemoteOptions { api: Api::Chat, ..options(&none, "plan") }).await;
    assert!(matches!(&chat, Err(RemoteError::Mute { reason, .. }) if reason.contains("chat template")), "{chat:?}");
}

#[tokio::test]
async fn a_template_that_adds_nothing_is_a_completion() {
    let served = OpenAiOptions { chat_template: template(BARE), ..OpenAiOptions::default() };
    let server = OpenAiServer::of_engine(engine("llama2", EngineOptions::default()), served).await.unwrap();
    let remote = Remote::connect(options(&server, "plan")).await.unwrap();
    assert_eq!((remote.path(), remote.takes_messages()), ("/completions", false));
    // of a server that has nothing but chats, the text is one message
    let bare = Remote::connect(RemoteOptions { api: Api::Chat, ..options(&server, "plan") }).await.unwrap();
    assert_eq!((bare.path(), bare.takes_messages()), ("/chat/completions", false));
    let request = || GenerateRequest { max_tokens: 12, adapter: Some("plan".into()), ..GenerateRequest::new("Question: x\nThought:") };
    let (one, other) = (run(&remote, request()).await.unwrap(), run(&bare, request()).await.unwrap());
    assert_eq!((one.text, one.prompt_tokens), (other.text, other.prompt_tokens));
}

#[tokio::test]
async fn vllm_continues_what_the_reply_has_begun_with() {
    let served = OpenAiOptions { chat_template: template(MARKED), ..OpenAiOptions::default() };
    let engine = engine("llama2", EngineOptions::default());
    let server = OpenAiServer::of_engine(engine.clone(), served).await.unwrap();
    let remote = Remote::connect(options(&server, "llama2")).await.unwrap();
    let scores = Some(Scores { until: Some("\nAction:".into()), odds: None });
    let request = GenerateRequest { scores, max_tokens: 40, ..asked("Thought:") };
    let done = run(&remote, request.clone()).await.unwrap();
    let rendered = Prompt::template("[system] Be brief. [user] Question: x\n [assistant]Thought:");
    let here = run(engine.as_ref(), GenerateRequest { prompt: rendered, ..request }).await.unwrap();
    assert_eq!((done.text, done.finish, done.prompt_tokens), (here.text, here.finish, here.prompt_tokens));
    assert_eq!(done.scores.is_some(), here.scores.is_some());
    let sent = server.asked().pop().unwrap();
    assert_eq!((sent.path, &sent.body["messages"][2]["content"]), ("/v1/chat/completions", &"Thought:".into()));
    assert_eq!(sent.body["logprobs"], true);
    let tokens = remote.count_tokens(&asked("Thought:").prompt, None).await.unwrap();
    assert!((10..200).contains(&tokens), "{tokens}");
}

#[tokio::test]
async fn any_other_server_begins_anew_and_its_reply_is_read_whole() {
    let script = Script::new(|_| "**Thought:** I know\nit.\n\nAction: Finish[Paris]\nObservation: so on".into());
    let (server, remote) = chat(Kind::OpenAi, &script).await;
    let scores = Some(Scores { until: None, odds: Some(Odds { after: "x".into(), this: "y".into(), other: "z".into() }) });
    let (texts, end) = read(remote.generate(GenerateRequest { scores, ..asked("Thought:") })).await;
    let done = end.unwrap();
    assert_eq!((done.text.as_str(), done.finish, texts.len()), (" I know it.\nAction: Finish\n", FinishReason::Grammar, 1));
    assert!(done.scores.is_none(), "a text that was tidied has no scores");
    let sent = server.asked().pop().unwrap();
    assert_eq!(sent.body["messages"][1]["content"], "Question: x\nThought:");
    assert!(sent.body.get("continue_final_message").is_none() && sent.body.get("logprobs").is_none());
    // without a required form, the text is the model's
    let done = run(&remote, GenerateRequest { grammar: None, ..asked("") }).await.unwrap();
    assert!(done.text.starts_with("**Thought:**"), "{}", done.text);
}

#[tokio::test]
async fn a_reply_without_the_form_is_asked_for_again() {
    let script = Script::new(|request| match request.prompt.matches("does not have the form").count() {
        0 => "Paris, I think.".into(),
        1 => "Thought: It is Paris.\nAction: Fly".into(),
        _ => "It is Paris.\nAction: Finish".into(),
    });
    let (server, remote) = chat(Kind::OpenAi, &script).await;
    let before = server.asked().len();
    let done = run(&remote, asked("Thought:")).await.unwrap();
    assert_eq!((done.text.as_str(), server.asked().len() - before), (" It is Paris.\nAction: Finish\n", 3));
    let messages = server.asked().pop().unwrap().body["messages"].clone();
    assert_eq!(messages.as_array().unwrap().len(), 6);
    assert!(messages[5]["content"].as_str().unwrap().contains("Fly"), "{messages}");
}

#[tokio::test]
async fn a_model_that_never_has_the_form_is_a_failure_with_a_name() {
    let script = Script::new(|_| "I would rather not.".into());
    let (server, remote) = chat(Kind::OpenAi, &script).await;
    let before = server.asked().len();
    let error = run(&remote, asked("Thought:")).await.unwrap_err();
    assert!(matches!(&error, GenerateError::Malformed { reason } if reason.contains("rather not")), "{error}");
    assert_eq!(server.asked().len() - before, 4);
}

#[tokio::test]
async fn a_reply_that_was_cut_ends_there() {
    let script = Script::new(|_| "I think ".repeat(20));
    let (_server, remote) = chat(Kind::OpenAi, &script).await;
    let done = run(&remote, GenerateRequest { max_tokens: 15, ..asked("Thought:") }).await.unwrap();
    assert_eq!((done.text.as_str(), done.finish), (" I think I think", FinishReason::Length));
}

#[tokio::test]
async fn a_field_that_is_refused_is_left_out_from_then_on() {
    let script = Script::new(|_| " So.\nAction: Finish\n".into());
    let refused_fields = vec!["stream_options", "temperature"];
    let served = OpenAiOptions { kind: Kind::OpenAi, refused_fields, ..OpenAiOptions::default() };
    let server = OpenAiServer::start(script.clone(), served).await.unwrap();
    let remote = Remote::connect(RemoteOptions { dialect: Dialect::Openai, ..options(&server, "script") }).await.unwrap();
    let request = || GenerateRequest { grammar: Some(Grammar::Regex(PLAN.to_owned())), ..GenerateRequest::new("Thought:") };
    for asked in [3, 4] {
        assert_eq!(run(&remote, request()).await.unwrap().text, " So.\nAction: Finish\n");
        assert_eq!(server.asked().len(), asked);
    }
    let sent = server.asked().pop().unwrap().body;
    assert!(sent.get("stream_options").is_none() && sent.get("temperature").is_none() && sent.get("max_tokens").is_some(), "{sent}");
}
