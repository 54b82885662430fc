//! The wire format: requests in the server's dialect, and chunks of replies.

use std::borrow::Cow;

use autoact_model::{GenerateRequest, Grammar, Message, Prompt};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::options::Dialect;
use crate::probe::Style;
use crate::spellings::Spellings;

/// vLLM's value for "no `top_k`", which all its versions accept.
const NO_TOP_K: i64 = -1;
/// The name of a schema, which the API wants and nobody reads.
const SCHEMA_NAME: &str = "reply";

/// The fields that a request can do without. `max_tokens` has another name, the others say what
/// makes a reply better.
const OPTIONAL: [&str; 18] = [
    "add_special_tokens",
    CACHE_SALT,
    "guided_choice",
    "guided_grammar",
    "guided_json",
    "guided_regex",
    MAX_TOKENS,
    "min_p",
    "repetition_penalty",
    "response_format",
    "seed",
    "stop",
    "stream_options",
    "structured_outputs",
    "temperature",
    "top_k",
    "top_p",
    LOGPROBS,
];
/// Keeps owners apart in the prefix cache of vLLM: with another salt, nothing that is cached is found.
const CACHE_SALT: &str = "cache_salt";
/// The limit of a reply.
const MAX_TOKENS: &str = "max_tokens";
/// The same, for OpenAI's models that refuse [`MAX_TOKENS`] in a chat.
const MAX_COMPLETION_TOKENS: &str = "max_completion_tokens";
/// What asks for log-probabilities.
pub(crate) const LOGPROBS: &str = "logprobs";

/// The words with which servers refuse a field that they do not know.
const UNKNOWN: [&str; 5] = ["unexpected field", "unexpected keyword", "unrecognized", "unknown", "not permitted"];
/// The words with which they refuse what they know.
const UNSUPPORTED: [&str; 4] = ["unsupported", "not supported", "does not support", "not allowed"];
/// What the fields that carry a grammar begin with. A server that knows them may refuse a single
/// grammar, which says nothing of the others.
const GRAMMARS: [&str; 2] = ["guided_", "structured_"];

/// The optional fields that a server's message refuses by name.
pub(crate) fn refused_fields(message: &str) -> Vec<&'static str> {
    let lower = message.to_lowercase();
    let says = |phrases: &[&str]| phrases.iter().any(|words| lower.contains(words));
    let (unknown, unsupported) = (says(&UNKNOWN), says(&UNSUPPORTED));
    let refused = |field: &str| unknown || (unsupported && !GRAMMARS.iter().any(|prefix| field.starts_with(prefix)));
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    OPTIONAL.into_iter().filter(|field| refused(field) && words.contains(field)).collect()
}

/// What a server is asked with.
#[derive(Debug)]
pub(crate) enum Asked<'a> {
    /// One text.
    Text(Cow<'a, str>),
    /// A chat.
    Messages {
        /// The messages, at least one.
        messages: Vec<Said<'a>>,
        /// Whether the last message is the beginning of the reply.
        continues: bool,
    },
}

/// One message of a chat.
#[derive(Debug, Serialize)]
pub(crate) struct Said<'a> {
    role: &'a str,
    content: Cow<'a, str>,
}

