//! `tools.toml`: the tool library as a user writes it. Every mistake is found before one is
//! reported.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use autoact_base::duration;
use autoact_sandbox::Sandbox;
use autoact_trajectory::{
    ASK_USER, Asks, Effect, FINISH, MAX_LIBRARY_TOOLS, MAX_OBSERVATION_BYTES, NOT_FOUND, ParameterSchema, Terminal, ToolSpec,
};
use serde::Deserialize;

use crate::confinement::SandboxEntry;
use crate::kinds::{ELSEWHERE, Kinds, ToolSet, WEB};
use crate::local::{local, local_presets};
use crate::placeholder::{self, Argument};
use crate::preset::Preset;
use crate::takes::{Takes, takes};
use crate::text::quoted;
use crate::tool::Tool;
use crate::validator::Validator;

/// The library that comes with the atlas.
pub const BUNDLED_TOOLS: &str = include_str!("../../../../corpora/atlas/tools.toml");

/// For tools that say nothing else: ours answer in milliseconds, a program that needs longer should
/// say so.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);
/// Nobody waits longer for one observation.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(600);
/// For tools that say nothing else: a long paragraph.
const DEFAULT_OBSERVATION_BYTES: i64 = 1024;
/// Room for one short sentence at least, and never more than an event holds.
const OBSERVATION_BYTES: std::ops::RangeInclusive<i64> = 64..=MAX_OBSERVATION_BYTES as i64;
/// A tool's name, definition and usage stand in every prompt.
const LONGEST_NAME: usize = 64;
pub(crate) const LONGEST_TEXT: usize = 500;

/// A tools file that cannot be used.
#[derive(Debug)]
pub struct LibraryError {
    origin: String,
    mistakes: Vec<String>,
    /// As [`Parsed::data`].
    data: Vec<PathBuf>,
}

impl LibraryError {
    pub(crate) fn new(origin: &str, mistakes: Vec<String>) -> LibraryError {
        LibraryError { origin: origin.to_owned(), mistakes, data: Vec::new() }
    }

    /// The same of a file whose entries name these files and directories.
    pub(crate) fn with_data(mut self, data: &[PathBuf]) -> LibraryError {
        self.data.extend_from_slice(data);
        self
    }

    /// The files with data that entries name, as of now: what is wrong may be wrong there, so the
    /// library may be right when one has changed.
    pub fn data_files(&self) -> Vec<PathBuf> {
        data_files(&self.data)
    }

    /// One text per mistake, each naming its entry.
    pub fn mistakes(&self) -> &[String] {
        &self.mistakes
    }
}

impl fmt::Display for LibraryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the tool library `{}` has {} mistake(s):", self.origin, self.mistakes.len())?;
        for mistake in &self.mistakes {
            write!(f, "\n  {mistake}")?;
        }
        Ok(())
    }
}

impl std::error::Error for LibraryError {}

/// How a tool is run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Implementation {
    Search,
    Retrieve,
    Lookup,
    Calculate,
    Finish,
    NotFound,
    Command {
        program: String,
        args: Vec<Argument>,
        env: BTreeMap<String, String>,
        sandbox: Option<Sandbox>,
    },
    /// A kind of another crate, which made [`Definition::made`].
    Other {
        kind: String,
        run: toml::Table,
    },
}

const KINDS: &str = "`search`, `retrieve`, `lookup`, `calculate`, `finish`, `not_found`, `command`";

/// A valid entry.
#[derive(Clone)]
pub(crate) struct Definition {
    pub(crate) spec: ToolSpec,
    pub(crate) run: Implementation,
    /// For a tool with a schema.
    pub(crate) validator: Option<Arc<Validator>>,
    /// Every task has it, chosen or not.
    pub(crate) always: bool,
    /// The same call in the same task is run again; otherwise its earlier observation is told.
    pub(crate) run_again: bool,
    /// The tool, if its kind is of another crate.
    pub(crate) made: Option<Arc<dyn Tool>>,
}

/// What a library's files say.
#[derive(Default)]
pub(crate) struct Parsed {
    pub(crate) definitions: Vec<Definition>,
    pub(crate) sets: Vec<ToolSet>,
    /// The files, and directories of tables, that entries name and that are read with the library.
    pub(crate) data: Vec<PathBuf>,
}

/// The files of those: of a directory its tables.
pub(crate) fn data_files(data: &[PathBuf]) -> Vec<PathBuf> {
    data.iter().flat_map(|path| autoact_tables::table_files(path)).collect()
}

