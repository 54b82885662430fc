//! What lies around a sandbox: files, sockets and processes that a hostile program must not touch.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use autoact_sandbox::{Limits, Sandbox, Tier};
use tempfile::TempDir;

use crate::cases::{Case, Does, Ends};

/// How long what a program started may live on.
const SURVIVES: Duration = Duration::from_secs(1);
/// How much of the output the caller keeps.
const OUTPUT_BYTES: u64 = 1 << 20;
/// What directories take beside their files.
const SLACK: u64 = 1 << 16;
pub(crate) const MEBIBYTE: u64 = 1 << 20;
/// Small enough that every bound is reached within a second.
pub(crate) const LIMITS: Limits = Limits {
    memory_bytes: 128 * MEBIBYTE,
    processes: 32,
    file_bytes: 8 * MEBIBYTE,
    work_bytes: 16 * MEBIBYTE,
    open_files: 64,
    cpu_seconds: 1,
};

/// The executable whose `main` begins with `run_if_launcher`, and that has the attacks.
pub(crate) fn launcher() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_sandbox-hostile"))
}

/// How a run ended.
pub(crate) struct Outcome {
    /// `None` when it was killed at its deadline.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) work: TempDir,
}

/// A host with something to lose.
pub(crate) struct World {
    /// Open to everybody: only the sandbox protects it.
    outside: TempDir,
    tools: TempDir,
    victim: Child,
    tcp: TcpListener,
    udp: UdpSocket,
    unix: UnixListener,
    abstract_socket: UnixListener,
    name: String,
    runs: u32,
    /// Open without `close on exec`, as a careless caller leaves it.
    _leaked: fs::File,
}

