//! The wire format: requests in the server's dialect, and chunks of replies.

use autoact_model::{GenerateRequest, Grammar};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::options::Dialect;

/// vLLM's value for "no `top_k`", which all its versions accept.
const NO_TOP_K: i64 = -1;

/// `POST /completions`.
#[derive(Debug, Serialize)]
struct Body<'a> {
    model: &'a str,
    prompt: &'a str,
    max_tokens: usize,
    temperature: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_p: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repetition_penalty: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<u32>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop: &'a [String],
    stream: bool,
    stream_options: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    add_special_tokens: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_outputs: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    guided_regex: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    guided_choice: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    guided_grammar: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    guided_json: Option<&'a Value>,
}

/// The parameters that differ between the requests for one completion.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CompletionRequest<'a> {
    /// The served name.
    pub(crate) model: &'a str,
    /// The prompt, with the text so far.
    pub(crate) prompt: &'a str,
    /// Maximum number of tokens.
    pub(crate) max_tokens: usize,
    /// Number of the round, from 0.
    pub(crate) round: u64,
    /// Whether the server applies the grammar, which is possible only before any text exists.
    pub(crate) guided: bool,
    /// Number of likely tokens whose log-probabilities are reported for each token; `None`: none
    /// are reported.
    pub(crate) logprobs: Option<u32>,
}

/// The request as JSON.
pub(crate) fn body(ask: CompletionRequest<'_>, request: &GenerateRequest, dialect: Dialect) -> Result<Vec<u8>, serde_json::Error> {
    let sampling = request.sampling;
    let drawn = sampling.temperature > 0.0;
    let vllm = dialect.guides();
    let mut body = Body {
        model: ask.model,
        prompt: ask.prompt,
        max_tokens: ask.max_tokens,
        // NaN is greedy, as in the engine
        temperature: if drawn { sampling.temperature } else { 0.0 },
        top_p: sampling.top_p.filter(|_| drawn),
        top_k: sampling.top_k.filter(|_| drawn).and_then(|k| i64::try_from(k).ok()),
        min_p: None,
        repetition_penalty: None,
        // all 64 bits are sent; the wire format has signed numbers
        seed: drawn.then(|| sampling.seed.wrapping_add(ask.round).cast_signed()),
        logprobs: ask.logprobs,
        stop: &request.stop,
        stream: true,
        stream_options: json!({ "include_usage": true }),
        add_special_tokens: request.add_bos.filter(|_| vllm),
        structured_outputs: None,
        guided_regex: None,
        guided_choice: None,
        guided_grammar: None,
        guided_json: None,
    };
    if vllm {
        // if absent, these come from the model's own `generation_config.json`
        body.top_p = body.top_p.or(Some(1.0));
        body.top_k = body.top_k.or(Some(NO_TOP_K));
        body.min_p = Some(0.0);
        body.repetition_penalty = Some(1.0);
    }
    let grammar = request.grammar.as_ref().filter(|_| ask.guided);
    match (dialect, grammar) {
        (Dialect::Openai, _) | (_, None) => {}
        (Dialect::Vllm, Some(grammar)) => {
            body.structured_outputs = Some(match grammar {
                Grammar::Regex(regex) => json!({ "regex": regex }),
                Grammar::Choice(choices) => json!({ "choice": choices }),
                Grammar::Lark(lark) => json!({ "grammar": lark }),
                Grammar::JsonSchema(schema) | Grammar::JsonLine(schema) => json!({ "json": schema, "disable_any_whitespace": true }),
            });
        }
        (Dialect::VllmGuided, Some(grammar)) => match grammar {
            Grammar::Regex(regex) => body.guided_regex = Some(regex),
            Grammar::Choice(choices) => body.guided_choice = Some(choices),
            Grammar::Lark(lark) => body.guided_grammar = Some(lark),
            Grammar::JsonSchema(schema) | Grammar::JsonLine(schema) => body.guided_json = Some(schema),
        },
    }
    serde_json::to_vec(&body)
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
    pub(crate) text: Option<String>,
    pub(crate) finish_reason: Option<String>,
    /// vLLM: the stop string or token; absent at the end of the sequence.
    pub(crate) stop_reason: Option<Value>,
    /// Log-probabilities of the text's tokens, if they were asked for.
    pub(crate) logprobs: Option<Value>,
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

    fn sent(request: &GenerateRequest, dialect: Dialect) -> Value {
        let (prompt, max_tokens) = (&request.prompt, request.max_tokens);
        let ask = CompletionRequest { model: "plan", prompt, max_tokens, round: 0, guided: true, logprobs: None };
        serde_json::from_slice(&body(ask, request, dialect).unwrap()).unwrap()
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
            let mut fields: Vec<&str> = plain.as_object().unwrap().keys().map(String::as_str).collect();
            fields.sort_unstable();
            assert_eq!(fields, ["max_tokens", "model", "prompt", "stream", "stream_options", "temperature"]);
        }
    }

    #[test]
    fn sampling_says_exactly_what_was_asked_for() {
        let greedy = sent(&GenerateRequest::new("p"), Dialect::Vllm);
        assert_eq!((&greedy["temperature"], &greedy["top_k"], &greedy["top_p"]), (&json!(0.0), &json!(-1), &json!(1.0)));
        assert_eq!((&greedy["repetition_penalty"], greedy.get("seed")), (&json!(1.0), None));
        let sampling = Sampling { temperature: 0.7, top_k: Some(20), top_p: Some(0.9), seed: u64::MAX };
        let drawn = sent(&GenerateRequest { sampling, ..GenerateRequest::new("p") }, Dialect::Openai);
        assert_eq!((&drawn["temperature"], &drawn["top_k"], &drawn["top_p"]), (&json!(0.7), &json!(20), &json!(0.9)));
        assert_eq!(drawn["seed"], json!(-1));
        assert!(drawn.get("repetition_penalty").is_none());
    }
}
