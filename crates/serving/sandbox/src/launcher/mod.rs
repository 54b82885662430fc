//! The launcher: the processes between the caller and the program. Each has one thread, starts as
//! the executable, restricts itself, and starts the next.
//!
//! ```text
//! namespaces:  caller ─ outer ─ init (process 1) ─ program
//! landlock:    caller ─ outer ─ supervisor ─ program
//! ```

mod copy;
mod error;
mod identity;
mod in_place;
mod limits;
mod mounts;
mod namespaces;
mod process;
mod restrict;
mod seccomp;
mod watch;

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::plan::{LAUNCHER, Plan, Stage};
use crate::tier::Tier;
use error::LaunchError;

/// Stands before what the launcher itself says.
pub(crate) const SAYS: &str = "autoact-sandbox: ";
/// With these arguments a launcher ends at once and well.
pub(crate) const NOTHING: [&str; 2] = [LAUNCHER, "nothing"];

/// Whether this process passed [`run_if_launcher`].
static IS_LAUNCHER: AtomicBool = AtomicBool::new(false);

/// Runs the launcher and ends the process if it was started as one; otherwise returns at once. It
/// has to be called first in `main`, before there are threads and before arguments are read.
pub fn run_if_launcher() {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|arg| arg == LAUNCHER) {
        std::process::exit(run(args));
    }
    IS_LAUNCHER.store(true, Ordering::Relaxed);
}

pub(crate) fn is_launcher() -> bool {
    IS_LAUNCHER.load(Ordering::Relaxed)
}

/// One process of the launcher, to its end: the exit code.
fn run(mut args: impl Iterator<Item = OsString>) -> i32 {
    let plan = args.next().unwrap_or_default();
    if plan == NOTHING[1] {
        return 0;
    }
    let code = plan
        .to_str()
        .and_then(|plan| serde_json::from_str::<Plan>(plan).ok())
        .ok_or_else(|| LaunchError::Refused("the launcher is not for typing: its argument is no plan".to_owned()))
        .and_then(|plan| stage(&plan, args.collect()));
    code.unwrap_or_else(|error| {
        eprintln!("{SAYS}{error}");
        error.code()
    })
}

fn stage(plan: &Plan, args: Vec<OsString>) -> Result<i32, LaunchError> {
    // nothing that the caller left open reaches the program
    close_fds::set_fds_cloexec(3, &[]);
    match (plan.stage, plan.tier) {
        (Stage::Outer, Tier::Namespaces) => namespaces::outer(plan, args),
        (Stage::Outer, Tier::Landlock) => in_place::outer(plan, args),
        (Stage::Init, _) => namespaces::init(plan, args),
        (Stage::Supervisor, _) => in_place::supervise(plan, args),
        (Stage::Program, _) => in_place::become_program(plan, args),
    }
}
