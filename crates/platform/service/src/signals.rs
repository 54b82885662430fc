//! SIGTERM and SIGINT: the first asks for a shutdown, the second gets it at once.

use std::io::Write;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit code of a process that a second signal ended: 128 + SIGINT, as shells count.
const EXIT_AT_ONCE: i32 = 130;

/// The signals that ask a service to end.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From now on the signals no longer kill the process.
    pub(crate) fn listen() -> std::io::Result<Signals> {
        Ok(Signals { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// The next signal's name.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }

    /// Waits for the first signal; from then on a second one ends the process at once.
    pub(crate) async fn shutdown(mut self) {
        let name = self.next().await;
        tracing::info!(signal = name, "shutting down; a second signal ends the process at once");
        tokio::spawn(async move {
            let name = self.next().await;
            // whoever read our stderr may be gone already
            let _ = writeln!(std::io::stderr(), "second signal ({name}): ending at once");
            std::process::exit(EXIT_AT_ONCE);
        });
    }
}
