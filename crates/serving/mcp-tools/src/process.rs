//! A server's program, from its start to its end.
//!
//! Each program has a thread that starts it and waits for it: the kernel ends a sandbox with the
//! thread that started it. The program leads a process group, which is killed when its owner is
//! dropped, and when the program itself has ended.

use std::collections::BTreeMap;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use autoact_base::error::chain;
use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::sync::{oneshot, watch};

use crate::options::StdioOptions;

/// Where programs are looked for when the entry sets no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A started program. Dropping it kills its process group.
#[derive(Debug)]
pub(crate) struct Process {
    group: Arc<Mutex<Option<Pid>>>,
    ended: watch::Receiver<Option<String>>,
}

/// Its standard streams.
pub(crate) struct Pipes {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
}

impl Process {
    /// Starts the program with these secrets in its environment.
    pub(crate) async fn start(server: &str, options: StdioOptions, secrets: BTreeMap<String, String>) -> Result<(Process, Pipes), String> {
        let (started, starting) = oneshot::channel();
        let body = move || own(&options, secrets, started);
        std::thread::Builder::new().name(format!("mcp-{server}")).spawn(body).map_err(|error| error.to_string())?;
        starting.await.unwrap_or_else(|_| Err("its thread ended".to_owned()))
    }

    /// How it ended, if it did or does within this time.
    pub(crate) async fn end_within(&self, limit: Duration) -> Option<String> {
        let mut ended = self.ended.clone();
        let end = tokio::time::timeout(limit, ended.wait_for(Option::is_some)).await.ok()?.ok()?;
        end.clone()
    }

    /// Asks its process group to end.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    fn signal(&self, signal: Signal) {
        // locked: a number is not used again before its process is reaped
        if let Some(group) = *self.group.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = killpg(group, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
    }
}

type Started = oneshot::Sender<Result<(Process, Pipes), String>>;

/// The life of a program, on its own thread.
fn own(options: &StdioOptions, secrets: BTreeMap<String, String>, started: Started) {
    let (mut child, _directory) = match spawn(options, secrets) {
        Ok(spawned) => spawned,
        Err(reason) => return drop(started.send(Err(reason))),
    };
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
        let _ = child.kill().and_then(|()| child.wait());
        return drop(started.send(Err("it has no pipes".to_owned())));
    };
    let pid = Pid::from_raw(child.id().cast_signed());
    let group = Arc::new(Mutex::new(Some(pid)));
    let (tell, ended) = watch::channel(None);
    // nobody waits any more: what is sent is dropped, which kills the program
    drop(started.send(Ok((Process { group: Arc::clone(&group), ended }, Pipes { stdin, stdout, stderr }))));
    while waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) == Err(Errno::EINTR) {}
    let mut leader = group.lock().unwrap_or_else(PoisonError::into_inner);
    // what it left behind in its group
    let _ = killpg(pid, Signal::SIGKILL);
    let status = child.wait();
    *leader = None;
    drop(leader);
    let _ = tell.send(Some(status.map_or_else(|error| error.to_string(), told)));
}

fn spawn(options: &StdioOptions, secrets: BTreeMap<String, String>) -> Result<(Child, TempDir), String> {
    let directory = tempfile::tempdir().map_err(|error| format!("cannot make a working directory: {error}"))?;
    let mut env: BTreeMap<&str, &str> = [("PATH", DEFAULT_PATH), ("LANG", "C.UTF-8")].into();
    env.extend(options.env.iter().chain(&secrets).map(|(name, value)| (name.as_str(), value.as_str())));
    let mut command = match &options.sandbox {
        Some(sandbox) => sandbox.command(&options.program, &options.args, env, directory.path()).map_err(|error| chain(&error))?,
        None => {
            let mut command = Command::new(&options.program);
            command.args(&options.args).env_clear().envs(env);
            command.current_dir(options.directory.as_deref().unwrap_or(directory.path()));
            command
        }
    };
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let child = command.spawn().map_err(|error| format!("`{}`: {error}", options.program))?;
    Ok((child, directory))
}

fn told(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => status.to_string(),
    }
}