/// How a file is read.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    /// What mistakes call the file.
    pub(crate) origin: &'a str,
    /// The directory that programs and files with a relative path start from.
    pub(crate) base: Option<&'a Path>,
    pub(crate) kinds: &'a dyn Kinds,
    /// Whether the file only adds to another one, which has what every library needs.
    pub(crate) adds: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTool {
    name: Option<String>,
    definition: Option<String>,
    usage: Option<String>,
    schema: Option<String>,
    #[serde(default)]
    examples: Vec<String>,
    effect: Option<String>,
    timeout: Option<String>,
    max_observation_bytes: Option<i64>,
    multiline: Option<bool>,
    always: Option<bool>,
    run_again: Option<bool>,
    #[serde(default)]
    approval: bool,
    run: Option<toml::Table>,
}

impl RawTool {
    /// Takes from the preset of its kind what the entry does not say.
    fn preset(&mut self, preset: &Preset, mistakes: &mut Vec<String>) {
        if self.schema.is_some() || (preset.schema.is_some() && self.usage.is_some()) {
            mistakes.push(format!("the kind `{}` has a schema and a usage of its own", preset.kind));
        }
        self.definition.get_or_insert_with(|| preset.definition.to_owned());
        self.schema = preset.schema.map(str::to_owned);
        if self.usage.is_none() {
            self.usage = preset.usage_as(self.name.as_deref().unwrap_or_default());
        }
        if self.examples.is_empty() {
            self.examples = preset.examples.iter().map(|&example| example.to_owned()).collect();
        }
        self.timeout.get_or_insert_with(|| duration::format(preset.timeout));
        self.max_observation_bytes.get_or_insert(preset.max_observation_bytes.into());
        self.multiline.get_or_insert(preset.multiline);
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCommand {
    program: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    sandbox: Option<SandboxEntry>,
}

impl Reader<'_> {
    /// Reads a file.
    pub(crate) fn read(&self, text: &str) -> Result<Parsed, LibraryError> {
        let refused = |mistakes| LibraryError::new(self.origin, mistakes);
        let mut document: toml::Table =
            toml::from_str(text).map_err(|error| refused(vec![format!("not TOML: {}", error.to_string().trim())]))?;
        let mut mistakes = Vec::new();
        let tools = section(&mut document, "tool", &mut mistakes);
        let data: Vec<PathBuf> = tools.iter().flat_map(|entry| self.data(entry)).collect();
        let sections: Vec<_> = self.kinds.sections().iter().map(|name| (*name, section(&mut document, name, &mut mistakes))).collect();
        for key in document.keys() {
            if ELSEWHERE.contains(&key.as_str()) {
                mistakes.push(format!("entries `[[{key}]]` are read by tool-agent and `autoact tools` alone"));
            } else {
                let sections = sections.iter().map(|(name, _)| format!(", `[[{name}]]`")).collect::<String>();
                mistakes.push(format!("unknown key `{}`; expected entries `[[tool]]`{sections}", quoted(key)));
            }
        }
        let definitions = self.tools(tools, &mut mistakes);
        let mut sets = Vec::new();
        for (name, entries) in sections {
            for (at, entry) in entries.into_iter().enumerate() {
                let place = place(name, at, &entry);
                match self.kinds.set(name, entry, self.base) {
                    Ok(set) => sets.push(set),
                    Err(all) => mistakes.extend(all.into_iter().map(|mistake| format!("{place}: {mistake}"))),
                }
            }
        }
        if mistakes.is_empty() { Ok(Parsed { definitions, sets, data }) } else { Err(refused(mistakes).with_data(&data)) }
    }

    /// The data that an entry names. It may be wrong in all else.
    fn data(&self, entry: &toml::Table) -> Vec<PathBuf> {
        let Some(run) = entry.get("run").and_then(toml::Value::as_table) else { return Vec::new() };
        let preset = run.get("kind").and_then(toml::Value::as_str).and_then(|kind| self.preset(kind));
        let named = preset.into_iter().flat_map(|preset| preset.data).filter_map(|key| run.get(*key));
        let paths = named.flat_map(|value| value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice));
        let path = |path: &str| self.base.map_or_else(|| PathBuf::from(path), |base| base.join(path));
        paths.filter_map(toml::Value::as_str).map(path).collect()
    }

