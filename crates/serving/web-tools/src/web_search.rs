//! `web_search`: the first results of a search engine.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use autoact_http_tools::HttpClient;
use autoact_tools::{Key, Preset, Tool, ToolCall, ToolError, ToolOutput};
use autoact_trajectory::{Effect, ToolSpec};
use serde::Deserialize;

use crate::engine::{Engine, lines};
use crate::options::{ALLOW_PRIVATE, CONCURRENCY, HOSTS, MAX_RESPONSE_BYTES, REDIRECTS, Raw};
use crate::{ask, options};

pub(crate) static PRESET: Preset = Preset {
    kind: "web_search",
    name: "WebSearch",
    definition: "Searches the web and shows title, URL and summary of the first 5 results.",
    schema: Some(SCHEMA),
    usage: None,
    examples: &["length of the Loire"],
    effect: Effect::ReadOnly,
    timeout: Duration::from_secs(20),
    max_observation_bytes: 2560,
    multiline: true,
    keys: &[
        Key {
            name: "url",
            meaning: "the URL of the search engine, such as `https://searx.example.org/search?q={query}&format=json`",
            required: false,
        },
        Key { name: "api", meaning: "instead of `url`: the URL of a wiki's api.php", required: false },
        HOSTS,
        ALLOW_PRIVATE,
        MAX_RESPONSE_BYTES,
        REDIRECTS,
        CONCURRENCY,
    ],
    data: &[],
};

pub(crate) const SCHEMA: &str = r#"{
  "type": "object",
  "properties": { "text": { "type": "string", "minLength": 1, "maxLength": 400, "description": "what to search for" } },
  "required": ["text"],
  "additionalProperties": false
}"#;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    url: Option<String>,
    api: Option<String>,
}

pub(crate) fn make(mut run: toml::Table, spec: ToolSpec, _: Option<&Path>, client: &HttpClient) -> Result<Arc<dyn Tool>, Vec<String>> {
    let mut mistakes = Vec::new();
    let raw = Raw::take(&mut run, &mut mistakes);
    let own: Option<Own> = options::read(run, &mut mistakes);
    let engine = own.and_then(|own| Engine::new((own.url, own.api), ("url", "api"), raw, client, &mut mistakes));
    match engine {
        Some(engine) if mistakes.is_empty() => Ok(Arc::new(WebSearch { spec, client: client.clone(), engine: Arc::new(engine) })),
        _ => Err(mistakes),
    }
}

struct WebSearch {
    spec: ToolSpec,
    client: HttpClient,
    engine: Arc<Engine>,
}

impl Tool for WebSearch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        let text = asked(call)?;
        let (engine, wanted) = (Arc::clone(&self.engine), text.clone());
        let hits = ask::wait(self.client.handle(), self.spec.timeout, async move { engine.search(&wanted).await })?;
        if hits.is_empty() {
            return Ok(format!("Nothing is found for {text}. Try other or fewer words.").into());
        }
        // the summaries are the engine's words: only a page that was read can be cited
        Ok(lines(&hits).collect::<Vec<_>>().join("\n").into())
    }
}

/// The text to search for.
pub(crate) fn asked(call: &ToolCall<'_>) -> Result<String, ToolError> {
    let text = autoact_base::lines::one_line(ask::text(call, "text"));
    if text.is_empty() {
        return Err(ToolError::Params("there is no text to search for; write some words".to_owned()));
    }
    Ok(text)
}
