//! The tier of namespaces: the outer process and process 1.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Child;

use nix::sched::{CloneFlags, unshare};
use nix::sys::wait::{WaitStatus, wait};
use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::process::{DumpableBehavior, set_dumpable_behavior, setsid};
use rustix::system::sethostname;

use super::copy::{self, Bounds};
use super::error::{LaunchError, Step};
use super::process::{self, End};
use super::watch::{Excess, Watch};
use super::{SAYS, identity, limits, mounts, restrict, seccomp};
use crate::plan::{Plan, Stage};

/// The name of the host that the program sees.
const HOST_NAME: &[u8] = b"sandbox";
/// Processes of the namespace's user beside the program's: the outer one, and process 1.
const OURS: u64 = 2;

/// Makes the namespaces, starts process 1 in them, watches what it takes, and copies the working
/// directory out when everything in them has ended.
pub(crate) fn outer(plan: &Plan, args: Vec<OsString>) -> Result<i32, LaunchError> {
    process::end_with_parent()?;
    process::check_parent(plan)?;
    let directory = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = |path: &std::path::Path| openat(CWD, path, directory, Mode::empty()).step(format!("open `{}`", path.display()));
    // the host's, while it is in sight
    let (work, processes, null) = (open(&plan.work)?, open("/proc".as_ref())?, process::null()?);
    if let Some(other) = identity::other_than_root()? {
        identity::give(&work, other)?;
        identity::change(other)?;
    }
    make_namespaces(plan)?;
    restrict::keep_for_next()?;
    // both changed who this is, which makes the kernel forget
    process::end_with_parent()?;
    process::check_parent(plan)?;
    let (report, for_init) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).step("make a pipe")?;
    let mut init = process::next(plan, Stage::Init, &for_init, args)?;
    drop(for_init);
    process::leave_streams(&null)?;
    let excess = watched(plan, &init, processes)?;
    if let Some(excess) = excess {
        eprintln!("{SAYS}{excess}");
        let _ = init.kill();
    }
    let ended = init.wait().step("wait for process 1")?;
    let mut told = Vec::new();
    std::fs::File::from(report).take(8).read_to_end(&mut told).step("read how the program ended")?;
    match (End::reported(&told), excess) {
        (_, Some(excess)) => Ok(excess.end().pass_on()),
        (Some(end), None) => {
            // nothing lives in the namespaces any more: their files are still
            let from = open(&plan.work)?;
            copy::tree(from, work, Bounds::of(&plan.limits)).step("hand over the files of the working directory")?;
            Ok(end.pass_on())
        }
        // it could not start the program and said why, or the kernel ended it
        (None, None) => Ok(std::os::unix::process::ExitStatusExt::signal(&ended)
            .map_or(End::Exit(ended.code().unwrap_or(crate::LAUNCHER_FAILED)), End::Signal)
            .pass_on()),
    }
}

fn make_namespaces(plan: &Plan) -> Result<(), LaunchError> {
    let (user, group) = identity::own();
    let mut flags = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWCGROUP;
    if !plan.network {
        flags |= CloneFlags::CLONE_NEWNET;
    }
    unshare(flags).step("make namespaces (a container's seccomp profile or a setting of the kernel can refuse them)")?;
    identity::map_self(user, group)
}

/// Waits for process 1; what the program took too much of, if it did.
fn watched(plan: &Plan, init: &Child, processes: OwnedFd) -> Result<Option<Excess>, LaunchError> {
    let mut watch = Watch::new(processes, init.id(), plan.limits);
    let ended = process::handle(init.id())?;
    loop {
        if process::wait_for(&[&ended], Watch::PERIOD)?[0] {
            return Ok(None);
        }
        if let Some(excess) = watch.memory() {
            return Ok(Some(excess));
        }
    }
}

/// Process 1: builds the root, gives up its privileges, starts the program, and adopts what that
/// leaves. Everything in the namespaces ends with it.
pub(crate) fn init(plan: &Plan, args: Vec<OsString>) -> Result<i32, LaunchError> {
    let mut report = process::inherited(plan, OpenOptions::new().write(true))?;
    process::end_with_parent()?;
    limits::first_out_of_memory();
    let null = process::null()?;
    let (user, group) = identity::own();
    mounts::enter(plan, user, group)?;
    sethostname(HOST_NAME).step("set the name of the host")?;
    setsid().step("make a session")?;
    limits::set(&plan.limits, OURS)?;
    restrict::drop_privileges()?;
    // the program has the same user: it must not look into this process
    set_dumpable_behavior(DumpableBehavior::NotDumpable).step("hide process 1")?;
    seccomp::in_namespaces(plan.network)?;
    process::end_with_parent()?;
    let mut broken = [PollFd::new(&report, PollFlags::empty())];
    if poll(&mut broken, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok() && broken[0].revents().contains(PollFlags::ERR) {
        return Err(LaunchError::Refused("the launcher has ended".to_owned()));
    }
    let program = process::program(plan, args).spawn().map_err(|error| process::not_started(plan, error))?;
    process::leave_streams(&null)?;
    let program = Pid::from_raw(program.id() as i32);
    loop {
        let status = wait().step("wait for the program")?;
        if let (WaitStatus::Exited(ended, _) | WaitStatus::Signaled(ended, ..), Some(end)) = (status, End::of(status))
            && ended == program
        {
            report.write_all(&end.report()).step("tell how the program ended")?;
            return Ok(0);
        }
    }
}
