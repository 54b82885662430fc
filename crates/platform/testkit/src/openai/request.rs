//! Requests as the servers read them, and what they refuse.

use autoact_model::{GenerateRequest, Grammar, Prompt, Sampling, Scores};
use axum::response::Response;
use http::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use super::{Kind, Logprobs, State, error};

/// A request that is served.
pub(super) struct Request {
    pub(super) model: String,
    pub(super) generate: GenerateRequest,
    pub(super) stream: bool,
    pub(super) usage: bool,
    /// Number of tokens to name for each token, the chosen one included; 0: no log-probabilities.
    pub(super) logprobs: usize,
}

#[derive(Deserialize)]
struct Fields {
    model: String,
    prompt: String,
    #[serde(default = "sixteen")]
    max_tokens: i64,
    #[serde(default = "one")]
    temperature: f32,
    top_p: Option<f32>,
    top_k: Option<i64>,
    seed: Option<i64>,
    logprobs: Option<usize>,
    #[serde(default)]
    stop: Vec<String>,
    #[serde(default)]
    stream: bool,
    stream_options: Option<StreamOptions>,
    add_special_tokens: Option<bool>,
    structured_outputs: Option<Structured>,
    guided_regex: Option<String>,
    guided_choice: Option<Vec<String>>,
    guided_grammar: Option<String>,
    guided_json: Option<Value>,
}

fn sixteen() -> i64 {
    16
}

fn one() -> f32 {
    1.0
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

#[derive(Deserialize)]
struct Structured {
    regex: Option<String>,
    choice: Option<Vec<String>>,
    grammar: Option<String>,
    json: Option<Value>,
}

/// Of OpenAI's own completions API, as far as it concerns us.
const OPENAI: [&str; 11] =
    ["model", "prompt", "max_tokens", "temperature", "top_p", "seed", "logprobs", "stop", "stream", "stream_options", "frequency_penalty"];

pub(super) fn read(state: &State, json: Value) -> Result<Request, Box<Response>> {
    let bad = |message: &str| Box::new(error(StatusCode::BAD_REQUEST, message));
    let kind = state.options.kind;
    if kind == Kind::OpenAi
        && let Some(unknown) = json.as_object().and_then(|fields| fields.keys().find(|field| !OPENAI.contains(&field.as_str())))
    {
        return Err(bad(&format!("Unrecognized request argument supplied: {unknown}")));
    }
    let fields: Fields = serde_json::from_value(json).map_err(|reason| bad(&reason.to_string()))?;
    if kind == Kind::OpenAi && fields.stop.len() > 4 {
        return Err(bad("stop: at most 4 strings"));
    }
    let logprobs = match (state.options.logprobs, fields.logprobs) {
        (Logprobs::Refused, Some(_)) => return Err(bad("This model does not support the parameter `logprobs`.")),
        (Logprobs::Served, Some(wanted)) if wanted > 5 && kind == Kind::OpenAi => return Err(bad("logprobs: at most 5")),
        (Logprobs::Served, wanted) => wanted.unwrap_or_default(),
        (Logprobs::LeftOut | Logprobs::Refused, _) => 0,
    };
    let info = state.backend.info();
    let adapter = (fields.model != info.name).then(|| fields.model.clone());
    if adapter.as_ref().is_some_and(|name| state.backend.adapters().iter().all(|adapter| adapter.name != *name)) {
        return Err(Box::new(error(StatusCode::NOT_FOUND, &format!("The model `{}` does not exist.", fields.model))));
    }
    let Some(max_tokens) = usize::try_from(fields.max_tokens).ok().filter(|max| *max > 0) else {
        return Err(bad(&format!("max_tokens must be at least 1, got {}.", fields.max_tokens)));
    };
    if let Some(count) = &state.options.count {
        let (tokens, limit) = (count(&fields.prompt), info.context_length);
        if tokens + max_tokens > limit {
            return Err(bad(&too_long(kind, tokens, max_tokens, limit)));
        }
    }
    let sampling = Sampling {
        temperature: fields.temperature,
        top_k: fields.top_k.and_then(|k| usize::try_from(k).ok()).filter(|k| *k > 0),
        top_p: fields.top_p.filter(|p| *p < 1.0),
        seed: fields.seed.unwrap_or_default().cast_unsigned(),
    };
    let generate = GenerateRequest {
        adapter,
        sampling,
        max_tokens,
        stop: fields.stop,
        grammar: match kind {
            Kind::Vllm => fields.structured_outputs.and_then(|given| pick(given.regex, given.choice, given.grammar, given.json)),
            Kind::VllmGuided => pick(fields.guided_regex, fields.guided_choice, fields.guided_grammar, fields.guided_json),
            Kind::OpenAi => None,
        },
        add_bos: fields.add_special_tokens,
        scores: (logprobs > 0).then(Scores::default),
        // these servers recognise control tokens everywhere in a prompt
        ..GenerateRequest::new(Prompt::template(fields.prompt))
    };
    let usage = fields.stream_options.is_some_and(|options| options.include_usage);
    Ok(Request { model: fields.model, generate, stream: fields.stream, usage, logprobs })
}

fn pick(regex: Option<String>, choice: Option<Vec<String>>, lark: Option<String>, json: Option<Value>) -> Option<Grammar> {
    let regex = regex.map(Grammar::Regex);
    regex.or(choice.map(Grammar::Choice)).or(lark.map(Grammar::Lark)).or(json.map(Grammar::JsonSchema))
}

/// The words of the servers.
fn too_long(kind: Kind, tokens: usize, max: usize, limit: usize) -> String {
    let total = tokens + max;
    match kind {
        Kind::OpenAi => format!(
            "This model's maximum context length is {limit} tokens, however you requested {total} tokens ({tokens} in your prompt; {max} for the completion). Please reduce your prompt; or completion length."
        ),
        Kind::VllmGuided => format!(
            "This model's maximum context length is {limit} tokens. However, you requested {total} tokens ({tokens} in the messages, {max} in the completion). Please reduce the length of the messages or completion."
        ),
        // it stops to count where it is too much
        Kind::Vllm => {
            let least = (limit + 1).saturating_sub(max);
            format!(
                "This model's maximum context length is {limit} tokens. However, you requested {max} output tokens and your prompt contains at least {least} input tokens, for a total of at least {} tokens. Please reduce the length of the input prompt or the number of requested output tokens.",
                limit + 1
            )
        }
    }
}