    fn tools(&self, entries: Vec<toml::Table>, mistakes: &mut Vec<String>) -> Vec<Definition> {
        let entries_found = entries.len();
        let mut definitions: Vec<Definition> = Vec::new();
        let mut names: HashMap<String, usize> = HashMap::new();
        let mut finish_named = false;
        for (at, entry) in entries.into_iter().enumerate() {
            let name = entry.get("name").and_then(|name| name.as_str()).map(quoted);
            finish_named |= name.as_deref() == Some(FINISH);
            let place = place("tool", at, &entry);
            let mut entry_mistakes = Vec::new();
            if let Some(name) = name
                && let Some(first) = names.insert(name, at + 1)
            {
                entry_mistakes.push(format!("its name is already that of tool {first}"));
            }
            match entry.try_into::<RawTool>() {
                Ok(raw) => definitions.extend(self.define(raw, &mut entry_mistakes)),
                Err(error) => entry_mistakes.push(error.to_string().trim().replace('\n', " ")),
            }
            mistakes.extend(entry_mistakes.into_iter().map(|mistake| format!("{place}: {mistake}")));
        }
        if entries_found > MAX_LIBRARY_TOOLS {
            mistakes.push(format!("it has {entries_found} tools; expected at most {MAX_LIBRARY_TOOLS}"));
        }
        if !finish_named && !self.adds {
            mistakes.push(format!("there is no tool `{FINISH}` (kind `finish`), without which no question can be answered"));
        }
        definitions
    }

    /// The definition of an entry, or `None` after saying why not.
    fn define(&self, mut raw: RawTool, mistakes: &mut Vec<String>) -> Option<Definition> {
        let before = mistakes.len();
        let kind = raw.run.as_ref().and_then(|run| run.get("kind")).and_then(toml::Value::as_str);
        let preset = kind.and_then(|kind| self.preset(kind));
        if let Some(preset) = preset {
            raw.preset(preset, mistakes);
        }
        let name = required("name", raw.name, mistakes);
        if !name.is_empty() && !is_name(&name) {
            mistakes.push(format!(
                "the name `{}` is not a name; expected a letter, then up to {} letters, digits or `_`",
                quoted(&name),
                LONGEST_NAME - 1
            ));
        }
        let definition = prose("definition", raw.definition, mistakes);
        let Takes { usage, schema, validator, examples } = takes(&name, raw.usage, raw.schema.as_deref(), raw.examples, mistakes);
        let timeout = match raw.timeout.as_deref().map_or(Ok(DEFAULT_TIMEOUT), duration::parse) {
            Ok(timeout) if timeout.is_zero() || timeout > LONGEST_TIMEOUT => {
                mistakes.push(format!("the timeout `{}` is not above 0 and at most 10m", duration::format(timeout)));
                timeout
            }
            Ok(timeout) => timeout,
            Err(mistake) => {
                mistakes.push(format!("timeout: {mistake}"));
                DEFAULT_TIMEOUT
            }
        };
        let bytes = raw.max_observation_bytes.unwrap_or(DEFAULT_OBSERVATION_BYTES);
        if !OBSERVATION_BYTES.contains(&bytes) {
            mistakes.push(format!(
                "max_observation_bytes is {bytes}; expected {} to {}",
                OBSERVATION_BYTES.start(),
                OBSERVATION_BYTES.end()
            ));
        }
        let run = match raw.run {
            Some(run) => how(run, self, schema.as_ref(), mistakes),
            None => {
                mistakes.push(format!(
                    "`run` is missing; expected something like `run = {{ kind = \"search\" }}` with one of {}",
                    self.known_kinds()
                ));
                None
            }
        };
        let effect = effect(raw.effect.as_deref(), run.as_ref(), self, mistakes);
        let run = run?;
        for (kind, of, expected) in [("finish", Implementation::Finish, FINISH), ("not_found", Implementation::NotFound, NOT_FOUND)] {
            if (run == of) != (name == expected) {
                mistakes.push(format!("the kind `{kind}` and the name `{expected}` go together"));
            }
        }
        let foreign = matches!(run, Implementation::Command { .. } | Implementation::Other { .. });
        // what is beyond this process may say something else the next time, and `Lookup` goes on
        let elsewhere = match &run {
            Implementation::Command { .. } | Implementation::Lookup => true,
            Implementation::Other { kind, .. } => local(kind).is_none(),
            _ => false,
        };
        let run_again = raw.run_again.unwrap_or(elsewhere || effect != Effect::ReadOnly);
        if !run_again && effect != Effect::ReadOnly {
            mistakes.push("`run_again = false` is for tools that only read".to_owned());
        }
        let (multiline, always) = (raw.multiline.unwrap_or(false), raw.always.unwrap_or(!foreign));
        if multiline && !foreign {
            mistakes.push(
                "`multiline` is for programs (kind `command`) and requests (kind `http`): what its kind returns is one line".to_owned(),
            );
        }
        // `Finish` is never run, so its input may have any form; what is missing is a line for people
        let of_a_line = !foreign && run != Implementation::Finish;
        if of_a_line && schema.as_ref().is_some_and(|schema| schema.line_property().is_none()) {
            mistakes.push("its kind takes one line; expected a `schema` with a single property, a required string, or none".to_owned());
        }
        if raw.approval && matches!(run, Implementation::Finish | Implementation::NotFound) {
            mistakes.push("`approval` is for tools that are run; the answer of a task waits for nobody".to_owned());
        }
        if name == ASK_USER {
            mistakes.push(format!("the name `{ASK_USER}` is the gateway's own tool, which asks the user"));
        }
        if mistakes.len() > before {
            return None;
        }
        let terminal = match run {
            Implementation::Finish => Some(Terminal::Answer),
            Implementation::NotFound => Some(Terminal::NoAnswer),
            _ => None,
        };
        let max_observation_bytes = usize::try_from(bytes).ok()?;
        let asks = raw.approval.then_some(Asks::Approval);
        let spec =
            ToolSpec { name, definition, usage, effect, timeout, max_observation_bytes, terminal, schema, examples, multiline, asks };
        let Implementation::Other { kind, run: entry } = &run else {
            return Some(Definition { spec, run, validator, always, run_again, made: None });
        };
        let wrong = preset.map(|preset| preset.check(entry)).unwrap_or_default();
        let made = match (wrong.is_empty(), local(kind)) {
            (false, _) => Err(wrong),
            (true, Some(local)) => (local.make)(entry.clone(), spec, self.base),
            (true, None) => self.kinds.tool(kind, entry.clone(), spec, self.base),
        };
        match made {
            // a tool may say more in its definition than its entry does
            Ok(tool) => Some(Definition { spec: tool.spec().clone(), run, validator, always, run_again, made: Some(tool) }),
            Err(all) => {
                mistakes.extend(all.into_iter().map(|mistake| format!("run: {mistake}")));
                None
            }
        }
    }

