//! A process that parses one document: this executable again, confined. It gets the format, the
//! limits and the bytes on its standard input, and writes what it found to its standard output.

use std::io::{BufRead as _, BufReader, BufWriter, Read, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use autoact_base::error::chain;
use autoact_base::lines::one_line;
use autoact_sandbox::{LAUNCHER_FAILED, NOT_EXECUTABLE, NOT_FOUND, Sandbox};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::document::{Extracted, Kind};
use crate::error::ReadError;
use crate::limits::Limits;
use crate::reader::{GRACE, parsed_here};

/// The only argument of such a process. It is not meant to be typed.
const ARGUMENT: &str = "--autoact-document-reader";
/// What is kept of its complaints.
const COMPLAINT_BYTES: u64 = 4096;
/// The process itself, and what starts it.
const START_LIMIT: Duration = Duration::from_secs(10);

/// The first line of the input; the document's bytes follow.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    kind: Kind,
    limits: Limits,
}

/// If this process was started to read a document: reads it, and does not return. Belongs at the
/// beginning of `main`, after [`autoact_sandbox::run_if_launcher`].
pub fn run_if_reader() {
    if std::env::args_os().nth(1).is_none_or(|argument| argument != ARGUMENT) {
        return;
    }
    // panics are part of the answer
    std::panic::set_hook(Box::new(|_| {}));
    let answered = answer(std::io::stdin().lock(), std::io::stdout().lock());
    if let Err(error) = &answered {
        eprintln!("{}", one_line(&error.to_string()));
    }
    std::process::exit(i32::from(answered.is_err()));
}

fn answer(input: impl Read, output: impl Write) -> std::io::Result<()> {
    let (mut input, mut output) = (BufReader::new(input), BufWriter::new(output));
    let mut line = String::new();
    input.read_line(&mut line)?;
    let Order { kind, limits } = serde_json::from_str(&line)?;
    let mut bytes = Vec::new();
    input.take(limits.file_bytes).read_to_end(&mut bytes)?;
    let found = parsed_here(kind, bytes, limits).map_err(|error| match error {
        // the parser's stack is memory too
        ReadError::Thread(_) => ReadError::Memory { limit: limits.memory_bytes },
        error => error,
    });
    serde_json::to_writer(&mut output, &found)?;
    output.flush()
}

/// What a process may take that parses within these limits.
pub(crate) fn limits(limits: &Limits) -> autoact_sandbox::Limits {
    autoact_sandbox::Limits {
        memory_bytes: limits.memory_bytes,
        // threads count: the parser's, and those of the allocator
        processes: 16,
        file_bytes: 1 << 20,
        work_bytes: 1 << 20,
        open_files: 32,
        cpu_seconds: limits.time.saturating_mul(GRACE).as_secs() + 1,
    }
}

/// What such a process finds in a document.
pub(crate) fn parsed(sandbox: &Sandbox, kind: Kind, bytes: &[u8], limits: Limits) -> Result<Extracted, ReadError> {
    let failed = |message: String| ReadError::Process { message };
    let order = serde_json::to_string(&Order { kind, limits }).map_err(|error| failed(error.to_string()))?;
    let work = tempfile::tempdir().map_err(|error| failed(format!("cannot make a working directory: {error}")))?;
    let mut child = start(sandbox, work.path())?;
    let pid = Pid::from_raw(child.id().cast_signed());
    let (mut input, output, complaints) = match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
        (Some(input), Some(output), Some(complaints)) => (input, output, complaints),
        _ => return Err(failed("it has no pipes".to_owned())),
    };
    // JSON is longer than the text that it holds: escapes, and the sections
    let most = (limits.text_bytes as u64).saturating_mul(2).saturating_add(1 << 20);
    let (mut found, mut complaint) = (Vec::new(), Vec::new());
    let late = thread::scope(|scope| {
        let (over, watched) = sync_channel::<()>(0);
        // one that has failed does not read all of it
        scope.spawn(move || writeln!(input, "{order}").and_then(|()| input.write_all(bytes)));
        let watch = scope.spawn(move || {
            let late = watched.recv_timeout(limits.time.saturating_mul(GRACE) + START_LIMIT) == Err(RecvTimeoutError::Timeout);
            if late {
                let _ = kill(pid, Signal::SIGKILL);
            }
            late
        });
        let _ = output.take(most + 1).read_to_end(&mut found);
        let _ = complaints.take(COMPLAINT_BYTES).read_to_end(&mut complaint);
        drop(over);
        watch.join().unwrap_or_default()
    });
    // one that goes on after its output was dropped has nothing to say
    let _ = child.kill();
    let status = child.wait().map_err(|error| failed(error.to_string()))?;
    if found.len() as u64 > most {
        return Err(ReadError::TooMuchText { limit: limits.text_bytes });
    }
    if late {
        return Err(ReadError::Time { limit: limits.time });
    }
    match serde_json::from_slice::<Result<Extracted, ReadError>>(&found) {
        Ok(found) => found,
        Err(_) => Err(ended(status, &String::from_utf8_lossy(&complaint), &limits)),
    }
}

fn start(sandbox: &Sandbox, work: &Path) -> Result<Child, ReadError> {
    let failed = |message: String| ReadError::Process { message };
    let program = match &sandbox.launcher {
        Some(launcher) => launcher.clone(),
        None => std::env::current_exe().map_err(|error| failed(error.to_string()))?,
    };
    let nothing: [(&str, &str); 0] = [];
    let mut command = sandbox.command(&program, [ARGUMENT], nothing, work).map_err(|error| failed(chain(&error)))?;
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    spawned.map_err(|error| failed(error.to_string()))
}

/// Why a process ended without an answer.
fn ended(status: ExitStatus, complaint: &str, limits: &Limits) -> ReadError {
    let said = complaint.lines().map(one_line).find(|line| !line.is_empty());
    let memory = ReadError::Memory { limit: limits.memory_bytes };
    match (status.signal().map(Signal::try_from), said) {
        (_, Some(said)) if said.starts_with("memory allocation of") => memory,
        (Some(Ok(Signal::SIGKILL)), _) => memory,
        (Some(Ok(Signal::SIGXCPU)), _) => ReadError::Time { limit: limits.time },
        (None, Some(message)) if [LAUNCHER_FAILED, NOT_EXECUTABLE, NOT_FOUND].map(Some).contains(&status.code()) => {
            ReadError::Process { message }
        }
        (_, said) => ReadError::Panicked { message: said.unwrap_or_else(|| format!("it ended with {status}")) },
    }
}
