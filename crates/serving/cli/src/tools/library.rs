//! The files of a library, read on this machine as tool-agent reads them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use autoact_http_tools::{HttpClient, HttpClientOptions};
use autoact_sandbox::Tier;
use autoact_tool_sources::Sources;
use autoact_tools::{Knowledge, ToolLibrary, ToolSet};
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::files::{Files, files};
use crate::args::FilesOptions;
use crate::exit;
use crate::out;
use crate::text::plain_line;

/// Reads both files. Secrets are looked for in this program's environment.
pub(super) async fn read(tools: &Path, own: &Path) -> anyhow::Result<ToolLibrary> {
    let sources = Arc::new(sources()?);
    let (tools, own) = (tools.to_owned(), own.to_owned());
    let read = tokio::task::spawn_blocking(move || sources.library(&tools, Some(&own), Knowledge::new(None, None)));
    Ok(read.await.context("reading the library broke")??)
}

pub(super) fn sources() -> anyhow::Result<Sources> {
    Ok(Sources::new(HttpClient::new(Handle::current(), HttpClientOptions::from_environment())?))
}

/// `autoact tools check`
pub(super) async fn check(options: &FilesOptions, json: bool) -> anyhow::Result<u8> {
    let Files { tools, own } = files(options)?;
    let library = read(&tools, &own).await?;
    let confined = confined(&library);
    let sound = library.sets().iter().all(|set| set.out_of_service.is_none()) && confined.iter().all(|(_, tier)| tier.is_ok());
    if json {
        let sandboxes: BTreeMap<&str, String> =
            confined.iter().map(|(tool, tier)| (*tool, tier.clone().unwrap_or_else(|why| format!("refused: {why}")))).collect();
        out::line(json!({
            "files": [tools.display().to_string(), own.display().to_string()],
            "tools": library.names(),
            "sandboxes": sandboxes,
            "trusted": library.trusted().collect::<Vec<_>>(),
            "sets": library.sets().iter().map(object).collect::<Vec<_>>(),
        }))?;
    } else {
        out::line(format_args!("{} tools: {}", library.names().len(), library.names().join(", ")))?;
        for (tool, tier) in &confined {
            match tier {
                Ok(tier) => out::line(format_args!("{tool}: confined, tier {tier}"))?,
                Err(why) => out::line(format_args!("{tool}: cannot be confined: {why}"))?,
            }
        }
        for tool in library.trusted() {
            out::line(format_args!("{tool}: trusted, not confined"))?;
        }
        for set in library.sets() {
            out::text(shown(set))?;
        }
        if !own.exists() {
            out::note(format_args!("{} is not there: no tools of your own", own.display()));
        }
    }
    Ok(if sound { exit::OK } else { exit::FAILED })
}

fn confined(library: &ToolLibrary) -> Vec<(&str, Result<String, String>)> {
    let tier = |sandbox: &autoact_sandbox::Sandbox| {
        let tiers = Tier::probe().map_err(|error| error.to_string())?;
        tiers.choose(sandbox.tier, sandbox.allow_lesser).map(|tier| tier.to_string()).map_err(|error| error.to_string())
    };
    library.sandboxes().map(|(tool, sandbox)| (tool, tier(sandbox))).collect()
}

/// A set for programs. Fields may be added.
fn object(set: &ToolSet) -> Value {
    let names = |tools: &[Arc<dyn autoact_tools::Tool>]| tools.iter().map(|tool| tool.spec().name.clone()).collect::<Vec<_>>();
    json!({
        "name": set.name,
        "section": set.section,
        "tools": names(&set.tools),
        "out_of_service": set.out_of_service,
        "withheld": names(&set.withheld),
        "skipped": set.skipped.iter().map(|(name, reason)| json!({"name": name, "reason": reason})).collect::<Vec<_>>(),
        "notes": set.notes,
        "digest": set.digest,
    })
}

/// A set for people.
pub(super) fn shown(set: &ToolSet) -> String {
    let mut text = format!("{} {}: ", set.section, plain_line(&set.name));
    match &set.out_of_service {
        None => text.push_str(&format!("{} tools\n", set.tools.len())),
        Some(why) => text.push_str(&format!("out of service: {}\n", plain_line(why))),
    }
    for tool in set.tools.iter().chain(&set.withheld) {
        let spec = tool.spec();
        text.push_str(&format!("  {}\n      {}\n", plain_line(&spec.usage), plain_line(&spec.definition)));
    }
    for (name, reason) in &set.skipped {
        text.push_str(&format!("  left out: {}: {}\n", plain_line(name), plain_line(reason)));
    }
    for note in &set.notes {
        text.push_str(&format!("  note: {}\n", plain_line(note)));
    }
    text
}
