//! A server's list of tools, page by page and within bounds.

use std::collections::BTreeMap;

use autoact_http_tools::remote::digest;
use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::connection::Connection;
use crate::failure::McpFailure;

/// Tools of one server.
const MAX_TOOLS: usize = 1000;
/// Pages of a list.
const MAX_PAGES: usize = 100;
/// The longest name that a server may give a tool.
const LONGEST_NAME: usize = 256;
/// The hints that the protocol knows.
const HINTS: [&str; 5] = ["title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];

/// A tool as the server defines it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Definition {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) schema: Value,
    /// Those that are given.
    pub(crate) hints: Map<String, Value>,
}

impl Definition {
    /// Reads an entry of a list; the name of one that cannot be read, as far as it has one.
    fn read(entry: &Value) -> Result<Definition, String> {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
        let name = text("name");
        let schema = entry.get("inputSchema").filter(|schema| schema.is_object());
        let (Some(schema), 1..=LONGEST_NAME) = (schema, name.len()) else { return Err(name.to_owned()) };
        let said = entry.get("annotations").and_then(Value::as_object);
        let hints = HINTS.iter().filter_map(|hint| {
            let value = said?.get(*hint).filter(|value| !value.is_null())?;
            Some(((*hint).to_owned(), value.clone()))
        });
        let description = [text("description"), text("title")].into_iter().find(|text| !text.trim().is_empty()).unwrap_or_default();
        Ok(Definition { name: name.to_owned(), description: description.to_owned(), schema: schema.clone(), hints: hints.collect() })
    }

    /// The SHA-256 of all that a call depends on.
    pub(crate) fn digest(&self) -> String {
        digest(&json!([self.name, self.description, self.schema, self.hints]))
    }

    /// Whether a hint is given and true.
    pub(crate) fn hint(&self, name: &str) -> Option<bool> {
        self.hints.get(name).and_then(Value::as_bool)
    }
}

/// What a server lists.
#[derive(Debug, Default)]
pub(crate) struct List {
    /// By name, so that the order of the server changes nothing.
    pub(crate) tools: BTreeMap<String, Definition>,
    /// Names that occur again.
    pub(crate) again: Vec<String>,
    /// Names of entries that cannot be read.
    pub(crate) malformed: Vec<String>,
}

impl List {
    /// Asks for all pages.
    pub(crate) async fn ask(connection: &Connection, deadline: Instant) -> Result<List, McpFailure> {
        let (mut list, mut cursor, mut count) = (List::default(), None::<String>, 0_usize);
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
            let page = connection.request(request, deadline).await?;
            let page = serde_json::to_value(&page).map_err(|error| McpFailure::Internal(error.to_string()))?;
            let Some(entries) = page.get("tools").and_then(Value::as_array) else {
                return Err(connection.protocol("its list of tools has no tools"));
            };
            count += entries.len();
            if count > MAX_TOOLS {
                return Err(McpFailure::TooMany { limit: MAX_TOOLS, what: "tools" });
            }
            for entry in entries {
                list.add(entry);
            }
            let next = page.get("nextCursor").and_then(Value::as_str).filter(|next| !next.is_empty()).map(str::to_owned);
            match next {
                None => return Ok(list),
                Some(_) if next == cursor => return Err(connection.protocol("its list of tools does not go on")),
                next => cursor = next,
            }
        }
        Err(McpFailure::TooMany { limit: MAX_PAGES, what: "pages of tools" })
    }

    fn add(&mut self, entry: &Value) {
        match Definition::read(entry) {
            Err(name) => self.malformed.push(name),
            Ok(tool) if self.tools.contains_key(&tool.name) => self.again.push(tool.name),
            Ok(tool) => drop(self.tools.insert(tool.name.clone(), tool)),
        }
    }

    /// The digests of all tools. A name that occurs again names none of them.
    pub(crate) fn digests(&self) -> BTreeMap<String, String> {
        let once = self.tools.values().filter(|tool| !self.again.contains(&tool.name));
        once.map(|tool| (tool.name.clone(), tool.digest())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_that_of_what_a_call_depends_on() {
        let read = |value: Value| Definition::read(&value).unwrap();
        let first = read(json!({"name": "a", "description": "x", "inputSchema": {"type": "object", "properties": {}}}));
        let same = read(json!({"inputSchema": {"properties": {}, "type": "object"}, "icons": [], "annotations": {"title": null},
            "description": "x", "name": "a", "_meta": {"b": 1}}));
        assert_eq!(first.digest(), same.digest());
        for other in [
            json!({"name": "b", "description": "x", "inputSchema": {"type": "object", "properties": {}}}),
            json!({"name": "a", "description": "y", "inputSchema": {"type": "object", "properties": {}}}),
            json!({"name": "a", "description": "x", "inputSchema": {"type": "object"}}),
            json!({"name": "a", "description": "x", "inputSchema": {"type": "object", "properties": {}}, "annotations": {"readOnlyHint": true}}),
        ] {
            assert_ne!(first.digest(), read(other).digest());
        }
    }

    #[test]
    fn entries_without_form_are_named() {
        for entry in [json!(1), json!({"name": ""}), json!({"name": "a"}), json!({"name": "a", "inputSchema": []})] {
            assert!(Definition::read(&entry).is_err(), "{entry}");
        }
        assert!(Definition::read(&json!({"name": "a".repeat(300), "inputSchema": {}})).is_err());
    }
}