    fn preset(&self, kind: &str) -> Option<&'static Preset> {
        local(kind).map(|local| local.preset).or_else(|| self.kinds.preset(kind))
    }

    fn known_kinds(&self) -> String {
        let local = local_presets().map(|preset| preset.kind);
        local.chain(self.kinds.kinds().iter().copied()).fold(KINDS.to_owned(), |all, kind| format!("{all}, `{kind}`"))
    }
}

/// The entries of a section.
fn section(document: &mut toml::Table, name: &str, mistakes: &mut Vec<String>) -> Vec<toml::Table> {
    let mut tables = Vec::new();
    match document.remove(name) {
        Some(toml::Value::Array(entries)) => {
            for (at, entry) in entries.into_iter().enumerate() {
                match entry {
                    toml::Value::Table(entry) => tables.push(entry),
                    _ => mistakes.push(format!("{name} {}: expected an entry `[[{name}]]`", at + 1)),
                }
            }
        }
        Some(_) => mistakes.push(format!("`{name}` is not a list of entries; expected `[[{name}]]`")),
        None => {}
    }
    tables
}

/// What mistakes call an entry.
fn place(section: &str, at: usize, entry: &toml::Table) -> String {
    match entry.get("name").and_then(toml::Value::as_str) {
        Some(name) => format!("{section} {} (`{}`)", at + 1, quoted(name)),
        None => format!("{section} {}", at + 1),
    }
}

fn required(field: &str, value: Option<String>, mistakes: &mut Vec<String>) -> String {
    let value = value.unwrap_or_default();
    if value.trim().is_empty() {
        mistakes.push(format!("`{field}` is missing"));
    }
    value
}

