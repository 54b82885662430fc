//! `code_interpreter`: a Python program in the sandbox, run as a cell of a notebook.
//!
//! It is read-only: the program has no network and sees no file of others, and all that it writes
//! is gone after the call, so a call that is repeated changes nothing. Its result may differ, as
//! that of a clock may.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use autoact_sandbox::{Limits, Sandbox, Tier};
use autoact_trajectory::{Effect, ToolSpec, cut};
use serde::Deserialize;

use crate::command::{Command, Ended, told_status};
use crate::local::settings::{from, keys, program};
use crate::placeholder::Argument;
use crate::preset::{Key, Preset};
use crate::text::one_line;
use crate::tool::{Tool, ToolCall, ToolError, ToolOutput};

pub(super) static PRESET: Preset = Preset {
    kind: "code_interpreter",
    name: "CodeInterpreter",
    definition: "Runs a Python program and shows what it prints and the value of its last expression. It has no network and no files.",
    schema: Some(
        r#"{"type":"object","properties":{"program":{"type":"string","contentMediaType":"text/x-python","minLength":1,"maxLength":16384,"description":"the program; its last line may be an expression"}},"required":["program"],"additionalProperties":false}"#,
    ),
    usage: None,
    examples: &[r#"{"program":"sum(n * n for n in range(11))"}"#],
    effect: Effect::ReadOnly,
    timeout: Duration::from_secs(20),
    max_observation_bytes: 4096,
    multiline: true,
    keys: &[
        Key {
            name: "python",
            meaning: "the interpreter, `python3` without it; a path starts from the library's directory",
            required: false,
        },
        Key { name: "read", meaning: "files and directories that programs may read, from the library's directory", required: false },
        Key { name: "tier", meaning: "`namespaces` (without it) or `landlock`, as for a `sandbox`", required: false },
        Key { name: "allow_lesser", meaning: "whether `landlock` will do where there are no namespaces", required: false },
        Key { name: "limits", meaning: "bounds on what a program takes, as for a `sandbox`", required: false },
    ],
    data: &[],
};

/// What runs the program.
const NOTEBOOK: &str = include_str!("notebook.py");
/// Of what a program printed before it failed, the end is told.
const PRINTED_BYTES: usize = 600;

#[derive(Deserialize)]
struct Keys {
    #[serde(default = "python3")]
    python: String,
    #[serde(default)]
    read: Vec<PathBuf>,
    tier: Option<Tier>,
    #[serde(default)]
    allow_lesser: bool,
    #[serde(default)]
    limits: Limits,
}

fn python3() -> String {
    "python3".to_owned()
}

pub(super) fn make(run: toml::Table, spec: ToolSpec, base: Option<&Path>) -> Result<Arc<dyn Tool>, Vec<String>> {
    let Keys { python, read, tier, allow_lesser, limits } = keys(run)?;
    let mut mistakes = Vec::new();
    let found = program(&python, base, "install it (Debian's package is `python3`) or name another one as `python`");
    let mut granted = Vec::new();
    for path in read {
        match std::path::absolute(from(base, &path)) {
            Ok(path) if path.exists() => granted.push(path),
            _ => mistakes.push(format!("`read` names `{}`, which is not there", path.display())),
        }
    }
    let python = match found {
        Ok(python) => python,
        Err(mistake) => {
            mistakes.push(mistake);
            return Err(mistakes);
        }
    };
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    if python.contains('/') {
        granted.push(PathBuf::from(&python));
    }
    let sandbox = Sandbox { tier: tier.unwrap_or(Tier::Namespaces), allow_lesser, limits, read: granted, network: false, launcher: None };
    Ok(Arc::new(CodeInterpreter { command: command(spec, python, sandbox) }))
}

/// `-I`: neither variables nor files beside the program change what Python itself does.
fn command(spec: ToolSpec, python: String, sandbox: Sandbox) -> Command {
    let fixed = |text: &str| Argument::Fixed(text.to_owned());
    let program = Argument::Value { prefix: String::new(), property: "program".to_owned(), bare: false };
    let args = vec![fixed("-I"), fixed("-B"), fixed("-c"), fixed(NOTEBOOK), program];
    Command::new(spec, python, args, BTreeMap::new(), Some(sandbox))
}

struct CodeInterpreter {
    command: Command,
}

impl Tool for CodeInterpreter {
    fn spec(&self) -> &ToolSpec {
        self.command.spec()
    }

    fn run(&self, call: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        let ended = self.command.ended(call, &[])?;
        if ended.status.success() { Ok(ended.output()) } else { Err(failure(&ended)) }
    }

    fn sandbox(&self) -> Option<&Sandbox> {
        self.command.sandbox()
    }
}

/// A program that failed: the exception with its line, and what was printed before.
fn failure(ended: &Ended) -> ToolError {
    let said = ended.complaint.lines().map(one_line).rfind(|line| !line.is_empty());
    let what = match (said, ended.status.signal()) {
        (Some(said), None) => said,
        (_, Some(9)) => "it was ended: it took more memory or more processes than its limits allow".to_owned(),
        (_, Some(24)) => "it was ended: it took more processor time than its limits allow".to_owned(),
        (_, Some(25)) => "it was ended: it wrote more than its limits allow".to_owned(),
        (said, _) => format!("{}{}", told_status(ended.status), said.map(|said| format!(": {said}")).unwrap_or_default()),
    };
    let printed = one_line(&ended.told);
    let printed = &printed[printed.ceil_char_boundary(printed.len().saturating_sub(PRINTED_BYTES))..];
    let before = if printed.is_empty() { String::new() } else { format!(" Before that it printed: {printed}") };
    let (what, _) = cut(what, PRINTED_BYTES);
    ToolError::Params(format!("{what}.{before}"))
}
