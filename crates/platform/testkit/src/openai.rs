//! For tests only. An OpenAI-compatible server whose completions come from a backend of ours:
//! served names are the base and its adapters, as in vLLM with `--enable-lora`. It refuses what the
//! servers it stands for refuse, and does what goes wrong with servers when it is told to.

mod answer;
mod chat;
mod faults;
mod request;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use autoact_model::{Backend, ChatTemplate, Engine, Prompt};
use axum::Router;
use axum::extract::State as Extract;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use faults::Fault;

/// Which server it stands for: what fields it knows, and what it does with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// vLLM from 0.12 on: `structured_outputs`; other fields are ignored.
    #[default]
    Vllm,
    /// vLLM before 0.12: `guided_regex` and its like; other fields are ignored.
    VllmGuided,
    /// OpenAI: no grammars, at most four stop strings, and other fields are an error. Its models
    /// have names and nothing else.
    OpenAi,
}

/// What it does with a request for log-probabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Logprobs {
    /// Reports them. A reply with them is written once it is whole.
    #[default]
    Served,
    /// Leaves them out.
    LeftOut,
    /// Refuses the request.
    Refused,
}

/// What its list of models holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum List {
    /// All that it serves.
    #[default]
    Served,
    /// Nothing.
    Empty,
    /// There is none: it answers 500, as `transformers serve` does where it has downloaded nothing.
    Broken,
}

/// Counts the tokens of a prompt.
pub type CountTokens = Arc<dyn Fn(&str) -> usize + Send + Sync>;

/// How a server is.
#[derive(Clone, Default)]
pub struct OpenAiOptions {
    /// Which server it stands for.
    pub kind: Kind,
    /// What it does with a request for log-probabilities.
    pub logprobs: Logprobs,
    /// The tokens that it names beside each chosen one, where more than one is asked for.
    pub alternatives: Vec<String>,
    /// The key it wants.
    pub api_key: Option<String>,
    /// The chat template that it applies; without one it serves no chats.
    pub chat_template: Option<ChatTemplate>,
    /// What its list of models holds.
    pub list: List,
    /// Fields that it refuses by name.
    pub refused_fields: Vec<&'static str>,
    /// What refuses prompts that are too long, and serves `/tokenize`; without it the backend's own
    /// refusal has to do.
    pub count: Option<CountTokens>,
    /// The port; 0: a free one.
    pub port: u16,
}

const COMPLETIONS: &str = "/v1/completions";
const CHAT: &str = "/v1/chat/completions";

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The path that it came to: `/v1/completions` or `/v1/chat/completions`.
    pub path: &'static str,
    /// Its JSON.
    pub body: Value,
    /// Its headers.
    pub headers: HeaderMap,
}

/// A running server; it ends when dropped.
#[derive(Debug)]
pub struct OpenAiServer {
    addr: SocketAddr,
    state: Arc<State>,
    task: JoinHandle<()>,
}

struct State {
    backend: Arc<dyn Backend>,
    /// What loads adapters while it serves.
    engine: Option<Arc<Engine>>,
    /// The names and paths of the adapters that it was told to load.
    loaded: Mutex<Vec<(String, String)>>,
    options: OpenAiOptions,
    faults: Mutex<VecDeque<Fault>>,
    /// Connections to drop.
    refusals: Arc<AtomicUsize>,
    asked: Mutex<Vec<Asked>>,
    /// Replies that have begun and not ended.
    open: AtomicUsize,
    /// Replies that nobody waited for to the end.
    abandoned: AtomicUsize,
    /// Whether replies wait before their first token.
    held: watch::Sender<bool>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").finish_non_exhaustive()
    }
}

impl OpenAiServer {
    /// Serves an engine as vLLM would.
    pub async fn of_engine(engine: Arc<Engine>, options: OpenAiOptions) -> anyhow::Result<OpenAiServer> {
        let counter = Arc::clone(&engine);
        let count: CountTokens = Arc::new(move |prompt: &str| {
            let tokens = counter.tokenizer().encode(&Prompt::template(prompt), None);
            tokens.map_or(0, |tokens| tokens.len())
        });
        OpenAiServer::serve(engine.clone(), Some(engine), OpenAiOptions { count: Some(count), ..options }).await
    }

    /// Serves any backend.
    pub async fn start(backend: Arc<dyn Backend>, options: OpenAiOptions) -> anyhow::Result<OpenAiServer> {
        OpenAiServer::serve(backend, None, options).await
    }

