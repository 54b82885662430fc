//! Child processes of `autoact up`: each is its own process group, logs to a file, and ends with us
//! whatever ends us.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;

use crate::up::patience::Patience;

/// Runs the program and, beside it, a reader of our pipe. When the pipe closes (we stopped it, or
/// we died, even by SIGKILL) the program gets SIGTERM and drains. No `prctl`, so no unsafe code.
const TETHER: &str = r#"exec 3<&0; (cat <&3 >/dev/null; kill -TERM $$ 2>/dev/null) & exec "$@" 3<&- </dev/null"#;

/// How long a stopped process may drain before it is killed: longer than the services' own grace
/// period.
const STOP_GRACE: Duration = Duration::from_secs(15);

/// How many lines of a dead process's log an error shows.
const TAIL_LINES: usize = 8;

/// What to start.
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    /// Its working directory; `None`: ours.
    pub(crate) dir: Option<PathBuf>,
}

/// A started program.
pub(crate) struct Process {
    pub(crate) name: String,
    pub(crate) log: PathBuf,
    child: Child,
    tether: Option<ChildStdin>,
}

impl Process {
    /// Starts `program` with its output in `logs/<name>.log`.
    pub(crate) fn start(program: &Program, logs: &Path) -> anyhow::Result<Process> {
        anyhow::ensure!(
            program.path.is_file(),
            "the program `{}` is missing; fix: build it with `cargo build --release --bins`",
            std::fs::read_link(&program.path).as_ref().unwrap_or(&program.path).display()
        );
        let log = logs.join(format!("{}.log", program.name));
        let output = File::create(&log)?;
        let mut command = Command::new("/bin/sh");
        if let Some(dir) = &program.dir {
            command.current_dir(dir);
        }
        let mut child = command
            .args(["-c", TETHER, "autoact-tether"])
            .arg(&program.path)
            .args(&program.args)
            .envs(program.env.iter().map(|(key, value)| (key, value)))
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let tether = child.stdin.take();
        Ok(Process { name: program.name.clone(), log, child, tether })
    }

    /// The process id, while it runs.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits for the process to end by itself.
    pub(crate) async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// The exit status, if it has ended.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// The end of its log.
    pub(crate) fn tail(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }

    /// The last message of its log, without the time that it was written at.
    pub(crate) fn last_message(&self) -> String {
        let tail = self.tail();
        let line = tail.lines().next_back().unwrap_or_default();
        let level = ["INFO ", "WARN ", "ERROR "].into_iter().find_map(|level| line.split_once(level));
        level.map_or(line, |(_, message)| message).trim().to_owned()
    }

    /// SIGTERM, the time to drain, then SIGKILL to the whole group.
    pub(crate) async fn stop(&mut self) {
        let group = self.child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        self.tether = None;
        if let Some(group) = group {
            // a process that ended meanwhile is what we want
            let _ = killpg(group, Signal::SIGTERM);
            if timeout(STOP_GRACE, self.child.wait()).await.is_err() {
                let _ = killpg(group, Signal::SIGKILL);
            }
        }
        let _ = timeout(Duration::from_secs(2), self.child.wait()).await;
    }

    /// SIGKILL to the whole group, without time to drain.
    pub(crate) async fn kill(&mut self) {
        self.tether = None;
        if let Some(group) = self.child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw) {
            let _ = killpg(group, Signal::SIGKILL);
        }
        let _ = timeout(Duration::from_secs(2), self.child.wait()).await;
    }
}

/// Stops all, in this order.
pub(crate) async fn stop_all(processes: &mut [Process]) {
    for process in processes {
        process.stop().await;
    }
}

/// Polls `ready` until it holds, a process ends, or there is no patience left.
pub(crate) async fn until<F, Fut>(processes: &mut [Process], patience: &mut Patience<'_>, what: &str, mut ready: F) -> anyhow::Result<()>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = bool>,
{
    let mut interval = tokio::time::interval(Duration::from_millis(20));
    loop {
        interval.tick().await;
        if ready().await {
            return Ok(());
        }
        for process in processes.iter_mut() {
            if let Some(status) = process.ended() {
                anyhow::bail!("`{}` ended while starting ({status}):\n{}\nlog: {}", process.name, process.tail(), process.log.display());
            }
        }
        patience.look().await;
        if let Some(process) = processes.iter().find(|process| process.name == what) {
            patience.waits(what, || process.last_message());
        }
        anyhow::ensure!(
            !patience.is_over(),
            "{what} is not ready in time; the logs are next to {}; fix: allow more with `--start-timeout`",
            processes.last().map_or_else(String::new, |process| process.log.display().to_string())
        );
    }
}
