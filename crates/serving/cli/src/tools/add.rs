//! `autoact tools add|accept|remove`: changes your own library, and says what a group has of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use autoact_tools::{Kinds as _, ToolSet};
use autoact_wire::v1;
use serde_json::json;
use tokio::time::Instant;
use toml::{Table, Value};

use super::files::{Files, files};
use super::{edit, library, ready};
use crate::args::{AddCommand, CommonOptions, FilesOptions};
use crate::client;
use crate::exit;
use crate::out;
use crate::replace::directory;

/// How long a running group is waited for: tool-agent looks every second.
const TAKEN: Duration = Duration::from_secs(6);

/// An entry as the options say it.
struct Entry {
    section: &'static str,
    table: Table,
}

pub(super) async fn add(gateway: &str, command: AddCommand) -> anyhow::Result<u8> {
    let (Entry { section, mut table }, common) = entry(command)?;
    if let Some(timeout) = common.timeout {
        table.insert("timeout".into(), timeout.into());
    }
    let Files { tools, own } = files(&common.files)?;
    let mut document = edit::read(&own)?;
    let mut set = None;
    if section != "tool" {
        let found = look(section, table.clone(), own.parent()).await?;
        if let (Some(why), true) = (&found.out_of_service, found.withheld.is_empty()) {
            bail!("`{}` cannot be added: {why}", found.name);
        }
        if found.tools.is_empty() && found.withheld.is_empty() {
            bail!("`{}` has no tool that can be used:\n{}", found.name, library::shown(&found));
        }
        if !found.withheld.is_empty() {
            // who adds a set accepts it as it is shown now
            table.extend(found.digest.clone().map(|digest| ("digest".to_owned(), Value::from(digest))));
        }
        set = Some(found);
    }
    let name = table.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let written: toml_edit::DocumentMut = toml::to_string(&table)?.parse()?;
    edit::add(&mut document, section, written.as_table().clone())?;
    let names = checked(&tools, &own, &document).await?;
    edit::write(&own, &document)?;
    if let Some(set) = &set {
        let added = set.tools.iter().chain(&set.withheld);
        for spec in added.map(|tool| tool.spec()) {
            out::line(format_args!("  {}", crate::text::plain_line(&spec.usage)))?;
        }
        for (name, reason) in &set.skipped {
            out::note(format_args!("left out: {}: {}", crate::text::plain_line(name), crate::text::plain_line(reason)));
        }
        for note in &set.notes {
            out::note(crate::text::plain_line(note));
        }
    }
    out::line(format_args!("added `{name}` to {}", own.display()))?;
    taken(gateway, &names).await;
    Ok(exit::OK)
}

pub(super) async fn accept(name: &str, options: &FilesOptions) -> anyhow::Result<u8> {
    let Files { tools, own } = files(options)?;
    let library = library::read(&tools, &own).await?;
    let set = library.sets().iter().find(|set| set.name == name);
    let Some(set) = set else {
        let known: Vec<&str> = library.sets().iter().map(|set| set.name.as_str()).collect();
        bail!(
            "there is no set `{name}`; {}",
            if known.is_empty() { "there is none at all".into() } else { format!("there are `{}`", known.join("`, `")) }
        );
    };
    let Some(digest) = &set.digest else { bail!("`{name}` cannot be accepted now: {}", set.out_of_service.as_deref().unwrap_or_default()) };
    if set.out_of_service.is_none() {
        out::line(format_args!("`{name}` is in service with these definitions already"))?;
        return Ok(exit::OK);
    }
    for path in [&own, &tools] {
        let mut document = edit::read(path)?;
        if edit::accept(&mut document, set.section, name, digest) {
            edit::write(path, &document)?;
            let accepted = ToolSet { out_of_service: None, tools: set.withheld.clone(), withheld: Vec::new(), ..set.clone() };
            out::text(library::shown(&accepted))?;
            out::line(format_args!("accepted `{name}` in {}; a running group takes it within seconds", path.display()))?;
            return Ok(exit::OK);
        }
    }
    bail!("the entry `{name}` is in neither file any more")
}

pub(super) fn remove(name: &str, options: &FilesOptions) -> anyhow::Result<u8> {
    let own = files(options)?.own;
    let mut document = edit::read(&own)?;
    if !edit::remove(&mut document, name) {
        bail!("{} has no entry `{name}`", own.display());
    }
    edit::write(&own, &document)?;
    out::line(format_args!("removed `{name}` from {}", own.display()))?;
    Ok(exit::OK)
}

