//! The state directory of a local group: its ports, its files, and who holds it.

use std::fs::{DirBuilder, File, TryLockError};
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Ports of a group, from one base.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ports {
    base: u16,
    replicas: u16,
}

impl Ports {
    /// Ports from `base` on, for 1 to 8 replicas.
    pub(crate) fn new(base: u16, replicas: u16) -> anyhow::Result<Ports> {
        let highest = Self::offset(replicas - 1) + 104;
        anyhow::ensure!(
            (1024..=u16::MAX - highest).contains(&base),
            "`--base-port` must be between 1024 and {}, found `{base}`",
            u16::MAX - highest
        );
        Ok(Ports { base, replicas })
    }

    /// How far the ports of a replica (0 is the first) are from those of the first. Their tens stand
    /// apart from NATS's port.
    fn offset(replica: u16) -> u16 {
        if replica == 0 { 0 } else { 20 + 10 * replica }
    }

    /// How many replicas there are.
    pub(crate) fn replicas(self) -> u16 {
        self.replicas
    }

    /// gRPC port of the service with this index.
    pub(crate) fn grpc(self, index: u16, replica: u16) -> u16 {
        self.base + Self::offset(replica) + index
    }

    /// Where the service with this index is called: the gateway, the first, with plain text, and the
    /// others with TLS.
    pub(crate) fn address(self, index: u16, replica: u16) -> String {
        let scheme = if index == 0 { "http" } else { "https" };
        format!("{scheme}://127.0.0.1:{}", self.grpc(index, replica))
    }

    /// Metrics port of the service with this index.
    pub(crate) fn metrics(self, index: u16, replica: u16) -> u16 {
        self.grpc(index, replica) + 100
    }

    /// nats-server's port.
    pub(crate) fn nats(self) -> u16 {
        self.base + 22
    }

    /// The port of nats-server's monitoring.
    pub(crate) fn nats_monitoring(self) -> u16 {
        self.base + 23
    }

    /// Names the first port that something else listens on.
    pub(crate) fn check_free(self, services: u16) -> anyhow::Result<()> {
        let of = |replica| (0..services).flat_map(move |index| [self.grpc(index, replica), self.metrics(index, replica)]);
        for port in (0..self.replicas).flat_map(of).chain([self.nats(), self.nats_monitoring()]) {
            TcpListener::bind(("127.0.0.1", port)).with_context(|| {
                format!("port {port} is taken; fix: stop what listens there (`autoact down`?), or choose other ports with `--base-port`")
            })?;
        }
        Ok(())
    }
}

/// The state directory, held while this value lives.
#[derive(Debug)]
pub(crate) struct StateDir {
    path: PathBuf,
    shared_prefixes: PathBuf,
    /// Locked as long as we run, whatever ends us; it says who we are.
    _pid_file: File,
}

impl StateDir {
    /// Creates the directory and holds it: of two groups that start at once, one is refused.
    pub(crate) fn hold(path: &Path) -> anyhow::Result<StateDir> {
        std::fs::create_dir_all(path.join("logs")).with_context(|| format!("cannot create the state directory `{}`", path.display()))?;
        let cannot = || format!("cannot write to `{}`", path.display());
        let open = File::options().create(true).write(true).truncate(false).open(pid_file(path));
        let mut pid_file = open.with_context(cannot)?;
        match pid_file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => anyhow::bail!(
                "a group already runs in {}{}; fix: `autoact down --state-dir {0}`, or choose another directory",
                path.display(),
                holder(path)?.map_or_else(String::new, |holder| format!(" (process {holder})"))
            ),
            Err(TryLockError::Error(error)) => return Err(error).with_context(cannot),
        }
        pid_file.set_len(0).and_then(|()| writeln!(pid_file, "{}", std::process::id())).with_context(cannot)?;
        // absolute: the services may run in another directory
        let path = std::fs::canonicalize(path)?;
        let shared_prefixes = shared_prefixes(&path)?;
        Ok(StateDir { path, shared_prefixes, _pid_file: pid_file })
    }

    /// An empty directory in memory, where there is such a thing, that goes with the group.
    pub(crate) fn shared_prefixes(&self) -> &Path {
        &self.shared_prefixes
    }

    /// A program under another name: one that does as it is called.
    pub(crate) fn link(&self, name: &str, program: &Path) -> anyhow::Result<PathBuf> {
        let dir = self.join("bin");
        let link = dir.join(name);
        let linked = std::fs::create_dir_all(&dir).and_then(|()| {
            // what an earlier group left, of a build that may be gone
            let _ = std::fs::remove_file(&link);
            std::os::unix::fs::symlink(program, &link)
        });
        linked.with_context(|| format!("cannot link `{}` to `{}`", link.display(), program.display()))?;
        Ok(link)
    }

    /// A file or directory in it.
    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for StateDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.shared_prefixes);
    }
}

