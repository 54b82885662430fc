//! The library: operations of OpenAPI documents, imported as tool-agent imports them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use anyhow::Context as _;
use autoact_http_tools::openapi::{ImportOptions, import};
use autoact_trajectory::{ToolBackground, ToolSpec};

/// A library, and the operation of each tool.
pub(crate) struct Library {
    pub(crate) tools: Vec<(ToolSpec, ToolBackground)>,
    /// The tool's name by document, method and path.
    pub(crate) names: HashMap<String, String>,
    pub(crate) about: String,
}

pub(crate) fn read(documents: &Path, operations: &Path) -> anyhow::Result<Library> {
    let text = std::fs::read_to_string(operations).with_context(|| format!("cannot read `{}`", operations.display()))?;
    let mut wanted: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (document, operation) = line.split_once(' ').with_context(|| format!("`{line}` names no operation"))?;
        wanted.entry(document).or_default().insert(operation);
    }
    let (mut tools, mut names, mut taken) = (Vec::new(), HashMap::new(), BTreeSet::new());
    let (mut refused, mut skipped) = (0, 0);
    for (document, operations) in &wanted {
        let bytes = std::fs::read(documents.join(document)).with_context(|| format!("cannot read `{document}`"))?;
        let options = ImportOptions { prefix: prefix(document), ..ImportOptions::default() };
        let Ok(imported) = import(&bytes, "https://documents.example/openapi.json", &options) else {
            refused += 1;
            skipped += operations.len();
            continue;
        };
        let before = tools.len();
        for operation in imported.operations.into_iter().filter(|operation| operations.contains(operation.at.as_str())) {
            let mut spec = operation.spec;
            while !taken.insert(spec.name.clone()) {
                spec.name.push('_');
            }
            names.insert(format!("{document} {}", operation.at), spec.name.clone());
            let (title, about) = (imported.title.clone(), imported.about.clone());
            tools.push((spec, ToolBackground { title, about, details: operation.details }.bounded()));
        }
        skipped += operations.len() - (tools.len() - before);
    }
    let about = format!(
        "library: {} tools of {} documents; {skipped} operations could not be imported, {refused} documents were refused\n",
        tools.len(),
        wanted.len() - refused
    );
    Ok(Library { tools, names, about })
}

/// What somebody would set as the prefix of the document's tools: its provider.
fn prefix(document: &str) -> String {
    let provider = document.trim_end_matches(".json").split(['/', ':']).next().unwrap_or_default();
    let words: Vec<&str> = provider.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let prefix = words.join("_");
    let letter = if prefix.starts_with(|c: char| c.is_ascii_digit()) { "n" } else { "" };
    format!("{letter}{}_", prefix.chars().take(24).collect::<String>())
}
