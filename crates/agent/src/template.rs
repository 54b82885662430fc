//! The chat template of a model whose weights are elsewhere.

use std::path::Path;

use autoact_model::ChatTemplate;
use autoact_service::StartError;
use serde_json::Value;

const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
const TEMPLATE: &str = "chat_template.jinja";

/// The template in `dir`; none for an empty path.
pub(crate) async fn read(dir: &Path) -> Result<Option<ChatTemplate>, StartError> {
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
    template.map(Some).map_err(|error| StartError::because(&what, &error).fix(fix))
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
        assert_eq!(read(dir.path()).await.unwrap().unwrap().render(&messages, true).unwrap(), "<s>hi</s>");
        write(TEMPLATE, "{{ messages[0].role }}");
        assert_eq!(read(dir.path()).await.unwrap().unwrap().render(&messages, true).unwrap(), "user");
    }
}
