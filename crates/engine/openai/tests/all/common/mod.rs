//! Engines, servers over them, and remotes over those.
#![allow(dead_code)] // each test binary uses its part

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use autoact_model::{
    AdapterVersion, Backend, BackendInfo, Engine, EngineOptions, FinishReason, GenerateError, GenerateEvent, GenerateRequest,
    GenerateStream, Generated, ModelDir, Scored, TokenScore,
};
use autoact_openai::{Dialect, Remote, RemoteOptions};
use autoact_testkit::{Kind, OpenAiOptions, OpenAiServer, files};

/// A bound on waiting, far above what anything here needs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn fixture(name: &str) -> PathBuf {
    files::root().join("tests/golden/fixtures").join(name)
}

/// A golden fixture with its adapter as `plan`.
pub(crate) fn engine(name: &str, options: EngineOptions) -> Arc<Engine> {
    let engine = Engine::start(&ModelDir::open(fixture(name)).unwrap(), EngineOptions { threads: 1, ..options }).unwrap();
    engine.load_adapter("plan", fixture(name).join("adapter")).unwrap();
    Arc::new(engine)
}

pub(crate) async fn server(engine: Arc<Engine>, kind: Kind) -> OpenAiServer {
    OpenAiServer::of_engine(engine, OpenAiOptions { kind, ..OpenAiOptions::default() }).await.unwrap()
}

/// What fits a server that a test has just started.
pub(crate) fn options(server: &OpenAiServer, model: &str) -> RemoteOptions {
    RemoteOptions { start_timeout: PATIENCE, ..RemoteOptions::new(server.url(), model) }
}

/// A server over the llama2 fixture, and a remote that speaks as `plan`.
pub(crate) async fn llama(kind: Kind, dialect: Dialect) -> (OpenAiServer, Remote) {
    let server = server(engine("llama2", EngineOptions::default()), kind).await;
    let options = RemoteOptions { dialect, context_length: Some(256), ..options(&server, "llama2") };
    let remote = Remote::connect(options).await.unwrap();
    (server, remote)
}

/// All that a stream gives: its texts, and its end.
pub(crate) async fn read(stream: Result<GenerateStream, GenerateError>) -> (Vec<String>, Result<Generated, GenerateError>) {
    let mut stream = match stream {
        Ok(stream) => stream,
        Err(error) => return (vec![], Err(error)),
    };
    let mut texts = Vec::new();
    loop {
        let event = tokio::time::timeout(PATIENCE, stream.next()).await.expect("an event in time");
        match event.expect("a stream ends with Done or an error") {
            Ok(GenerateEvent::Token { text }) => texts.push(text),
            Ok(GenerateEvent::Done(done)) => {
                assert!(stream.next().await.is_none(), "nothing comes after the end");
                return (texts, Ok(done));
            }
            Err(error) => return (texts, Err(error)),
        }
    }
}

pub(crate) async fn run(backend: &dyn Backend, request: GenerateRequest) -> Result<Generated, GenerateError> {
    let (texts, end) = read(backend.generate(request)).await;
    if let Ok(done) = &end {
        assert_eq!(texts.concat(), done.text);
    }
    end
}

/// A model that says what a test wants, in pieces of one character, whatever grammar it is given.
pub(crate) struct Script {
    info: BackendInfo,
    say: Box<dyn Fn(&GenerateRequest) -> String + Send + Sync>,
    pub(crate) requests: Mutex<Vec<GenerateRequest>>,
}

impl Script {
    pub(crate) fn new(say: impl Fn(&GenerateRequest) -> String + Send + Sync + 'static) -> Arc<Script> {
        let info = BackendInfo { name: "script".into(), digest: String::new(), context_length: 4096, chat_template: false };
        Arc::new(Script { info, say: Box::new(say), requests: Mutex::default() })
    }
}

impl Backend for Script {
    fn info(&self) -> &BackendInfo {
        &self.info
    }

    fn adapters(&self) -> Vec<AdapterVersion> {
        Vec::new()
    }

    fn generate(&self, request: GenerateRequest) -> Result<GenerateStream, GenerateError> {
        self.requests.lock().unwrap().push(request.clone());
        let whole: Vec<char> = (self.say)(&request).chars().collect();
        let shown: String = whole.iter().take(request.max_tokens).collect();
        let (mut sender, stream) = GenerateStream::channel();
        // the reader is slower than this, so texts are joined: one at a time, as a model gives them
        tokio::spawn(async move {
            for character in shown.chars() {
                sender.text(&character.to_string());
                tokio::task::yield_now().await;
            }
            let finish = if whole.len() > request.max_tokens { FinishReason::Length } else { FinishReason::Stop };
            let token = |at| TokenScore { at, log_prob: -0.5 };
            let tokens = shown.char_indices().map(|(at, _)| token(at)).collect();
            let scores = request.scores.map(|_| Box::new(Scored { tokens, log_odds: None }));
            let generated = Generated {
                finish,
                prompt_tokens: 7,
                cached_prompt_tokens: 3,
                completion_tokens: shown.chars().count(),
                drafted_tokens: 0,
                accepted_tokens: 0,
                queue: Duration::ZERO,
                prefill: Duration::ZERO,
                decode: Duration::ZERO,
                adapter: None,
                model: "script".into(),
                text: shown,
                scores,
            };
            sender.end(Ok(generated));
        });
        Ok(stream)
    }
}