/// What the entry of a set gives now.
async fn look(section: &'static str, table: Table, base: Option<&Path>) -> anyhow::Result<ToolSet> {
    let sources = Arc::new(library::sources()?);
    let base = base.map(Path::to_owned);
    let found = tokio::task::spawn_blocking(move || sources.set(section, table, base.as_deref())).await?;
    found.map_err(|mistakes| anyhow::anyhow!("{}", mistakes.join("; ")))
}

/// Reads the library with the new entry, as tool-agent will: what it would refuse is not written.
/// The names of all tools.
async fn checked(tools: &Path, own: &Path, document: &toml_edit::DocumentMut) -> anyhow::Result<Vec<String>> {
    let directory = directory(own);
    std::fs::create_dir_all(directory).with_context(|| format!("cannot create `{}`", directory.display()))?;
    // beside the file: its paths are relative to it
    let draft = tempfile::Builder::new().prefix(".tools-").suffix(".toml").tempfile_in(directory)?;
    std::fs::write(draft.path(), document.to_string())?;
    let library = library::read(tools, draft.path()).await.map_err(|error| {
        let told = format!("{error:#}").replace(&draft.path().display().to_string(), &own.display().to_string());
        anyhow::anyhow!("nothing was added: {told}")
    })?;
    Ok(library.names().into_iter().map(str::to_owned).collect())
}

/// Says whether a running group has the tools.
async fn taken(gateway: &str, names: &[String]) {
    let Ok(mut client) = client::gateway(gateway) else { return };
    let deadline = Instant::now() + TAKEN;
    loop {
        let Ok(tools) = client.list_tools(v1::ListToolsRequest {}).await else {
            out::note("no group runs there; the next one that starts with this state directory has it");
            return;
        };
        let tools = tools.into_inner().tools;
        if names.iter().all(|name| tools.iter().any(|tool| tool.name == *name)) {
            out::note("the running group has it");
            return;
        }
        if Instant::now() >= deadline {
            out::note(format_args!(
                "the group at {gateway} does not have it: its log of tool-agent says why, or it has another state directory"
            ));
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn entry(command: AddCommand) -> anyhow::Result<(Entry, CommonOptions)> {
    let mut table = Table::new();
    match command {
        AddCommand::Mcp { name, command, url, env, secrets, trusted, unconfined, set, common } => {
            if let Some(command) = command {
                let mut words = shlex::split(&command).context("`--command` has a quote that is not closed")?;
                anyhow::ensure!(!words.is_empty(), "`--command` is empty");
                let program = absolute_program(words.remove(0))?;
                let default = Path::new(&program).file_stem().unwrap_or_default().to_string_lossy().into_owned();
                table.insert("name".into(), slug(&name.unwrap_or(default)).into());
                table.insert("command".into(), program.into());
                insert_list(&mut table, "args", words);
                let env = pairs(&env)?.into_iter().map(|(name, value)| (name, Value::from(value)));
                insert_table(&mut table, "env", env.collect());
                insert_table(&mut table, "secrets", named_secrets(&secrets)?);
                if unconfined {
                    table.insert("sandbox".into(), false.into());
                }
            } else if let Some(url) = url {
                let host = url.split("://").nth(1).unwrap_or_default().split(['/', ':']).next().unwrap_or_default().to_owned();
                table.insert("name".into(), slug(&name.unwrap_or(host)).into());
                table.insert("url".into(), url.into());
                if let Some(secret) = &set.request.bearer {
                    table.insert("credentials".into(), Value::Array(vec![bearer(secret)?]));
                }
                if set.request.allow_private {
                    table.insert("allow_private".into(), true.into());
                }
            }
            if trusted {
                table.insert("trusted".into(), true.into());
            }
            table.extend(set.prefix.map(|prefix| ("prefix".to_owned(), prefix.into())));
            insert_list(&mut table, "only", set.only);
            Ok((Entry { section: "mcp", table }, common))
        }
        AddCommand::Openapi { source, name, server, secrets, set, common } => {
            let remote = source.starts_with("http://") || source.starts_with("https://");
            let stem =
                source.rsplit('/').find(|part| !part.is_empty()).unwrap_or("api").split(['.', '?']).next().unwrap_or("api").to_owned();
            table.insert("name".into(), slug(&name.unwrap_or(stem)).into());
            table.insert("source".into(), if remote { source } else { absolute(&source)? }.into());
            table.extend(server.map(|server| ("server".to_owned(), server.into())));
            insert_table(&mut table, "secrets", named_secrets(&secrets)?);
            anyhow::ensure!(set.request.bearer.is_none(), "name the security scheme instead: `--secret SCHEME=env:VARIABLE`");
            if set.request.allow_private {
                table.insert("allow_private".into(), true.into());
            }
            table.extend(set.prefix.map(|prefix| ("prefix".to_owned(), prefix.into())));
            insert_list(&mut table, "only", set.only);
            Ok((Entry { section: "openapi", table }, common))
        }
        AddCommand::Http { name, definition, method, url, schema, request, common } => {
            let mut run = Table::from_iter([("kind".to_owned(), Value::from("http")), ("url".to_owned(), url.clone().into())]);
            if !method.eq_ignore_ascii_case("GET") {
                run.insert("method".into(), method.to_uppercase().into());
            }
            if let Some(secret) = &request.bearer {
                run.insert("credentials".into(), Value::Array(vec![bearer(secret)?]));
            }
            if request.allow_private {
                run.insert("allow_private".into(), true.into());
            }
            table.insert("name".into(), name.into());
            table.insert("definition".into(), definition.into());
            table.insert("schema".into(), schema.unwrap_or_else(|| schema_of_places(&url)).into());
            table.insert("run".into(), Value::Table(run));
            Ok((Entry { section: "tool", table }, common))
        }
        AddCommand::Kind { kind, name, settings, common } => {
            Ok((Entry { section: "tool", table: ready::entry(&kind, name, &settings)? }, common))
        }
        AddCommand::Command { name, definition, effect, usage, schema, unconfined, mut program, common } => {
            let first = absolute_program(program.remove(0))?;
            let mut run = Table::from_iter([("kind".to_owned(), Value::from("command")), ("program".to_owned(), first.into())]);
            insert_list(&mut run, "args", program);
            if unconfined {
                run.insert("sandbox".into(), false.into());
            }
            match schema {
                Some(schema) => table.insert("schema".into(), schema.into()),
                None => table.insert("usage".into(), usage.unwrap_or_else(|| format!("{name}[input]")).into()),
            };
            table.insert("name".into(), name.into());
            table.insert("definition".into(), definition.into());
            table.insert("effect".into(), effect.into());
            table.insert("run".into(), Value::Table(run));
            Ok((Entry { section: "tool", table }, common))
        }
    }
}

/// A schema of the places in a URL's path: all of them strings.
fn schema_of_places(url: &str) -> String {
    let names: Vec<&str> = url.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0)).collect();
    let properties: BTreeMap<&str, _> = names.iter().map(|name| (*name, json!({"type": "string", "maxLength": 256}))).collect();
    json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false}).to_string()
}