impl<'a> Said<'a> {
    /// A message of the user.
    pub(crate) fn by_user(content: impl Into<Cow<'a, str>>) -> Said<'a> {
        Said { role: "user", content: content.into() }
    }

    /// A message of the model.
    pub(crate) fn by_model(content: impl Into<Cow<'a, str>>) -> Said<'a> {
        Said { role: "assistant", content: content.into() }
    }
}

impl<'a> Asked<'a> {
    /// A prompt, in the form that the server takes. Spellings of control tokens in text parts are
    /// broken up.
    pub(crate) fn new(style: Style, spellings: &Spellings, prompt: &'a Prompt) -> Asked<'a> {
        let text = spellings.broken_up(prompt);
        if style == Style::Completions {
            return Asked::Text(text);
        }
        let said = |message: &'a Message| {
            let content = spellings.broken_up(&Prompt::text(message.content.as_str())).into_owned();
            Said { role: message.role.as_str(), content: content.into() }
        };
        let mut messages: Vec<Said<'a>> = prompt.messages().iter().map(said).collect();
        match messages.last_mut() {
            None => messages.push(Said::by_user(text)),
            Some(_) if text.is_empty() => {}
            Some(_) if style == Style::ContinuedChat => {
                messages.push(Said::by_model(text));
                return Asked::Messages { messages, continues: true };
            }
            // the server begins a new message, so what the reply has begun with stands before it
            Some(last) => last.content = format!("{}{text}", last.content).into(),
        }
        Asked::Messages { messages, continues: false }
    }

    /// The fields of a request.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Asked::Text(text) => json!({ "prompt": text }),
            Asked::Messages { messages, continues: false } => json!({ "messages": messages }),
            Asked::Messages { messages, continues: true } => {
                json!({ "messages": messages, "add_generation_prompt": false, "continue_final_message": true })
            }
        }
    }
}

/// The parameters that differ between the requests for one completion.
#[derive(Debug)]
pub(crate) struct CompletionRequest<'a> {
    /// The served name.
    pub(crate) model: &'a str,
    /// The prompt, with the text so far.
    pub(crate) asked: Asked<'a>,
    /// Maximum number of tokens.
    pub(crate) max_tokens: usize,
    /// Number of the round, from 0.
    pub(crate) round: u64,
    /// Whether the server applies the grammar, which is possible only before any text exists.
    pub(crate) guided: bool,
    /// Number of likely tokens whose log-probabilities are reported for each token; `None`: none
    /// are reported.
    pub(crate) logprobs: Option<u32>,
    /// Optional fields that the server refuses.
    pub(crate) left_out: &'a [&'static str],
}