    async fn serve(backend: Arc<dyn Backend>, engine: Option<Arc<Engine>>, options: OpenAiOptions) -> anyhow::Result<OpenAiServer> {
        let listener = TcpListener::bind(("127.0.0.1", options.port)).await?;
        let addr = listener.local_addr()?;
        let state = Arc::new(State {
            backend,
            engine,
            loaded: Mutex::default(),
            options,
            faults: Mutex::default(),
            refusals: Arc::default(),
            asked: Mutex::default(),
            open: AtomicUsize::new(0),
            abandoned: AtomicUsize::new(0),
            held: watch::Sender::new(false),
        });
        let router = Router::new()
            .route("/v1/models", get(models))
            .route(COMPLETIONS, post(completions))
            .route(CHAT, post(chat_completions))
            .route("/v1/load_lora_adapter", post(load_adapter))
            .route("/v1/unload_lora_adapter", post(unload_adapter))
            .route("/tokenize", post(tokenize))
            .route("/health", get(async || StatusCode::OK))
            .with_state(Arc::clone(&state));
        let listener = faults::Refusing { listener, refusals: Arc::clone(&state.refusals) };
        let task = tokio::spawn(async move {
            // it ends with the task
            let _ = axum::serve(listener, router).await;
        });
        Ok(OpenAiServer { addr, state, task })
    }

    /// Where its API begins.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.addr)
    }

    /// The served name of the base.
    pub fn base(&self) -> String {
        self.state.backend.info().name.clone()
    }

    /// The paths of the adapters that it was told to load, in order.
    pub fn loaded(&self) -> Vec<String> {
        self.state.loaded.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|(_, path)| path.clone()).collect()
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What goes wrong with the next completion; several are for one after the other.
    pub fn fault(&self, fault: Fault) {
        match fault {
            Fault::Refuse => drop(self.state.refusals.fetch_add(1, Ordering::SeqCst)),
            fault => self.state.faults.lock().unwrap_or_else(PoisonError::into_inner).push_back(fault),
        }
    }

    /// From now on no reply gets its first token.
    pub fn hold(&self) {
        self.state.held.send_replace(true);
    }

    /// All replies go on.
    pub fn release(&self) {
        self.state.held.send_replace(false);
    }

    /// The completions that were asked for, those that went wrong included.
    pub fn asked(&self) -> Vec<Asked> {
        self.state.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replies that have begun and not ended.
    pub fn open(&self) -> usize {
        self.state.open.load(Ordering::SeqCst)
    }

    /// Replies whose reader went away.
    pub fn abandoned(&self) -> usize {
        self.state.abandoned.load(Ordering::SeqCst)
    }
}

