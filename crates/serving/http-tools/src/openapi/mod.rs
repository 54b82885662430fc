//! OpenAPI documents (2.0, 3.0, 3.1; JSON or YAML) as sets of tools.
//!
//! Documents are not trusted: bytes, nesting, values, operations and what references multiply are
//! bounded. An operation that cannot be imported is named with the reason; the others are imported.

mod assemble;
mod bodies;
pub(crate) mod check;
pub(crate) mod document;
mod error;
pub(crate) mod example;
mod keywords;
mod merge;
pub(crate) mod names;
mod options;
mod parameters;
mod parse;
pub(crate) mod schema;
mod security;
mod servers;
pub(crate) mod shrink;

use std::collections::BTreeSet;

use autoact_base::lines::one_line;
use autoact_trajectory::cut;
use serde_json::Value;
use url::Url;

pub use self::error::{ImportError, Note, SkipReason};
pub use self::options::{Import, ImportOptions, Imported, Skipped};
pub use self::security::NeededSecret;

use self::assemble::{Context, assemble};
use self::document::Document;
use self::names::Names;
use crate::remote::sha256;

/// Operations of a document.
const MAX_OPERATIONS: usize = 10_000;
/// What stands beside operations in a path's item.
const NO_METHODS: [&str; 5] = ["parameters", "servers", "summary", "description", "$ref"];

/// Reads a document. `source` is its URL or its path: relative servers are below its URL.
///
/// # Errors
/// The bytes are no document, or exceed a bound. What is wrong with one operation is no error: it is
/// among [`Import::skipped`].
pub fn import(bytes: &[u8], source: &str, options: &ImportOptions) -> Result<Import, ImportError> {
    let document = Document::new(parse::parse(bytes)?)?;
    let source = Url::parse(source).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let server = options.server.as_deref().map(|server| {
        let wrong = || ImportError::Server { server: server.to_owned(), reason: "expected an absolute URL of http or https".to_owned() };
        servers::absolute(server, None).ok_or_else(wrong)
    });
    let context = Context { document: &document, source: source.as_ref(), server: server.transpose()?, options };
    let mut names = Names::default();
    let (mut operations, mut skipped, mut secrets) = (Vec::new(), Vec::new(), Vec::<NeededSecret>::new());
    let mut count = 0_usize;
    for (path, item) in document.root["paths"].as_object().into_iter().flatten() {
        if path.starts_with("x-") {
            continue;
        }
        let item = match document.resolve(item) {
            Ok(item) => item,
            Err(reason) => {
                skipped.push(Skipped { at: path.clone(), reason });
                continue;
            }
        };
        for (method, operation) in item.as_object().into_iter().flatten() {
            if NO_METHODS.contains(&method.as_str()) || method.starts_with("x-") {
                continue;
            }
            count += 1;
            if count > MAX_OPERATIONS {
                return Err(ImportError::TooManyOperations { limit: MAX_OPERATIONS });
            }
            let at = cut(one_line(&format!("{} {path}", method.to_uppercase())), 200).0;
            match assemble(&context, item, path, method, operation, &at, &mut names) {
                Ok((imported, needed)) => {
                    let known: BTreeSet<String> = secrets.iter().map(|secret| secret.scheme.clone()).collect();
                    secrets.extend(needed.into_iter().filter(|secret| !known.contains(&secret.scheme)));
                    operations.push(imported);
                }
                Err(reason) => skipped.push(Skipped { at, reason }),
            }
        }
    }
    let info = |key: &str| cut(one_line(document.root["info"][key].as_str().unwrap_or_default()), 200).0;
    let version = match &document.root["info"]["version"] {
        Value::String(_) | Value::Null => info("version"),
        other => other.to_string(),
    };
    let about = schema::prose(document.root["info"]["description"].as_str().unwrap_or_default());
    Ok(Import { title: info("title"), about: cut(about, 400).0, version, digest: sha256(bytes), operations, skipped, secrets })
}
