//! The three pipes of a running program, served by the thread that waits for it: no thread of their
//! own, none that could stay behind.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::tool::ToolError;

/// How much is read at once: what a pipe holds.
const CHUNK_BYTES: usize = 64 * 1024;

/// A program's input and output. Our ends do not block.
pub(crate) struct Pipes {
    stdin: Input,
    stdout: Output<ChildStdout>,
    stderr: Output<ChildStderr>,
}

impl Pipes {
    /// Takes the pipes of `child`: it gets `input`, and the given numbers of bytes are kept of what
    /// it writes. What goes beyond is read and dropped, so that the program can end.
    pub(crate) fn of(child: &mut Child, input: String, stdout_bytes: usize, stderr_bytes: usize) -> Result<Pipes, ToolError> {
        let stdin = Input { stream: child.stdin.take(), bytes: input.into_bytes(), written: 0 };
        let stdout = Output { stream: child.stdout.take(), kept: Vec::new(), bound: stdout_bytes };
        let stderr = Output { stream: child.stderr.take(), kept: Vec::new(), bound: stderr_bytes };
        let pipes = Pipes { stdin, stdout, stderr };
        for end in [pipes.stdin.fd(), pipes.stdout.fd(), pipes.stderr.fd()].into_iter().flatten() {
            fcntl(end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(broken)?;
        }
        Ok(pipes)
    }

    /// Waits up to `limit` until a pipe can be read or written, and does so; false when none could.
    pub(crate) fn serve(&mut self, limit: Duration) -> Result<bool, ToolError> {
        let wanted = [(self.stdin.fd(), PollFlags::POLLOUT), (self.stdout.fd(), PollFlags::POLLIN), (self.stderr.fd(), PollFlags::POLLIN)];
        let mut ends: Vec<PollFd<'_>> = wanted.into_iter().filter_map(|(end, flags)| Some(PollFd::new(end?, flags))).collect();
        // with no end open this is a pause
        match poll(&mut ends, PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX)) {
            Ok(0) | Err(Errno::EINTR) => return Ok(false),
            Ok(_) => {}
            Err(error) => return Err(broken(error)),
        }
        self.stdin.write();
        self.stdout.read();
        self.stderr.read();
        Ok(true)
    }

    /// Reads what lies in the pipes now, without waiting for more.
    pub(crate) fn drain(&mut self, deadline: Instant) {
        // a process that left the group may go on writing: then the time or the bound ends it
        while self.stdout.read() && !self.stdout.is_full() && Instant::now() < deadline {}
        while self.stderr.read() && !self.stderr.is_full() && Instant::now() < deadline {}
    }

    /// What was kept of the standard output and of the standard error.
    pub(crate) fn output(self) -> (String, String) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&self.stdout.kept), text(&self.stderr.kept))
    }
}

fn broken(error: Errno) -> ToolError {
    ToolError::Internal(format!("cannot talk to the program: {error}"))
}

/// The program's standard input; closed when all is written, or when the program does not want it.
struct Input {
    stream: Option<ChildStdin>,
    bytes: Vec<u8>,
    written: usize,
}

impl Input {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.stream.as_ref().map(AsFd::as_fd)
    }

    fn write(&mut self) {
        while let Some(stream) = &mut self.stream {
            match stream.write(&self.bytes[self.written..]) {
                Ok(written) if written > 0 && self.written + written < self.bytes.len() => self.written += written,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // all is written; or the program ended without reading it, which is its right
                Ok(_) | Err(_) => self.stream = None,
            }
        }
    }
}

/// One of the program's outputs; closed at its end.
struct Output<S> {
    stream: Option<S>,
    kept: Vec<u8>,
    bound: usize,
}

impl<S: Read + AsFd> Output<S> {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.stream.as_ref().map(AsFd::as_fd)
    }

    fn is_full(&self) -> bool {
        self.kept.len() >= self.bound
    }

    /// Reads once; whether there was something.
    fn read(&mut self) -> bool {
        let Some(stream) = &mut self.stream else { return false };
        let mut chunk = [0_u8; CHUNK_BYTES];
        match stream.read(&mut chunk) {
            Ok(read) if read > 0 => {
                self.kept.extend_from_slice(&chunk[..read.min(self.bound - self.kept.len())]);
                true
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Ok(_) | Err(_) => {
                self.stream = None;
                false
            }
        }
    }
}
