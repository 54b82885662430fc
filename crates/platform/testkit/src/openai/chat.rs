//! Chats: messages become the text of a prompt as the server's template says, and replies have the
//! form of a chat.

use autoact_model::Message;
use axum::response::Response;
use http::StatusCode;
use serde_json::{Value, json};

use super::{Kind, State, error};

/// A request for a chat as one for the completion of its rendered prompt.
pub(super) fn as_text(state: &State, mut json: Value) -> Result<Value, Box<Response>> {
    let bad = |message: &str| Box::new(error(StatusCode::BAD_REQUEST, message));
    let Some(template) = &state.options.chat_template else {
        return Err(match state.options.kind {
            Kind::OpenAi => Box::new(error(StatusCode::NOT_FOUND, "This is not a chat model.")),
            _ => bad("As of transformers v4.44, default chat template is no longer allowed, so you must provide a chat template."),
        });
    };
    let Some(fields) = json.as_object_mut() else { return Err(bad("not an object")) };
    let messages = fields.remove("messages").unwrap_or_default();
    let mut messages: Vec<Message> = serde_json::from_value(messages).map_err(|reason| bad(&reason.to_string()))?;
    // OpenAI's API knows neither, and refuses them as it refuses other fields
    let mut continued = None;
    if state.options.kind != Kind::OpenAi {
        fields.remove("add_generation_prompt");
        if fields.remove("continue_final_message") == Some(Value::Bool(true)) {
            continued = messages.pop();
        }
    }
    let prompt = template.render(&messages, true).map_err(|reason| bad(&reason.to_string()))?;
    let begun = continued.map(|message| message.content).unwrap_or_default();
    fields.insert("prompt".to_owned(), format!("{prompt}{begun}").into());
    let likely = fields.remove("top_logprobs");
    match fields.remove("logprobs") {
        Some(Value::Bool(true)) => drop(fields.insert("logprobs".to_owned(), likely.unwrap_or_default())),
        Some(Value::Bool(false) | Value::Null) | None => {}
        Some(_) => return Err(bad("logprobs: a boolean in a chat")),
    }
    fields.remove("response_format");
    Ok(json)
}

/// A choice of a completion in the form of a chat.
pub(super) fn choice(mut choice: Value, streamed: bool) -> Value {
    let Some(fields) = choice.as_object_mut() else { return choice };
    let text = fields.remove("text").unwrap_or_default();
    let logprobs = fields.remove("logprobs").map_or(Value::Null, |logprobs| content(&logprobs));
    fields.insert("logprobs".to_owned(), logprobs);
    fields.insert(if streamed { "delta" } else { "message" }.to_owned(), json!({ "role": "assistant", "content": text }));
    choice
}

/// Log-probabilities in the form of a chat.
fn content(logprobs: &Value) -> Value {
    let list = |field: &str| logprobs[field].as_array().cloned().unwrap_or_default();
    if logprobs.is_null() {
        return Value::Null;
    }
    let tops = list("top_logprobs");
    let tokens = list("tokens").into_iter().zip(list("token_logprobs")).enumerate();
    let content = tokens.map(|(at, (token, logprob))| {
        let top = tops.get(at).and_then(Value::as_object).into_iter().flatten();
        let top: Vec<Value> = top.map(|(token, logprob)| json!({ "token": token, "logprob": logprob })).collect();
        json!({ "token": token, "logprob": logprob, "top_logprobs": top })
    });
    json!({ "content": content.collect::<Vec<_>>() })
}
