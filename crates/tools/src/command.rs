//! A tool that is a program: the parameters come on its standard input as one line, its standard output is the observation.
//!
//! It starts with an empty environment (but for `PATH`, `LANG` and what the tool's entry sets) in a temporary working directory, in a
//! process group of its own, which is killed when the program ends or its deadline passes: nothing is left running.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use autoact_trajectory::ToolSpec;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::text::{one_line, quoted};
use crate::tool::{Tool, ToolCall, ToolError};

/// Where programs are looked for when the entry sets no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// How much of the standard error is kept for the message.
const STDERR_BYTES: usize = 4096;
/// How long we wait for the last output of a program that has ended.
const LAST_OUTPUT: Duration = Duration::from_secs(1);
/// The longest pause between two looks at a running program.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// A program as a tool.
pub struct Command {
    spec: ToolSpec,
    program: String,
    args: Vec<String>,
    env: BTreeMap<String, String>,
}

impl Command {
    /// `program` with fixed arguments and the variables it shall see. A program without a slash is looked for in `PATH`.
    pub fn new(spec: ToolSpec, program: String, args: Vec<String>, env: BTreeMap<String, String>) -> Command {
        Command { spec, program, args, env }
    }

    fn start(&self, directory: &std::path::Path) -> Result<Child, ToolError> {
        std::process::Command::new(&self.program)
            .args(&self.args)
            .env_clear()
            .env("PATH", DEFAULT_PATH)
            .env("LANG", "C.UTF-8")
            .envs(&self.env)
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|source| ToolError::Start { program: self.program.clone(), source })
    }
}

impl Tool for Command {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: &ToolCall<'_>) -> Result<String, ToolError> {
        let deadline = Instant::now() + self.spec.timeout;
        let directory = tempfile::tempdir().map_err(|error| ToolError::Internal(format!("cannot make a working directory: {error}")))?;
        let mut running = Running { child: self.start(directory.path())? };
        let output = running.connect(call.params, self.spec.max_observation_bytes)?;
        let status = running.wait(deadline)?;
        drop(running); // ends what the program may have left behind, and with it the last writers of its output
        let Some(status) = status else { return Err(ToolError::Timeout { after: self.spec.timeout }) };
        let told = output.stdout.recv_timeout(LAST_OUTPUT).unwrap_or_default();
        if status.success() {
            return Ok(String::from_utf8_lossy(&told).into_owned());
        }
        let complaint = output.stderr.recv_timeout(LAST_OUTPUT).unwrap_or_default();
        let complaint = String::from_utf8_lossy(&complaint);
        let message = complaint.lines().map(one_line).find(|line| !line.is_empty()).unwrap_or_else(|| "no message".to_owned());
        Err(ToolError::Failed { status: told_status(status), message: quoted(&message) })
    }
}

/// A started program. Dropping it kills its whole process group and reaps it.
struct Running {
    child: Child,
}

struct Output {
    stdout: Receiver<Vec<u8>>,
    stderr: Receiver<Vec<u8>>,
}

impl Running {
    /// Feeds the parameters and gathers the output on threads of their own, which end with the program.
    fn connect(&mut self, params: &str, bound: usize) -> Result<Output, ToolError> {
        if let Some(mut stdin) = self.child.stdin.take() {
            let line = format!("{}\n", one_line(params));
            // a program may end without reading its input: that is its right
            spawn(move || drop(stdin.write_all(line.as_bytes())))?;
        }
        // blanks vanish later, so that more than the bound is read; what goes beyond is read and dropped, so that the program can end
        let stdout = gather(self.child.stdout.take(), bound.saturating_mul(4).saturating_add(4096))?;
        let stderr = gather(self.child.stderr.take(), STDERR_BYTES)?;
        Ok(Output { stdout, stderr })
    }

    /// How the program ended, or `None` when it did not until the deadline.
    fn wait(&mut self, deadline: Instant) -> Result<Option<ExitStatus>, ToolError> {
        let mut pause = Duration::from_millis(1);
        loop {
            let status = self.child.try_wait().map_err(|error| ToolError::Internal(format!("cannot wait for the program: {error}")))?;
            let left = deadline.saturating_duration_since(Instant::now());
            if status.is_some() || left.is_zero() {
                return Ok(status);
            }
            // on a blocking thread, and there is nothing to wait on: a child's end wakes nobody without unsafe code
            #[allow(clippy::disallowed_methods)]
            std::thread::sleep(pause.min(left));
            pause = (pause * 2).min(LONGEST_PAUSE);
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

fn spawn(work: impl FnOnce() + Send + 'static) -> Result<(), ToolError> {
    std::thread::Builder::new()
        .name("tool-io".to_owned())
        .spawn(work)
        .map(drop)
        .map_err(|error| ToolError::Internal(format!("cannot start a thread: {error}")))
}

/// Reads a stream to its end on a thread and delivers its first `bound` bytes.
fn gather(stream: Option<impl Read + Send + 'static>, bound: usize) -> Result<Receiver<Vec<u8>>, ToolError> {
    let (sender, receiver) = sync_channel(1);
    if let Some(mut stream) = stream {
        spawn(move || {
            let mut kept = Vec::new();
            let mut chunk = [0_u8; 4096];
            loop {
                match stream.read(&mut chunk) {
                    Ok(0) => break,
                    Ok(read) => kept.extend_from_slice(&chunk[..read.min(bound - kept.len())]),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
            let _ = sender.send(kept); // nobody waits any more after a timeout
        })?;
    }
    Ok(receiver)
}

fn told_status(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => status.to_string(),
    }
}
