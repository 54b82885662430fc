//! Confines one call of a program that is not trusted.
//!
//! [`Sandbox::command`] returns a [`std::process::Command`]: the caller gives it the pipes, spawns
//! it, waits, and kills it at its deadline. What is spawned is the *launcher*: the current
//! executable once more, which builds the confinement, runs the program in it, and ends as the
//! program ended. So [`run_if_launcher`] has to be the first thing in `main`.
//!
//! There are two tiers. [`Tier::Namespaces`] gives the program a root, a process table, a network
//! and a user of its own; what it leaves behind goes with them. [`Tier::Landlock`] is for
//! containers that refuse namespaces: it restricts the program in place, contains less, and is only
//! used where the caller allows it. Both have a seccomp filter and limits on resources.
//! `docs/sandbox.md` says what each of them contains.
//!
//! A launcher cannot use `unsafe` code between `fork` and `exec`, which is where sandboxes are
//! usually built. Instead every process of the launcher starts as the executable, restricts
//! itself, and starts the next one.

mod error;
mod launcher;
mod plan;
mod sandbox;
mod tier;

pub use error::SandboxError;
pub use launcher::run_if_launcher;
pub use sandbox::{Limits, Sandbox};
pub use tier::{Tier, Tiers};

/// The launcher's exit code when it could not build the confinement; its standard error says why.
/// The program did not run then, or its files could not be handed over.
pub const LAUNCHER_FAILED: i32 = 125;
/// The launcher's exit code when the program cannot be executed.
pub const NOT_EXECUTABLE: i32 = 126;
/// The launcher's exit code when there is no such program within the sandbox.
pub const NOT_FOUND: i32 = 127;