/// A text that stands in every prompt: there, and one short line.
pub(crate) fn prose(field: &str, value: Option<String>, mistakes: &mut Vec<String>) -> String {
    let value = required(field, value, mistakes);
    if value.contains(|c: char| c.is_control()) || value.len() > LONGEST_TEXT {
        mistakes.push(format!("`{field}` must be one line of at most {LONGEST_TEXT} bytes"));
    }
    value.trim().to_owned()
}

fn is_name(name: &str) -> bool {
    name.len() <= LONGEST_NAME
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn effect(written: Option<&str>, run: Option<&Implementation>, reader: &Reader<'_>, mistakes: &mut Vec<String>) -> Effect {
    let expected = "`read_only`, `idempotent` or `side_effect`";
    match written {
        Some("read_only") => Effect::ReadOnly,
        Some("idempotent") => Effect::Idempotent,
        Some("side_effect") => Effect::SideEffect,
        Some(other) => {
            mistakes.push(format!("the effect `{}` is unknown; expected {expected}", quoted(other)));
            Effect::SideEffect
        }
        None => {
            let of_kind = match run {
                Some(Implementation::Command { .. }) => None,
                Some(Implementation::Other { kind, run }) => {
                    reader.preset(kind).map(|preset| preset.effect).or_else(|| reader.kinds.effect(kind, run))
                }
                _ => Some(Effect::ReadOnly), // what all built-in kinds are
            };
            of_kind.unwrap_or_else(|| {
                mistakes.push(format!("`effect` is missing: only you know what the program does; expected {expected}"));
                Effect::SideEffect
            })
        }
    }
}

fn how(mut run: toml::Table, reader: &Reader<'_>, schema: Option<&ParameterSchema>, mistakes: &mut Vec<String>) -> Option<Implementation> {
    let Some(kind) = run.remove("kind") else {
        mistakes.push(format!("`run` has no `kind`; expected one of {}", reader.known_kinds()));
        return None;
    };
    let kind = kind.as_str().unwrap_or_default();
    let built_in = match kind {
        "search" => Implementation::Search,
        "retrieve" => Implementation::Retrieve,
        "lookup" => Implementation::Lookup,
        "calculate" => Implementation::Calculate,
        "finish" => Implementation::Finish,
        "not_found" => Implementation::NotFound,
        "command" => return command(run, reader.base, schema, mistakes),
        kind if local(kind).is_some() || reader.kinds.kinds().contains(&kind) => {
            return Some(Implementation::Other { kind: kind.to_owned(), run });
        }
        kind if ELSEWHERE.contains(&kind) || WEB.contains(&kind) => {
            mistakes.push(format!("the kind `{kind}` is read by tool-agent and `autoact tools` alone"));
            return None;
        }
        _ => {
            mistakes.push(format!("the kind `{}` is unknown; expected one of {}", quoted(kind), reader.known_kinds()));
            return None;
        }
    };
    for key in run.keys() {
        mistakes.push(format!("`run` has the unknown key `{}` for the kind `{kind}`", quoted(key)));
    }
    Some(built_in)
}

fn command(run: toml::Table, base: Option<&Path>, schema: Option<&ParameterSchema>, mistakes: &mut Vec<String>) -> Option<Implementation> {
    let raw = match toml::Value::Table(run).try_into::<RawCommand>() {
        Ok(raw) => raw,
        Err(error) => {
            mistakes.push(format!("run: {}", error.to_string().trim().replace('\n', " ")));
            return None;
        }
    };
    let mut program = raw.program;
    if program.contains('/') {
        let path = base.map_or_else(|| Path::new(&program).to_owned(), |base| base.join(&program));
        match std::path::absolute(&path) {
            Ok(path) if path.is_file() => program = path.display().to_string(),
            _ => mistakes.push(format!("the program `{}` is not a file", path.display())),
        }
    } else if program.is_empty() {
        mistakes.push("`run` has an empty `program`".to_owned());
    }
    let all = raw.args.iter().chain(raw.env.keys()).chain(raw.env.values()).chain([&program]);
    if all.into_iter().any(|text| text.contains('\0')) || raw.env.keys().any(|key| key.is_empty() || key.contains('=')) {
        mistakes.push("`run` has a program, argument or variable that no process can be given".to_owned());
    }
    let args = placeholder::arguments(&program, raw.args, schema, mistakes);
    let sandbox = raw.sandbox.map(|sandbox| sandbox.sandbox(&program, base, mistakes));
    Some(Implementation::Command { program, args, env: raw.env, sandbox })
}