/// The request as JSON.
pub(crate) fn body(ask: CompletionRequest<'_>, request: &GenerateRequest, dialect: Dialect) -> Result<Vec<u8>, serde_json::Error> {
    let chat = matches!(ask.asked, Asked::Messages { .. });
    let mut body = match ask.asked.to_json() {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let mut set = |field: &str, value: Value| drop(body.insert(field.to_owned(), value));
    let sampling = request.sampling;
    let drawn = sampling.temperature > 0.0;
    let vllm = dialect.guides();
    set("model", ask.model.into());
    let limit = if ask.left_out.contains(&MAX_TOKENS) { MAX_COMPLETION_TOKENS } else { MAX_TOKENS };
    set(limit, ask.max_tokens.into());
    // NaN is greedy, as in the engine
    set("temperature", json!(if drawn { sampling.temperature } else { 0.0 }));
    if let Some(top_p) = sampling.top_p.filter(|_| drawn).or(vllm.then_some(1.0)) {
        set("top_p", json!(top_p));
    }
    let top_k = sampling.top_k.filter(|_| drawn).and_then(|k| i64::try_from(k).ok());
    // if absent, these come from the model's own `generation_config.json`
    if let Some(top_k) = top_k.or(vllm.then_some(NO_TOP_K)) {
        set("top_k", top_k.into());
    }
    if vllm {
        set("min_p", json!(0.0));
        set("repetition_penalty", json!(1.0));
        if let Some(owner) = &request.owner {
            set(CACHE_SALT, owner.name.as_str().into());
        }
    }
    if drawn {
        // all 64 bits are sent; the wire format has signed numbers
        set("seed", sampling.seed.wrapping_add(ask.round).cast_signed().into());
    }
    match ask.logprobs {
        Some(likely) if chat => {
            set(LOGPROBS, true.into());
            set("top_logprobs", likely.into());
        }
        Some(likely) => set(LOGPROBS, likely.into()),
        None => {}
    }
    if !request.stop.is_empty() {
        set("stop", json!(request.stop));
    }
    set("stream", true.into());
    set("stream_options", json!({ "include_usage": true }));
    if let Some(bos) = request.add_bos.filter(|_| vllm && !chat) {
        set("add_special_tokens", bos.into());
    }
    if let Some(grammar) = request.grammar.as_ref().filter(|_| ask.guided)
        && let Some((field, value)) = constraint(grammar, dialect, chat)
    {
        set(field, value);
    }
    for field in ask.left_out {
        body.remove(*field);
    }
    serde_json::to_vec(&body)
}

/// The field that says a grammar; `None` if there is none for it.
fn constraint(grammar: &Grammar, dialect: Dialect, chat: bool) -> Option<(&'static str, Value)> {
    Some(match (dialect, grammar) {
        (Dialect::Vllm, grammar) => {
            let outputs = match grammar {
                Grammar::Regex(regex) => json!({ "regex": regex }),
                Grammar::Choice(choices) => json!({ "choice": choices }),
                Grammar::Lark(lark) => json!({ "grammar": lark }),
                Grammar::JsonSchema(schema) | Grammar::JsonLine(schema) => json!({ "json": schema, "disable_any_whitespace": true }),
            };
            ("structured_outputs", outputs)
        }
        (Dialect::VllmGuided, Grammar::Regex(regex)) => ("guided_regex", regex.as_str().into()),
        (Dialect::VllmGuided, Grammar::Choice(choices)) => ("guided_choice", json!(choices)),
        (Dialect::VllmGuided, Grammar::Lark(lark)) => ("guided_grammar", lark.as_str().into()),
        (Dialect::VllmGuided, Grammar::JsonSchema(schema) | Grammar::JsonLine(schema)) => ("guided_json", schema.clone()),
        (Dialect::Openai | Dialect::Auto, Grammar::JsonSchema(schema) | Grammar::JsonLine(schema)) if chat => {
            ("response_format", json!({ "type": "json_schema", "json_schema": { "name": SCHEMA_NAME, "schema": schema } }))
        }
        (Dialect::Openai | Dialect::Auto, _) => return None,
    })
}

/// A chunk of a reply, or a whole reply.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Chunk {
    pub(crate) choices: Vec<Choice>,
    pub(crate) usage: Option<Usage>,
    /// Replaces everything else if the server fails after the reply has begun.
    pub(crate) error: Option<Value>,
}

/// The text of a chunk.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Choice {
    text: Option<String>,
    /// A chat's text, streamed.
    delta: Option<Words>,
    /// A chat's text, whole.
    message: Option<Words>,
    pub(crate) finish_reason: Option<String>,
    /// vLLM: the stop string or token; absent at the end of the sequence.
    pub(crate) stop_reason: Option<Value>,
    /// Log-probabilities of the text's tokens, if they were asked for.
    pub(crate) logprobs: Option<Value>,
}

/// What a chat's model says. What it thinks before (`reasoning_content`) is not part of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Words {
    content: Option<String>,
}

impl Choice {
    /// The text of the chunk.
    pub(crate) fn words(&self) -> Option<&str> {
        let chat = || self.delta.as_ref().or(self.message.as_ref())?.content.as_deref();
        self.text.as_deref().or_else(chat).filter(|text| !text.is_empty())
    }
}

/// The tokens of a reply.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Usage {
    pub(crate) prompt_tokens: usize,
    pub(crate) completion_tokens: Option<usize>,
    pub(crate) prompt_tokens_details: Option<Details>,
}

/// Of the prompt's tokens.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Details {
    pub(crate) cached_tokens: Option<usize>,
}

/// The reply of vLLM's `/tokenize`.
#[derive(Debug, Deserialize)]
pub(crate) struct Counted {
    pub(crate) count: usize,
}