impl World {
    pub(crate) fn new() -> World {
        let directory = |mode| tempfile::Builder::new().permissions(Permissions::from_mode(mode)).tempdir().unwrap();
        let (outside, tools) = (directory(0o755), directory(0o755));
        fs::set_permissions(outside.path(), Permissions::from_mode(0o777)).unwrap();
        for (name, text) in [("secret", "the secret is 4711\n"), ("kept", "as it was\n")] {
            fs::write(outside.path().join(name), text).unwrap();
            fs::set_permissions(outside.path().join(name), Permissions::from_mode(0o666)).unwrap();
        }
        let raw = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hostile/raw.c");
        let compiled = Command::new("cc").args(["-O0", "-o"]).arg(tools.path().join("raw")).arg(raw).status();
        assert!(compiled.is_ok_and(|status| status.success()), "a C compiler is needed");
        let name = format!("sandbox-test-{}", outside.path().file_name().unwrap().display().to_string().trim_start_matches('.'));
        let (tcp, udp) = (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let unix = UnixListener::bind(outside.path().join("socket")).unwrap();
        fs::set_permissions(outside.path().join("socket"), Permissions::from_mode(0o777)).unwrap();
        let abstract_socket = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        unix.set_nonblocking(true).unwrap();
        abstract_socket.set_nonblocking(true).unwrap();
        let leaked = fs::File::open(outside.path().join("secret")).unwrap();
        rustix::io::fcntl_setfd(&leaked, rustix::io::FdFlags::empty()).unwrap();
        let victim = Command::new("sleep").arg("600").env("VICTIMS_SECRET", "4711").spawn().unwrap();
        World { outside, tools, victim, tcp, udp, unix, abstract_socket, name, runs: 0, _leaked: leaked }
    }

    pub(crate) fn outside(&self) -> &Path {
        self.outside.path()
    }

    pub(crate) fn tcp(&self) -> String {
        self.tcp.local_addr().unwrap().to_string()
    }

    /// A name for one run, which everything that it starts carries.
    fn mark(&mut self) -> String {
        self.runs += 1;
        format!("{}-{}-", self.name, self.runs)
    }

    /// Runs a case and looks at the world afterwards.
    pub(crate) fn survives(&mut self, tier: Tier, case: &Case) -> Result<(), String> {
        let before = self.state();
        let mark = self.mark();
        let sandbox = Sandbox { tier, limits: LIMITS, ..Sandbox::default() };
        let outcome = self.run(&sandbox, &case.does, &mark, case.deadline)?;
        let Outcome { status, stdout, stderr, work } = &outcome;
        let said = || format!("{status:?}\n--- {stdout}\n--- {stderr}");
        if let Some(left) = alive(&mark) {
            return Err(format!("still alive: {left}; {}", said()));
        }
        if stdout.contains("ESCAPED") || stdout.contains("4711") {
            return Err(format!("it got through: {}", said()));
        }
        let after = self.state();
        if before != after {
            return Err(format!("the host changed: {before:#?}\nis now {after:#?}\n{}", said()));
        }
        for place in ["/tmp", "/dev/shm", "/var/tmp"].map(Path::new) {
            if named(place, &mark).iter().any(|name| place.join(name) != work.path()) {
                return Err(format!("left something in `{}`; {}", place.display(), said()));
            }
        }
        let right = match case.ends {
            // it has to have run
            Ends::Anyhow => !stderr.contains("autoact-sandbox: cannot") || stderr.contains("autoact-sandbox: cannot hand over"),
            Ends::Exit(code) => status.is_some_and(|status| status.code() == Some(code)),
            Ends::Signal(signal) => status.is_some_and(|status| status.signal() == Some(signal)),
            Ends::Early => status.is_some_and(|status| !status.success()),
            Ends::AtDeadline => status.is_none(),
        };
        if !right {
            return Err(format!("expected {:?}: {}", case.ends, said()));
        }
        // a watched directory is looked at from time to time, and a disk writes fast
        let most = LIMITS.work_bytes * if tier == Tier::Landlock { 8 } else { 1 };
        let (bytes, setuid) = measure(work.path());
        if bytes > most + SLACK || setuid {
            return Err(format!("left {bytes} bytes, a file that lends rights: {setuid}; {}", said()));
        }
        // deeper than `TempDir` removes
        let _ = Command::new("rm").arg("-rf").arg(work.path()).status();
        Ok(())
    }

    /// Runs something with a deadline, reading a bounded part of its output.
    pub(crate) fn run(&self, sandbox: &Sandbox, does: &Does, mark: &str, deadline: Duration) -> Result<Outcome, String> {
        let launcher = launcher();
        let (program, args): (&Path, Vec<String>) = match does {
            Does::Shell(script) => (Path::new("sh"), vec!["-c".into(), format!(": {mark}; {script}")]),
            Does::Attack(name) => (&launcher, name.split(' ').map(|arg| self.filled(arg)).collect()),
            Does::Raw(name) => (&self.tools.path().join("raw"), name.split(' ').map(|arg| self.filled(arg)).collect()),
        };
        let work = tempfile::Builder::new().prefix(mark).tempdir().unwrap();
        let mut sandbox = Sandbox { launcher: Some(launcher.clone()), ..sandbox.clone() };
        sandbox.read.push(self.tools.path().to_owned());
        let env = self.env(mark);
        let mut command = sandbox.command(program, args, env, work.path()).map_err(|error| error.to_string())?;
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (stdout, stderr) = (read(child.stdout.take()), read(child.stderr.take()));
        let mut stdin = child.stdin.take().unwrap();
        // more than a pipe holds: a program that does not read it must not hold up the caller
        std::thread::spawn(move || drop(stdin.write_all(&vec![b'\n'; 1 << 20])));
        let end = Instant::now() + deadline;
        let status = poll(end, || child.try_wait().unwrap());
        if status.is_none() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let text = |bytes: mpsc::Receiver<Vec<u8>>| {
            let bytes = bytes.recv_timeout(Duration::from_secs(10)).map_err(|_| "a pipe is still held".to_owned())?;
            Ok::<_, String>(String::from_utf8_lossy(&bytes).into_owned())
        };
        Ok(Outcome { status, stdout: text(stdout)?, stderr: text(stderr)?, work })
    }

    /// An argument of an attack, which may name something of this world.
    fn filled(&self, arg: &str) -> String {
        self.env("").into_iter().find(|(name, _)| arg.strip_prefix('$') == Some(*name)).map_or(arg.to_owned(), |(_, value)| value)
    }

    /// What the program is told: the way to everything that it must not reach.
    fn env(&self, mark: &str) -> Vec<(&'static str, String)> {
        let path = |name: &str| self.outside.path().join(name).display().to_string();
        vec![
            ("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin".to_owned()),
            ("MARK", mark.to_owned()),
            ("OUTSIDE", self.outside.path().display().to_string()),
            ("SECRET", path("secret")),
            ("KEPT", path("kept")),
            ("SOCKET", path("socket")),
            ("ABSTRACT", self.name.clone()),
            ("VICTIM", self.victim.id().to_string()),
            ("CALLER", std::process::id().to_string()),
            ("TCP", self.tcp()),
            ("UDP", self.udp.local_addr().unwrap().to_string()),
            ("RAW", self.tools.path().join("raw").display().to_string()),
            ("HOSTILE", launcher().display().to_string()),
        ]
    }

    /// Everything that a run must leave as it is.
    fn state(&mut self) -> BTreeMap<String, String> {
        let mut state = BTreeMap::new();
        for entry in fs::read_dir(self.outside.path()).unwrap().flatten() {
            let metadata = entry.metadata().unwrap();
            let text = if metadata.is_file() { fs::read_to_string(entry.path()).unwrap() } else { String::new() };
            let about = format!("{:o} {} {} {} {text}", metadata.mode(), metadata.uid(), metadata.mtime(), metadata.nlink());
            state.insert(entry.file_name().to_string_lossy().into_owned(), about);
        }
        state.insert("victim".to_owned(), format!("{:?}", self.victim.try_wait()));
        let watched = [format!("/proc/{}/limits", self.victim.id()), "/proc/self/limits".to_owned(), "/proc/self/mountinfo".to_owned()];
        let kernel =
            ["kernel/hostname", "kernel/core_pattern", "vm/overcommit_memory", "kernel/sysrq"].map(|name| format!("/proc/sys/{name}"));
        for file in watched.into_iter().chain(kernel) {
            state.insert(file.clone(), fs::read_to_string(file).unwrap_or_default());
        }
        let launcher = fs::metadata(launcher()).unwrap();
        state.insert("launcher".to_owned(), format!("{:o} {} {}", launcher.mode(), launcher.mtime(), launcher.len()));
        let quiet = |error: std::io::Error| error.kind() == ErrorKind::WouldBlock;
        state.insert("tcp".to_owned(), self.tcp.accept().is_err_and(quiet).to_string());
        state.insert("udp".to_owned(), self.udp.recv(&mut [0; 16]).is_err_and(quiet).to_string());
        state.insert("unix".to_owned(), self.unix.accept().is_err_and(quiet).to_string());
        state.insert("abstract".to_owned(), self.abstract_socket.accept().is_err_and(quiet).to_string());
        state
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

/// Reads a bounded part of a stream and then closes it.
fn read(stream: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(stream) = stream {
            let _ = stream.take(OUTPUT_BYTES).read_to_end(&mut bytes);
        }
        let _ = sender.send(bytes);
    });
    receiver
}

/// Asks again and again until there is an answer, or the time is over.
pub(crate) fn poll<T>(end: Instant, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    loop {
        let answer = ask();
        if answer.is_some() || Instant::now() >= end {
            return answer;
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// Processes that carry `mark` in their command line or their environment.
pub(crate) fn marked(mark: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten().filter(|entry| entry.file_name().as_encoded_bytes()[0].is_ascii_digit());
    let found = processes.filter_map(|entry| {
        let text = |name: &str| fs::read(entry.path().join(name)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let (line, env) = (text("cmdline").unwrap_or_default(), text("environ").unwrap_or_default());
        (line.contains(mark) || env.contains(mark)).then(|| format!("{} {line}", entry.file_name().display()))
    });
    found.collect()
}

/// One that is still there after the time it may have.
pub(crate) fn alive(mark: &str) -> Option<String> {
    poll(Instant::now() + SURVIVES, || marked(mark).is_empty().then_some(()));
    marked(mark).pop()
}

/// Entries of a directory with `mark` in their names.
fn named(directory: &Path, mark: &str) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(|name| name.contains(mark)).collect()
}

/// The bytes below a directory, and whether a file there lends its owner's rights.
fn measure(directory: &Path) -> (u64, bool) {
    let (mut bytes, mut setuid) = (0, false);
    // no recursion: an attack decides how deep its directories go
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                left.push(entry.path());
            } else {
                bytes += metadata.blocks() * 512;
            }
            setuid |= metadata.mode() & 0o6000 != 0;
        }
    }
    (bytes, setuid)
}
