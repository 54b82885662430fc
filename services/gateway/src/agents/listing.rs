//! What Tool-Agent tells of its library, as the gateway keeps it.

use std::error::Error;
use std::sync::Arc;

use autoact_trajectory::{ToolBackground, ToolSpec};
use autoact_wire::{ConversionError, agents_v1};

use crate::agents::choice::Listed;

/// So many tools are read on a thread that may wait: the schema of each is parsed.
const MANY: usize = 64;

/// The library as Tool-Agent told it.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) tools: Arc<Listed>,
    /// What names its content; empty: of a Tool-Agent that gives no digest.
    pub(crate) digest: String,
}

/// Reads a reply to who has `known`. A library with the same content stays the same value, so that
/// what was made of it does too.
///
/// # Errors
/// A tool that cannot be, or "unchanged" to who has another library.
pub(crate) async fn read(reply: agents_v1::ListToolsResponse, known: Option<&Told>) -> Result<Told, Box<dyn Error + Send + Sync>> {
    if reply.unchanged {
        let known = known.filter(|known| !known.digest.is_empty() && known.digest == reply.digest);
        return known.cloned().ok_or_else(|| ConversionError::UnknownValue { field: "digest", value: reply.digest }.into());
    }
    let before = known.map(|known| known.tools.clone());
    Ok(match reply.tools.len() < MANY {
        true => told(reply, before),
        false => tokio::task::spawn_blocking(move || told(reply, before)).await?,
    }?)
}

fn told(reply: agents_v1::ListToolsResponse, before: Option<Arc<Listed>>) -> Result<Told, ConversionError> {
    let agents_v1::ListToolsResponse { tools, optional, corpus, digest, unchanged: _ } = reply;
    let tools = tools.into_iter().map(ToolSpec::try_from).collect::<Result<Vec<_>, _>>()?;
    let optional = optional.into_iter().map(|tool| {
        let agents_v1::OptionalTool { name, title, about, details } = tool;
        (name, ToolBackground { title, about, details }.bounded())
    });
    let mut listed = Listed { tools, optional: optional.collect(), corpus };
    // a task without these would have no end
    listed.tools.iter().filter(|tool| tool.is_terminal()).for_each(|tool| {
        listed.optional.remove(&tool.name);
    });
    let tools = before.filter(|before| **before == listed).unwrap_or_else(|| Arc::new(listed));
    Ok(Told { tools, digest })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use autoact_wire::v1;

    use super::*;

    fn reply(count: usize, digest: &str) -> agents_v1::ListToolsResponse {
        let tool = |number: usize| v1::ToolSpec {
            name: format!("T{number}"),
            definition: "Does something.".into(),
            usage: format!("T{number}[x]"),
            effect: v1::Effect::ReadOnly as i32,
            schema: r#"{"type":"object","properties":{"a":{"type":"integer"}}}"#.into(),
            ..Default::default()
        };
        agents_v1::ListToolsResponse { tools: (0..count).map(tool).collect(), digest: digest.into(), ..Default::default() }
    }

    fn unchanged(digest: &str) -> agents_v1::ListToolsResponse {
        agents_v1::ListToolsResponse { digest: digest.into(), unchanged: true, ..Default::default() }
    }

    #[tokio::test]
    async fn what_did_not_change_stays_the_same_value() {
        for count in [1, MANY] {
            let first = read(reply(count, "a"), None).await.unwrap();
            assert_eq!(first.tools.tools.len(), count);
            let same = read(unchanged("a"), Some(&first)).await.unwrap();
            assert!(Arc::ptr_eq(&same.tools, &first.tools));
            // of a Tool-Agent that gives no digest, and of one of another release
            for digest in ["", "b"] {
                let again = read(reply(count, digest), Some(&first)).await.unwrap();
                assert!(Arc::ptr_eq(&again.tools, &first.tools) && again.digest == digest);
            }
            let other = read(reply(count + 1, "c"), Some(&first)).await.unwrap();
            assert_eq!((other.tools.tools.len(), other.digest.as_str()), (count + 1, "c"));
        }
    }

    #[tokio::test]
    async fn unchanged_is_said_of_a_library_that_is_known() {
        let known = read(reply(1, "a"), None).await.unwrap();
        let nameless = Told { digest: String::new(), ..known.clone() };
        for (digest, known) in [("a", None), ("b", Some(&known)), ("", Some(&nameless))] {
            let error = read(unchanged(digest), known).await.unwrap_err();
            assert!(error.is::<ConversionError>(), "{error}");
        }
    }

    #[tokio::test]
    async fn a_tool_that_cannot_be_is_refused() {
        for count in [1, MANY] {
            let mut wrong = reply(count, "a");
            wrong.tools[0].schema = "[]".into();
            assert!(read(wrong, None).await.unwrap_err().is::<ConversionError>());
        }
    }
}
