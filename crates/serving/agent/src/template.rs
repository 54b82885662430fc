//! The chat template of a model whose weights are elsewhere.

use std::path::Path;

use autoact_model::{ChatTemplate, is_control_token};
use autoact_service::StartError;
use serde_json::Value;

const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
const TEMPLATE: &str = "chat_template.jinja";

/// A model's template, and what goes with it.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) template: ChatTemplate,
    /// The spellings of the model's control tokens; empty where the configuration does not list its
    /// tokens.
    pub(crate) control_tokens: Vec<String>,
}

/// The template in `dir`; none for an empty path.
pub(crate) async fn read(dir: &Path) -> Result<Option<Found>, StartError> {
    if dir.as_os_str().is_empty() {
        return Ok(None);
    }
    let what = format!("cannot read a chat template from `{}`", dir.display());
    let fix =
        "set `backend.chat_template` to a directory with the model's `tokenizer_config.json` and, where it has one, `chat_template.jinja`";
    let config = tokio::fs::read_to_string(dir.join(TOKENIZER_CONFIG)).await;
    let config = config.map_err(|error| StartError::because(format!("{what}: `{TOKENIZER_CONFIG}`"), &error).fix(fix))?;
    let config: Value = serde_json::from_str(&config).map_err(|error| StartError::because(&what, &error).fix(fix))?;
    let source = match tokio::fs::read_to_string(dir.join(TEMPLATE)).await {
        Ok(source) => source,
        Err(_) => within(&config).ok_or_else(|| StartError::new(format!("{what}: there is none")).fix(fix))?.to_owned(),
    };
    let token = |name: &str| {
        let token = &config[name];
        token.as_str().or_else(|| token["content"].as_str()).unwrap_or_default().to_owned()
    };
    let template = ChatTemplate::new(source, token("bos_token"), token("eos_token"));
    let template = template.map_err(|error| StartError::because(&what, &error).fix(fix))?;
    Ok(Some(Found { template, control_tokens: control_tokens(&config) }))
}

/// The control tokens among the added tokens that the configuration lists.
fn control_tokens(config: &Value) -> Vec<String> {
    let added = config["added_tokens_decoder"].as_object().into_iter().flat_map(|tokens| tokens.values());
    let spellings = added.filter_map(|token| {
        let spelling = token["content"].as_str()?;
        is_control_token(spelling, token["special"] == true).then(|| spelling.to_owned())
    });
    spellings.collect()
}

/// A template in the configuration itself: one, or the one called `default`.
fn within(config: &Value) -> Option<&str> {
    let field = &config["chat_template"];
    let named = || field.as_array()?.iter().find(|template| template["name"] == "default")?["template"].as_str();
    field.as_str().or_else(named)
}

#[cfg(test)]
mod tests {
    use autoact_model::Message;

    use super::*;

    #[tokio::test]
    async fn templates_are_found_where_models_keep_them() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        assert!(read(Path::new("")).await.unwrap().is_none());
        assert!(read(dir.path()).await.is_err());
        write(TOKENIZER_CONFIG, r#"{"bos_token": {"content": "<s>"}, "eos_token": "</s>"}"#);
        let error = read(dir.path()).await.unwrap_err().to_string();
        assert!(error.contains("there is none"), "{error}");
        let messages = [Message::new("user", "hi")];
        write(
            TOKENIZER_CONFIG,
            r#"{"bos_token": {"content": "<s>"}, "eos_token": "</s>", "chat_template": "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}"}"#,
        );
        let found = read(dir.path()).await.unwrap().unwrap();
        assert_eq!(found.template.render(&messages, true).unwrap(), "<s>hi</s>");
        assert!(found.control_tokens.is_empty());
        write(TEMPLATE, "{{ messages[0].role }}");
        assert_eq!(read(dir.path()).await.unwrap().unwrap().template.render(&messages, true).unwrap(), "user");
    }

    #[test]
    fn control_tokens_are_those_that_the_configuration_lists() {
        let token = |content: &str, special: bool| serde_json::json!({ "content": content, "special": special });
        let config = serde_json::json!({ "added_tokens_decoder": {
            "1": token("<|im_end|>", true), "2": token("<think>", false), "3": token("<|fim_pad|>", false), "4": token("    ", false),
        } });
        assert_eq!(control_tokens(&config), ["<|im_end|>", "<think>", "<|fim_pad|>"]);
        assert!(control_tokens(&serde_json::json!({})).is_empty());
    }
}
