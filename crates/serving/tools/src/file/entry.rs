//! An entry `[[tool]]`: what the tool is, and whether that fits together.

use std::sync::Arc;
use std::time::Duration;

use autoact_base::duration;
use autoact_trajectory::{ASK_USER, Asks, Effect, FINISH, MAX_OBSERVATION_BYTES, NOT_FOUND, Terminal, ToolSpec};
use serde::Deserialize;

use super::Reader;
use super::run::Implementation;
use crate::local::local;
use crate::preset::Preset;
use crate::takes::{Takes, takes};
use crate::text::quoted;
use crate::tool::Tool;
use crate::validator::Validator;

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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTool {
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

impl Reader<'_> {
    /// The definition of an entry, or `None` after saying why not.
    pub(super) fn define(&self, mut raw: RawTool, mistakes: &mut Vec<String>) -> Option<Definition> {
        let before = mistakes.len();
        let kind = raw.run.as_ref().and_then(|run| run.get("kind")).and_then(toml::Value::as_str);
        let preset = kind.and_then(|kind| self.preset(kind));
        if let Some(preset) = preset {
            raw.preset(preset, mistakes);
        }
        let name = name(raw.name, mistakes);
        let definition = prose("definition", raw.definition, mistakes);
        let Takes { usage, schema, validator, examples } = takes(&name, raw.usage, raw.schema.as_deref(), raw.examples, mistakes);
        let timeout = timeout(raw.timeout.as_deref(), mistakes);
        let max_observation_bytes = observation_bytes(raw.max_observation_bytes, mistakes);
        let run = self.run(raw.run, schema.as_ref(), mistakes);
        let effect = effect(raw.effect.as_deref(), || run.as_ref().map_or(Some(Effect::ReadOnly), |run| self.effect_of(run)), mistakes);
        let run = run?;
        let spec = ToolSpec {
            name,
            definition,
            usage,
            effect,
            timeout,
            max_observation_bytes,
            terminal: run.terminal(),
            schema,
            examples,
            multiline: raw.multiline.unwrap_or(false),
            asks: raw.approval.then_some(Asks::Approval),
        };
        let run_again = raw.run_again.unwrap_or(run.varies() || effect != Effect::ReadOnly);
        fits(&spec, &run, run_again, mistakes);
        if mistakes.len() > before {
            return None;
        }
        let always = raw.always.unwrap_or(!run.is_foreign());
        let Implementation::Other { kind, run: entry } = &run else {
            return Some(Definition { spec, run, validator, always, run_again, made: None });
        };
        match self.make(kind, entry, preset, spec) {
            // a tool may say more in its definition than its entry does
            Ok(tool) => Some(Definition { spec: tool.spec().clone(), run, validator, always, run_again, made: Some(tool) }),
            Err(all) => {
                mistakes.extend(all.into_iter().map(|mistake| format!("run: {mistake}")));
                None
            }
        }
    }

    /// The tool of a kind that is not built in.
    fn make(&self, kind: &str, entry: &toml::Table, preset: Option<&Preset>, spec: ToolSpec) -> Result<Arc<dyn Tool>, Vec<String>> {
        let wrong = preset.map(|preset| preset.check(entry)).unwrap_or_default();
        match (wrong.is_empty(), local(kind)) {
            (false, _) => Err(wrong),
            (true, Some(local)) => (local.make)(entry.clone(), spec, self.base),
            (true, None) => self.kinds.tool(kind, entry.clone(), spec, self.base),
        }
    }
}

/// Whether what an entry says of its tool goes together with how the tool is run.
fn fits(spec: &ToolSpec, run: &Implementation, run_again: bool, mistakes: &mut Vec<String>) {
    for (kind, of, expected) in [("finish", Terminal::Answer, FINISH), ("not_found", Terminal::NoAnswer, NOT_FOUND)] {
        if (spec.terminal == Some(of)) != (spec.name == expected) {
            mistakes.push(format!("the kind `{kind}` and the name `{expected}` go together"));
        }
    }
    if !run_again && spec.effect != Effect::ReadOnly {
        mistakes.push("`run_again = false` is for tools that only read".to_owned());
    }
    if spec.multiline && !run.is_foreign() {
        mistakes
            .push("`multiline` is for programs (kind `command`) and requests (kind `http`): what its kind returns is one line".to_owned());
    }
    // `Finish` is never run, so its input may have any form; what is missing is a line for people
    let of_a_line = !run.is_foreign() && !spec.is_answer();
    if of_a_line && spec.object_schema().is_some() {
        mistakes.push("its kind takes one line; expected a `schema` with a single property, a required string, or none".to_owned());
    }
    if spec.needs_approval() && spec.is_terminal() {
        mistakes.push("`approval` is for tools that are run; the answer of a task waits for nobody".to_owned());
    }
    if spec.name == ASK_USER {
        mistakes.push(format!("the name `{ASK_USER}` is the gateway's own tool, which asks the user"));
    }
}

fn name(written: Option<String>, mistakes: &mut Vec<String>) -> String {
    let name = required("name", written, mistakes);
    if !name.is_empty() && !is_name(&name) {
        mistakes.push(format!(
            "the name `{}` is not a name; expected a letter, then up to {} letters, digits or `_`",
            quoted(&name),
            LONGEST_NAME - 1
        ));
    }
    name
}

fn is_name(name: &str) -> bool {
    name.len() <= LONGEST_NAME
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
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

fn timeout(written: Option<&str>, mistakes: &mut Vec<String>) -> Duration {
    match written.map_or(Ok(DEFAULT_TIMEOUT), duration::parse) {
        Ok(timeout) if timeout.is_zero() || timeout > LONGEST_TIMEOUT => {
            mistakes.push(format!("the timeout `{}` is not above 0 and at most 10m", duration::format(timeout)));
            timeout
        }
        Ok(timeout) => timeout,
        Err(mistake) => {
            mistakes.push(format!("timeout: {mistake}"));
            DEFAULT_TIMEOUT
        }
    }
}

fn observation_bytes(written: Option<i64>, mistakes: &mut Vec<String>) -> usize {
    let bytes = written.unwrap_or(DEFAULT_OBSERVATION_BYTES);
    if !OBSERVATION_BYTES.contains(&bytes) {
        mistakes.push(format!("max_observation_bytes is {bytes}; expected {} to {}", OBSERVATION_BYTES.start(), OBSERVATION_BYTES.end()));
    }
    usize::try_from(bytes).unwrap_or_default()
}

/// What an entry says that its tool does to the world, or what its kind does.
fn effect(written: Option<&str>, of_kind: impl FnOnce() -> Option<Effect>, mistakes: &mut Vec<String>) -> Effect {
    let expected = "`read_only`, `idempotent` or `side_effect`";
    match written {
        Some("read_only") => Effect::ReadOnly,
        Some("idempotent") => Effect::Idempotent,
        Some("side_effect") => Effect::SideEffect,
        Some(other) => {
            mistakes.push(format!("the effect `{}` is unknown; expected {expected}", quoted(other)));
            Effect::SideEffect
        }
        None => of_kind().unwrap_or_else(|| {
            mistakes.push(format!("`effect` is missing: only you know what the program does; expected {expected}"));
            Effect::SideEffect
        }),
    }
}
