//! One program, run to its end or until it is dropped.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};

use crate::files;
use crate::poll::within;

/// What a program left behind.
#[derive(Debug, Clone)]
pub struct Output {
    /// Its exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

impl Output {
    /// Both streams, for messages and for searches.
    pub fn text(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// Its standard output as one JSON value a line.
    pub fn json_lines(&self) -> anyhow::Result<Vec<serde_json::Value>> {
        self.stdout.lines().map(|line| serde_json::from_str(line).with_context(|| format!("not JSON: `{line}`"))).collect()
    }
}

/// A program of the workspace with its arguments and environment.
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
    args: Vec<String>,
    env: Vec<(String, String)>,
    dir: PathBuf,
    unread: Unread,
}

/// Streams that are pipes whose reader has gone.
#[derive(Debug, Clone, Copy, Default)]
struct Unread {
    stdout: bool,
    stderr: bool,
}

impl Program {
    /// The program of this name. It starts in the project's root, and without our caller's
    /// `AUTOACT_*` settings.
    pub fn new(name: &str) -> anyhow::Result<Program> {
        let (path, args) = files::service(name)?;
        Ok(Program { path, args, env: Vec::new(), dir: files::root(), unread: Unread::default() })
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Program {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<String>>) -> Program {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Program {
        self.env.push((name.to_owned(), value.into()));
        self
    }

    /// Starts in another directory.
    #[must_use]
    pub fn dir(mut self, dir: &Path) -> Program {
        self.dir = dir.to_path_buf();
        self
    }

    /// Nobody reads its standard output, as behind `head` that has seen enough.
    #[must_use]
    pub fn unread_stdout(mut self) -> Program {
        self.unread.stdout = true;
        self
    }

    /// Nobody reads its standard error.
    #[must_use]
    pub fn unread_stderr(mut self) -> Program {
        self.unread.stderr = true;
        self
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("AUTOACT_") || name.to_string_lossy().starts_with("OTEL_") {
                command.env_remove(name);
            }
        }
        let env = self.env.iter().map(|(name, value)| (name, value));
        command.args(&self.args).envs(env).current_dir(&self.dir).stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Starts it with its output captured.
    pub fn start(&self) -> anyhow::Result<Running> {
        let mut command = self.command();
        // the reading end is dropped here
        let unread = || anyhow::Ok(Stdio::from(std::io::pipe()?.1));
        // a file: nobody reads the log of a service that runs for minutes, and a full pipe stops it
        let log = tempfile::tempfile().context("cannot make a file for its standard error")?;
        let out = if self.unread.stdout { unread()? } else { Stdio::piped() };
        let err = if self.unread.stderr { unread()? } else { Stdio::from(log.try_clone()?) };
        let child = command.stdout(out).stderr(err).spawn();
        let child = child.with_context(|| format!("cannot start `{}`", self.path.display()))?;
        Ok(Running { child, read: Vec::new(), log, what: format!("`{} {}`", self.path.display(), self.args.join(" ")) })
    }

    /// Runs it to its end.
    pub async fn run(&self, limit: Duration) -> anyhow::Result<Output> {
        self.start()?.output(limit).await
    }
}

/// A started program; it is killed when dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// What was read of its standard output before its end.
    read: Vec<u8>,
    /// Its standard error.
    log: File,
    what: String,
}

impl Running {
    /// Its process id, while it runs.
    pub fn pid(&self) -> Option<i32> {
        self.child.id().and_then(|id| i32::try_from(id).ok())
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        if let Some(pid) = self.pid() {
            crate::processes::signal(pid, signal);
        }
    }

    /// Waits for the first line that it prints.
    pub async fn first_line(&mut self, limit: Duration) -> anyhow::Result<String> {
        let stdout = self.child.stdout.as_mut().context("stdout is captured")?;
        let read = &mut self.read;
        let line = async {
            loop {
                if let Some(end) = read.iter().position(|byte| *byte == b'\n') {
                    return Ok(String::from_utf8_lossy(&read[..end]).into_owned());
                }
                anyhow::ensure!(stdout.read_buf(read).await? > 0, "it printed no line");
            }
        };
        within(limit, &format!("the first line of {}", self.what), line).await?
    }

    /// What it has complained about so far.
    pub fn complaints(&self) -> anyhow::Result<String> {
        let mut bytes = vec![0; usize::try_from(self.log.metadata()?.len())?];
        // where it writes next is not moved
        let read = self.log.read_at(&mut bytes, 0)?;
        bytes.truncate(read);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Waits for its end.
    pub async fn output(mut self, limit: Duration) -> anyhow::Result<Output> {
        let stdout = self.child.stdout.take();
        let (mut out, mut err) = (std::mem::take(&mut self.read), Vec::new());
        let work = async { tokio::try_join!(rest(stdout, &mut out), self.child.wait()) };
        let ended = within(limit, &self.what, work).await;
        self.log.rewind()?;
        self.log.read_to_end(&mut err)?;
        let (stdout, stderr) = (String::from_utf8_lossy(&out).into_owned(), String::from_utf8_lossy(&err).into_owned());
        match ended {
            Ok(ended) => Ok(Output { code: ended?.1.code(), stdout, stderr }),
            Err(error) => Err(error.context(format!("so far it wrote:\n{stdout}{stderr}"))),
        }
    }
}

/// Everything that a stream still gives; nothing of one that is not captured.
async fn rest(stream: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>) -> std::io::Result<usize> {
    match stream {
        Some(mut stream) => stream.read_to_end(into).await,
        None => Ok(0),
    }
}