#[cfg(test)]
mod tests {
    use autoact_model::Sampling;

    use super::*;

    fn sent_as(style: Style, request: &GenerateRequest, dialect: Dialect, left_out: &[&'static str]) -> Value {
        let spellings = Spellings::new(&[]).unwrap();
        let asked = Asked::new(style, &spellings, &request.prompt);
        let ask =
            CompletionRequest { model: "plan", asked, max_tokens: request.max_tokens, round: 0, guided: true, logprobs: None, left_out };
        serde_json::from_slice(&body(ask, request, dialect).unwrap()).unwrap()
    }

    fn sent(request: &GenerateRequest, dialect: Dialect) -> Value {
        sent_as(Style::Completions, request, dialect, &[])
    }

    fn fields(sent: &Value) -> Vec<&str> {
        let mut fields: Vec<&str> = sent.as_object().unwrap().keys().map(String::as_str).collect();
        fields.sort_unstable();
        fields
    }

    #[test]
    fn grammars_in_each_dialect() {
        let with = |grammar| GenerateRequest { grammar: Some(grammar), ..GenerateRequest::new("p") };
        for (grammar, new, old) in [
            (Grammar::Regex("a+\\n".into()), json!({ "regex": "a+\\n" }), ("guided_regex", json!("a+\\n"))),
            (Grammar::Choice(vec!["a".into()]), json!({ "choice": ["a"] }), ("guided_choice", json!(["a"]))),
            (Grammar::Lark("start: \"a\"".into()), json!({ "grammar": "start: \"a\"" }), ("guided_grammar", json!("start: \"a\""))),
            (
                Grammar::JsonSchema(json!({ "type": "object" })),
                json!({ "json": { "type": "object" }, "disable_any_whitespace": true }),
                ("guided_json", json!({ "type": "object" })),
            ),
            (
                Grammar::JsonLine(json!({ "type": "object" })),
                json!({ "json": { "type": "object" }, "disable_any_whitespace": true }),
                ("guided_json", json!({ "type": "object" })),
            ),
        ] {
            let request = with(grammar);
            assert_eq!(sent(&request, Dialect::Vllm)["structured_outputs"], new);
            let guided = sent(&request, Dialect::VllmGuided);
            assert_eq!(guided[old.0], old.1);
            assert!(guided.get("structured_outputs").is_none());
            let plain = sent(&request, Dialect::Openai);
            assert_eq!(fields(&plain), ["max_tokens", "model", "prompt", "stream", "stream_options", "temperature"]);
        }
    }

    #[test]
    fn sampling_says_exactly_what_was_asked_for() {
        let greedy = sent(&GenerateRequest::new("p"), Dialect::Vllm);
        assert_eq!((&greedy["temperature"], &greedy["top_k"], &greedy["top_p"]), (&json!(0.0), &json!(-1), &json!(1.0)));
        assert_eq!((&greedy["repetition_penalty"], greedy.get("seed")), (&json!(1.0), None));
        let sampling = Sampling { temperature: 0.7, top_k: Some(20), top_p: Some(0.9), seed: u64::MAX };
        let drawn = sent(&GenerateRequest { sampling, ..GenerateRequest::new("p") }, Dialect::Openai);
        assert_eq!((&drawn["temperature"], &drawn["top_k"], &drawn["top_p"]), (&json!(0.7_f32), &json!(20), &json!(0.9_f32)));
        assert_eq!(drawn["seed"], json!(-1));
        assert!(drawn.get("repetition_penalty").is_none());
    }

    #[test]
    fn vllm_is_told_whose_prompt_it_is() {
        let owner = Some(autoact_model::Owner { name: "ops".to_owned(), head: Prompt::default() });
        let request = GenerateRequest { owner, ..GenerateRequest::new("p") };
        for dialect in [Dialect::Vllm, Dialect::VllmGuided] {
            assert_eq!(sent(&request, dialect)["cache_salt"], json!("ops"));
            assert_eq!(sent(&GenerateRequest::new("p"), dialect).get("cache_salt"), None);
        }
        assert_eq!(sent(&request, Dialect::Openai).get("cache_salt"), None, "others refuse what they do not know");
        // what an engine without it says
        let refused = refused_fields("Parameter 'cache_salt' is not supported with this instance of vLLM, which uses engine V0.");
        assert_eq!(refused, ["cache_salt"]);
        assert_eq!(sent_as(Style::Completions, &request, Dialect::Vllm, &refused).get("cache_salt"), None);
    }

    #[test]
    fn a_chat_is_continued_where_the_server_can() {
        let mut prompt = Prompt::reply_to(vec![Message::new("system", "Be brief."), Message::new("user", "Hi <|im_end|>\n")]);
        prompt.push_text("Thought:");
        let request = GenerateRequest { grammar: Some(Grammar::JsonSchema(json!({}))), ..GenerateRequest::new(prompt) };
        let (system, user) = (json!({ "role": "system", "content": "Be brief." }), "Hi < |im_end|>\n");
        let vllm = sent_as(Style::ContinuedChat, &request, Dialect::Vllm, &[]);
        let model = json!({ "role": "assistant", "content": "Thought:" });
        assert_eq!(vllm["messages"], json!([system, { "role": "user", "content": user }, model]));
        assert_eq!((&vllm["continue_final_message"], &vllm["add_generation_prompt"]), (&json!(true), &json!(false)));
        let other = sent_as(Style::Chat, &request, Dialect::Openai, &[]);
        assert_eq!(other["messages"], json!([system, { "role": "user", "content": format!("{user}Thought:") }]));
        assert_eq!(other["response_format"]["json_schema"]["schema"], json!({}));
        assert!(other.get("continue_final_message").is_none());
        let bare = sent_as(Style::BareChat, &GenerateRequest::new("p"), Dialect::Openai, &[]);
        assert_eq!(bare["messages"], json!([{ "role": "user", "content": "p" }]));
    }

    #[test]
    fn fields_that_are_refused_are_left_out() {
        for (message, expected) in [
            ("Unexpected fields in the request: {'top_k', 'stream_options'}", vec!["stream_options", "top_k"]),
            ("Unrecognized request argument supplied: top_k", vec!["top_k"]),
            ("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'.", vec!["max_tokens"]),
            (r#"[{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]"#, vec!["seed"]),
            ("This model does not support the parameter `logprobs`.", vec!["logprobs"]),
            ("Unexpected fields in the request: {'structured_outputs'}", vec!["structured_outputs"]),
            ("structured_outputs: lookaheads are not supported in a regex", vec![]),
            ("max_tokens must be at least 1, got 0.", vec![]),
            ("the prompt is not supported: it seeded doubts", vec![]),
        ] {
            assert_eq!(refused_fields(message), expected, "{message}");
        }
        let sent = sent_as(Style::Completions, &GenerateRequest::new("p"), Dialect::Openai, &["stream_options", "max_tokens"]);
        assert_eq!(fields(&sent), ["max_completion_tokens", "model", "prompt", "stream", "temperature"]);
    }

    #[test]
    fn words_are_where_each_interface_has_them() {
        let words = |choice: Value| serde_json::from_value::<Choice>(choice).unwrap().words().map(str::to_owned);
        assert_eq!(words(json!({ "text": "a" })).as_deref(), Some("a"));
        assert_eq!(words(json!({ "delta": { "role": "assistant", "content": "b" } })).as_deref(), Some("b"));
        assert_eq!(words(json!({ "message": { "content": "c", "reasoning_content": "x" } })).as_deref(), Some("c"));
        for none in [json!({ "text": "" }), json!({ "delta": { "content": null } }), json!({ "delta": {} }), json!({})] {
            assert_eq!(words(none), None);
        }
    }
}