/// A program with a slash is found from where the command was typed.
fn absolute_program(program: String) -> anyhow::Result<String> {
    if program.contains('/') { absolute(&program) } else { Ok(program) }
}

fn absolute(path: &str) -> anyhow::Result<String> {
    Ok(std::path::absolute(path).with_context(|| format!("`{path}` is no path"))?.display().to_string())
}

/// What a set may be called.
fn slug(name: &str) -> String {
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).take(32).collect();
    plain.trim_matches('-').to_owned()
}

fn pairs(all: &[String]) -> anyhow::Result<Vec<(String, String)>> {
    let pair = |text: &String| {
        let (name, value) = text.split_once('=').with_context(|| format!("`{text}` is not of the form NAME=VALUE"))?;
        Ok((name.to_owned(), value.to_owned()))
    };
    all.iter().map(pair).collect()
}

fn named_secrets(all: &[String]) -> anyhow::Result<Table> {
    pairs(all)?.into_iter().map(|(name, written)| Ok((name, Value::Table(secret(&written)?)))).collect()
}

/// `env:NAME` or `file:PATH`. The secret itself is in no library.
fn secret(written: &str) -> anyhow::Result<Table> {
    let (key, value) = match written.split_once(':') {
        Some(("env", name)) if !name.is_empty() => ("env", name.to_owned()),
        Some(("file", path)) if !path.is_empty() => ("file", absolute(path)?),
        // the text may be the secret itself: it is not repeated
        _ => bail!("a secret is named by `env:VARIABLE` or `file:PATH`; its text is not written here"),
    };
    Ok(Table::from_iter([(key.to_owned(), value.into())]))
}

fn bearer(written: &str) -> anyhow::Result<Value> {
    let mut table = secret(written)?;
    table.insert("in".into(), "bearer".into());
    Ok(Value::Table(table))
}

fn insert_list(table: &mut Table, key: &str, all: Vec<String>) {
    if !all.is_empty() {
        table.insert(key.to_owned(), all.into_iter().map(Value::from).collect::<Vec<_>>().into());
    }
}

fn insert_table(table: &mut Table, key: &str, all: Table) {
    if !all.is_empty() {
        table.insert(key.to_owned(), Value::Table(all));
    }
}