/// What names of directories in memory begin with, before the id of the process whose group uses
/// them.
const SHARED: &str = "autoact-";

/// Makes the directory through which the agents share keys and values, for this user alone: what
/// prompts held can be read out of them.
fn shared_prefixes(state: &Path) -> anyhow::Result<PathBuf> {
    let memory = Path::new("/dev/shm");
    forget_the_dead(memory);
    let places = [memory.join(format!("{SHARED}{}", std::process::id())), state.join("prefixes")];
    for place in &places {
        // what an earlier group, killed, left in this state directory
        let _ = std::fs::remove_dir_all(place);
        if DirBuilder::new().mode(0o700).create(place).is_ok() {
            return Ok(place.clone());
        }
    }
    anyhow::bail!("cannot make a directory for shared keys and values, neither `{}` nor `{}`", places[0].display(), places[1].display())
}

/// Removes what groups that were killed left in memory; what is another user's stays.
fn forget_the_dead(memory: &Path) {
    for entry in std::fs::read_dir(memory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let holder = name.to_str().and_then(|name| name.strip_prefix(SHARED)).and_then(|pid| pid.parse::<i32>().ok());
        if holder.is_some_and(|pid| !is_autoact(pid)) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// The process that holds a state directory, if it still runs.
pub(crate) fn holder(path: &Path) -> anyhow::Result<Option<i32>> {
    let cannot = || format!("cannot read `{}`", pid_file(path).display());
    let file = match File::open(pid_file(path)) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(cannot),
    };
    match file.try_lock_shared() {
        // nobody holds it: what it says is of a group that has ended
        Ok(()) => return Ok(None),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return Err(error).with_context(cannot),
    }
    let text = std::fs::read_to_string(pid_file(path)).with_context(cannot)?;
    // a group that starts just now has not written its id yet
    Ok(text.trim().parse().ok())
}

/// Asks the holder to stop.
pub(crate) fn terminate(holder: i32) -> anyhow::Result<()> {
    kill(Pid::from_raw(holder), Signal::SIGTERM).with_context(|| format!("cannot stop process {holder}"))
}

/// A process id is used again by the system: only one of ours counts.
fn is_autoact(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "autoact")
}

fn pid_file(path: &Path) -> PathBuf {
    path.join("autoact.pid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_named() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = taken.local_addr().unwrap().port();
        if let Ok(ports) = Ports::new(base, 1) {
            let error = ports.check_free(5).unwrap_err();
            assert!(error.to_string().contains(&base.to_string()));
        }
    }

    #[test]
    fn no_port_is_given_twice_nor_to_the_next_group() {
        let ports = Ports::new(7400, 8).unwrap();
        let services = (0..8).flat_map(|replica| (0..5).flat_map(move |index| [ports.grpc(index, replica), ports.metrics(index, replica)]));
        let all: Vec<u16> = services.chain([ports.nats(), ports.nats_monitoring()]).collect();
        let different: std::collections::BTreeSet<u16> = all.iter().copied().collect();
        assert_eq!(different.len(), all.len());
        // the next base is 200 further
        assert!(different.iter().all(|port| (7400..7600).contains(port)));
        assert_eq!([ports.grpc(0, 0), ports.grpc(1, 1), ports.metrics(3, 2)], [7400, 7431, 7543]);
        assert!(Ports::new(65_431, 1).is_ok() && Ports::new(65_431, 2).is_err());
    }

    #[test]
    fn a_directory_has_one_holder_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let held = StateDir::hold(dir.path()).unwrap();
        assert_eq!(holder(dir.path()).unwrap(), Some(std::process::id().cast_signed()));
        let error = StateDir::hold(dir.path()).unwrap_err().to_string();
        assert!(error.contains("already runs") && error.contains(&format!("process {}", std::process::id())), "{error}");
        drop(held);
        assert_eq!(holder(dir.path()).unwrap(), None);
        StateDir::hold(dir.path()).unwrap();
    }

    #[test]
    fn a_stale_pid_file_does_not_hold_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        // the id of a process that runs, but not of a group
        std::fs::write(dir.path().join("autoact.pid"), format!("{}\n", std::process::id())).unwrap();
        assert_eq!(holder(dir.path()).unwrap(), None);
        std::fs::write(dir.path().join("autoact.pid"), "garbage").unwrap();
        assert_eq!(holder(dir.path()).unwrap(), None);
    }

    #[test]
    fn what_killed_groups_left_in_memory_goes() {
        let memory = tempfile::tempdir().unwrap();
        for name in ["autoact-999999999", "autoact-bench", "other-999999999"] {
            std::fs::create_dir(memory.path().join(name)).unwrap();
        }
        forget_the_dead(memory.path());
        let left = |name: &str| memory.path().join(name).exists();
        assert_eq!([left("autoact-999999999"), left("autoact-bench"), left("other-999999999")], [false, true, true]);
    }
}
