//! A tool that is a program: the parameters come on its standard input as one line, its standard
//! output is the observation. Those of a tool with several or typed arguments are a JSON object;
//! single ones can be filled into the program's arguments.
//!
//! Files that it leaves in the directory `ARTIFACTS_DIR` become artifacts when it ends well.
//! `NAME.about` says what the model reads of the file `NAME`.
//!
//! It starts with an empty environment (but for `PATH`, `LANG`, `IDEMPOTENCY_KEY` and what the
//! tool's entry sets) in a temporary working directory, in a process group of its own, which is
//! killed when the program ends or its deadline passes. A process that left the group (`setsid`) is
//! not killed, but it cannot hold the call up: nobody waits for its end of the pipes, and no thread
//! stays behind.

use std::collections::BTreeMap;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use autoact_trajectory::{MAX_ARTIFACT_BYTES, MAX_ARTIFACTS, ToolSpec};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::artifacts::{ARTIFACTS_DIR, Collected, collect};
use crate::pipes::Pipes;
use crate::placeholder::{Argument, fill};
use crate::text::{one_line, quoted};
use crate::tool::{Tool, ToolCall, ToolError, ToolOutput};

/// Where programs are looked for when the entry sets no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Names the call: a program that changes the world can hand it on, so that a call that is repeated
/// takes effect once.
const IDEMPOTENCY_KEY: &str = "IDEMPOTENCY_KEY";
/// How much of the standard error is kept for the message.
const STDERR_BYTES: usize = 4096;
/// How long reading what an ended program left in its pipes may take.
const LAST_OUTPUT: Duration = Duration::from_secs(1);
/// The pause between two looks at a running program, at first and after output.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// The longest pause between two looks at a silent program.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// A program as a tool.
pub struct Command {
    spec: ToolSpec,
    program: String,
    args: Vec<Argument>,
    env: BTreeMap<String, String>,
}

impl Command {
    /// `program` with its arguments and the variables it shall see. A program without a slash is
    /// looked for in `PATH`.
    pub fn new(spec: ToolSpec, program: String, args: Vec<Argument>, env: BTreeMap<String, String>) -> Command {
        Command { spec, program, args, env }
    }

    fn start(&self, args: Vec<String>, key: &str, directory: &Path, artifacts: &Path) -> Result<Child, ToolError> {
        std::process::Command::new(&self.program)
            .args(args)
            .env_clear()
            .env("PATH", DEFAULT_PATH)
            .env("LANG", "C.UTF-8")
            .env(ARTIFACTS_DIR, artifacts)
            .env(IDEMPOTENCY_KEY, key)
            .envs(&self.env)
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|source| ToolError::Start { program: self.program.clone(), source })
    }

    /// How much output is kept: blanks vanish later, so that more than the bound is read.
    fn stdout_bytes(&self) -> usize {
        self.spec.max_observation_bytes.saturating_mul(4).saturating_add(4096)
    }
}

impl Tool for Command {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        let deadline = Instant::now() + self.spec.timeout;
        let args = fill(&self.args, call.arguments)?;
        let directory = tempfile::tempdir().map_err(|error| ToolError::Internal(format!("cannot make a working directory: {error}")))?;
        let (work, artifacts) = (directory.path().join("work"), directory.path().join("artifacts"));
        for made in [&work, &artifacts] {
            std::fs::create_dir(made).map_err(|error| ToolError::Internal(format!("cannot make a working directory: {error}")))?;
        }
        let mut running = Running { child: self.start(args, call.key, &work, &artifacts)? };
        let line = format!("{}\n", one_line(call.params));
        let mut pipes = Pipes::of(&mut running.child, line, self.stdout_bytes(), STDERR_BYTES)?;
        let status = running.wait(deadline, &mut pipes)?;
        drop(running); // ends what the program may have left behind in its group
        // what was written until now lies in the pipes
        pipes.drain(Instant::now() + LAST_OUTPUT);
        let (told, complaint) = pipes.output();
        match status {
            None => Err(ToolError::Timeout { after: self.spec.timeout, written: one_line(&told) }),
            Some(status) if status.success() => Ok(output(told, collect(&artifacts))),
            Some(status) => {
                let message = complaint.lines().map(one_line).find(|line| !line.is_empty()).unwrap_or_else(|| "no message".to_owned());
                Err(ToolError::Failed { status: told_status(status), message: quoted(&message) })
            }
        }
    }
}

/// A started program. Dropping it kills its whole process group and reaps it.
struct Running {
    child: Child,
}

impl Running {
    /// How the program ended, or `None` when it did not until the deadline. Its pipes are served
    /// meanwhile.
    fn wait(&mut self, deadline: Instant, pipes: &mut Pipes) -> Result<Option<ExitStatus>, ToolError> {
        let mut pause = FIRST_PAUSE;
        loop {
            let status = self.child.try_wait().map_err(|error| ToolError::Internal(format!("cannot wait for the program: {error}")))?;
            let left = deadline.saturating_duration_since(Instant::now());
            if status.is_some() || left.is_zero() {
                return Ok(status);
            }
            // a child's end wakes nobody without unsafe code, so that a silent program is looked at
            // again and again
            let moved = pipes.serve(pause.min(left))?;
            pause = if moved { FIRST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(group) = i32::try_from(self.child.id()) {
            // fails when the group has no member any more, which is what we want
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
        let _ = self.child.wait();
    }
}

/// What the program told, and what it left in its directory for artifacts.
fn output(mut text: String, collected: Collected) -> ToolOutput {
    let Collected { artifacts, left_out } = collected;
    if !left_out.is_empty() {
        let (files, bytes) = (MAX_ARTIFACTS, MAX_ARTIFACT_BYTES >> 20);
        text.push_str(&format!(" (Not kept, beyond {files} files or {bytes} MiB: {}.)", quoted(&left_out.join(", "))));
    }
    ToolOutput { text, artifacts, ..ToolOutput::default() }
}

fn told_status(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => status.to_string(),
    }
}