impl Drop for OpenAiServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl State {
    /// The refusal of a request without the right key.
    fn locked(&self, headers: &HeaderMap) -> Option<Response> {
        let wanted = format!("Bearer {}", self.options.api_key.as_ref()?);
        let given = headers.get(http::header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        (given != Some(&wanted)).then(|| error(StatusCode::UNAUTHORIZED, "Unauthorized"))
    }

    /// Where the files of a served name are.
    fn root(&self, id: &str) -> String {
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.iter().rev().find(|(name, _)| name == id).map_or_else(|| format!("/models/{id}"), |(_, path)| path.clone())
    }

    fn next_fault(&self) -> Option<Fault> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    async fn released(&self) {
        // the sender lives as long as the state
        let _ = self.held.subscribe().wait_for(|held| !held).await;
    }
}

async fn models(Extract(state): Extract<Arc<State>>, headers: HeaderMap) -> Response {
    if let Some(refusal) = state.locked(&headers) {
        return refusal;
    }
    let info = state.backend.info();
    let card = |id: &str, parent: Option<&str>, limit: Option<usize>| match state.options.kind {
        Kind::OpenAi => json!({ "id": id, "object": "model", "created": 1, "owned_by": "autoact" }),
        _ => {
            json!({ "id": id, "object": "model", "created": 1, "owned_by": "vllm", "root": state.root(id), "parent": parent, "max_model_len": limit })
        }
    };
    match state.options.list {
        List::Served => {}
        List::Empty => return answer(StatusCode::OK, &json!({ "object": "list", "data": [] })),
        List::Broken => return error(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error"),
    }
    let mut cards = vec![card(&info.name, None, Some(info.context_length))];
    cards.extend(state.backend.adapters().iter().map(|adapter| card(&adapter.name, Some(&info.name), None)));
    answer(StatusCode::OK, &json!({ "object": "list", "data": cards }))
}

async fn completions(Extract(state): Extract<Arc<State>>, headers: HeaderMap, body: Bytes) -> Response {
    completed(&state, COMPLETIONS, headers, &body).await
}

async fn chat_completions(Extract(state): Extract<Arc<State>>, headers: HeaderMap, body: Bytes) -> Response {
    // what a start asks every server for is of no interest where there is none
    if state.options.chat_template.is_none() {
        let refusal = chat::as_text(&state, Value::Null).err();
        return state.locked(&headers).or(refusal.map(|refusal| *refusal)).unwrap_or_default();
    }
    completed(&state, CHAT, headers, &body).await
}

async fn completed(state: &Arc<State>, path: &'static str, headers: HeaderMap, body: &[u8]) -> Response {
    let json: Value = match serde_json::from_slice(body) {
        Ok(json) => json,
        Err(reason) => return error(StatusCode::BAD_REQUEST, &format!("not JSON: {reason}")),
    };
    let asked = Asked { path, body: json.clone(), headers: headers.clone() };
    state.asked.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
    if let Some(refusal) = state.locked(&headers) {
        return refusal;
    }
    let fault = state.next_fault();
    if let Some(failed) = fault.as_ref().and_then(Fault::response) {
        return failed;
    }
    if let Some(field) = state.options.refused_fields.iter().find(|field| json.get(**field).is_some()) {
        return error(StatusCode::UNPROCESSABLE_ENTITY, &format!("Unexpected fields in the request: {{'{field}'}}"));
    }
    let chat = path == CHAT;
    let read = if chat { chat::as_text(state, json).and_then(|json| request::read(state, json)) } else { request::read(state, json) };
    match read {
        Ok(request) => answer::completion(state, request, chat, fault).await,
        Err(refusal) => *refusal,
    }
}

async fn load_adapter(Extract(state): Extract<Arc<State>>, headers: HeaderMap, body: Bytes) -> Response {
    let json: Value = serde_json::from_slice(&body).unwrap_or_default();
    if let Some(refusal) = state.locked(&headers) {
        return refusal;
    }
    let (Some(engine), Some(name), Some(path)) = (&state.engine, json["lora_name"].as_str(), json["lora_path"].as_str()) else {
        return error(StatusCode::NOT_FOUND, "Not Found");
    };
    if engine.adapters().iter().any(|adapter| adapter.name == name) {
        return error(StatusCode::BAD_REQUEST, &format!("The lora adapter '{name}' has already been loaded."));
    }
    state.loaded.lock().unwrap_or_else(PoisonError::into_inner).push((name.to_owned(), path.to_owned()));
    match engine.load_adapter(name, path) {
        Ok(_) => "Success: LoRA adapter added successfully.".into_response(),
        Err(reason) => error(StatusCode::BAD_REQUEST, &reason.to_string()),
    }
}

async fn unload_adapter(Extract(state): Extract<Arc<State>>, body: Bytes) -> Response {
    let json: Value = serde_json::from_slice(&body).unwrap_or_default();
    let name = json["lora_name"].as_str().unwrap_or_default();
    match state.engine.as_ref().is_some_and(|engine| engine.unload_adapter(name)) {
        true => "Success: LoRA adapter removed successfully.".into_response(),
        false => error(StatusCode::NOT_FOUND, &format!("The lora adapter '{name}' cannot be found.")),
    }
}

async fn tokenize(Extract(state): Extract<Arc<State>>, headers: HeaderMap, body: Bytes) -> Response {
    let json: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (Some(count), Some(prompt), true) = (&state.options.count, json["prompt"].as_str(), state.options.kind != Kind::OpenAi) else {
        return error(StatusCode::NOT_FOUND, "Not Found");
    };
    if let Some(refusal) = state.locked(&headers) {
        return refusal;
    }
    answer(StatusCode::OK, &json!({ "count": count(prompt), "max_model_len": state.backend.info().context_length, "tokens": [] }))
}

fn answer(status: StatusCode, body: &Value) -> Response {
    let mut response = Response::new(body.to_string().into());
    *response.status_mut() = status;
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}

fn error(status: StatusCode, message: &str) -> Response {
    let kind = status.canonical_reason().unwrap_or_default().replace(' ', "");
    answer(status, &json!({ "error": { "message": message, "type": kind, "param": null, "code": status.as_u16() } }))
}
