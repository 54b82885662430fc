//! The key `run` of an entry: how its tool is run.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;

use autoact_base::error::line;
use autoact_sandbox::Sandbox;
use autoact_trajectory::{Effect, ParameterSchema, Terminal};
use serde::Deserialize;

use super::Reader;
use crate::confinement::Confinement;
use crate::kinds::{ELSEWHERE, WEB};
use crate::local::{local, local_presets};
use crate::placeholder::{self, Argument};
use crate::preset::Preset;
use crate::text::quoted;

/// How a tool is run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Implementation {
    Search,
    Retrieve {
        /// How many of a page's most telling sentences it shows; `None`: the first ones.
        sentences: Option<NonZeroUsize>,
    },
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

impl Implementation {
    /// What its parameters say of the answer, for one that ends the task.
    pub(super) fn terminal(&self) -> Option<Terminal> {
        match self {
            Implementation::Finish => Some(Terminal::Answer),
            Implementation::NotFound => Some(Terminal::NoAnswer),
            _ => None,
        }
    }

    /// Whether somebody else wrote what is run.
    pub(super) fn is_foreign(&self) -> bool {
        matches!(self, Implementation::Command { .. } | Implementation::Other { .. })
    }

    /// Whether the same call may say something else the next time: it asks what is beyond this
    /// process, goes on, as `Lookup` does, or depends on the thought.
    pub(super) fn varies(&self) -> bool {
        match self {
            Implementation::Command { .. } | Implementation::Lookup => true,
            Implementation::Retrieve { sentences } => sentences.is_some(),
            Implementation::Other { kind, .. } => local(kind).is_none(),
            _ => false,
        }
    }
}

/// So many sentences `retrieve` shows at most: more are no choice.
pub const MOST_SENTENCES: usize = 20;

const KINDS: &str = "`search`, `retrieve`, `lookup`, `calculate`, `finish`, `not_found`, `command`";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCommand {
    program: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    sandbox: Confinement,
}

impl Reader<'_> {
    /// Reads the key, or says what is wrong with it.
    pub(super) fn run(
        &self,
        run: Option<toml::Table>,
        schema: Option<&ParameterSchema>,
        mistakes: &mut Vec<String>,
    ) -> Option<Implementation> {
        let Some(mut run) = run else {
            mistakes.push(format!(
                "`run` is missing; expected something like `run = {{ kind = \"search\" }}` with one of {}",
                self.known_kinds()
            ));
            return None;
        };
        let Some(kind) = run.remove("kind") else {
            mistakes.push(format!("`run` has no `kind`; expected one of {}", self.known_kinds()));
            return None;
        };
        let kind = kind.as_str().unwrap_or_default();
        let built_in = match kind {
            "search" => Implementation::Search,
            "retrieve" => Implementation::Retrieve { sentences: sentences(&mut run, mistakes) },
            "lookup" => Implementation::Lookup,
            "calculate" => Implementation::Calculate,
            "finish" => Implementation::Finish,
            "not_found" => Implementation::NotFound,
            "command" => return command(run, self.base, schema, mistakes),
            kind if local(kind).is_some() || self.kinds.kinds().contains(&kind) => {
                return Some(Implementation::Other { kind: kind.to_owned(), run });
            }
            kind if ELSEWHERE.contains(&kind) || WEB.contains(&kind) => {
                mistakes.push(format!("the kind `{kind}` is read by tool-agent and `autoact tools` alone"));
                return None;
            }
            _ => {
                mistakes.push(format!("the kind `{}` is unknown; expected one of {}", quoted(kind), self.known_kinds()));
                return None;
            }
        };
        for key in run.keys() {
            mistakes.push(format!("`run` has the unknown key `{}` for the kind `{kind}`", quoted(key)));
        }
        Some(built_in)
    }

    /// What the tool does to the world where its entry does not say it; `None`: only its author
    /// knows.
    pub(super) fn effect_of(&self, run: &Implementation) -> Option<Effect> {
        match run {
            Implementation::Command { .. } => None,
            Implementation::Other { kind, run } => self.preset(kind).map(|preset| preset.effect).or_else(|| self.kinds.effect(kind, run)),
            _ => Some(Effect::ReadOnly), // what all built-in kinds are
        }
    }

    pub(super) fn preset(&self, kind: &str) -> Option<&'static Preset> {
        local(kind).map(|local| local.preset).or_else(|| self.kinds.preset(kind))
    }

    fn known_kinds(&self) -> String {
        let local = local_presets().map(|preset| preset.kind);
        local.chain(self.kinds.kinds().iter().copied()).fold(KINDS.to_owned(), |all, kind| format!("{all}, `{kind}`"))
    }
}

/// How many sentences `retrieve` shows, where its entry says it.
fn sentences(run: &mut toml::Table, mistakes: &mut Vec<String>) -> Option<NonZeroUsize> {
    let given = run.remove("sentences")?;
    let count = given.as_integer().and_then(|count| usize::try_from(count).ok()).filter(|count| (1..=MOST_SENTENCES).contains(count));
    if count.is_none() {
        mistakes.push(format!("`sentences` of `run` is {given}; expected a number from 1 to {MOST_SENTENCES}"));
    }
    count.and_then(NonZeroUsize::new)
}

fn command(run: toml::Table, base: Option<&Path>, schema: Option<&ParameterSchema>, mistakes: &mut Vec<String>) -> Option<Implementation> {
    let raw = match toml::Value::Table(run).try_into::<RawCommand>() {
        Ok(raw) => raw,
        Err(error) => {
            mistakes.push(format!("run: {}", line(&error)));
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
    let sandbox = raw.sandbox.sandbox(&program, base, mistakes);
    Some(Implementation::Command { program, args, env: raw.env, sandbox })
}
