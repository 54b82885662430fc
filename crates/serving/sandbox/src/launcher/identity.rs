//! As whom the program runs.
//!
//! Limits on processes do not bind root, and root owns the host's files. So a launcher that was
//! started as root becomes a user whom nobody else is, before anything else.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd};

use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};
use rustix::fs::{Dir, FileType, Mode, OFlags, fchown, fstat, openat};
use rustix::process::{DumpableBehavior, getegid, geteuid, set_dumpable_behavior};

use super::error::{LaunchError, Step};

/// The highest id that is used: far above what distributions and container runtimes hand out.
const HIGHEST: u32 = 2_100_000_000;
/// Directories within the working directory that the caller prepared.
const DEPTH: u32 = 8;
/// So many process ids there can be.
const PROCESSES: u32 = 1 << 22;

/// The user and the group to become, when this is root; the group has the user's number.
pub(crate) fn other_than_root() -> Result<Option<u32>, LaunchError> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let map = fs::read_to_string("/proc/self/uid_map").step("read `/proc/self/uid_map`")?;
    Ok(Some(id_for(std::process::id(), &map)))
}

/// An id that the map of user ids has, another one for each launcher that runs: limits count all
/// processes of a user together.
fn id_for(process: u32, map: &str) -> u32 {
    let ends = map.lines().filter_map(|line| {
        let mut numbers = line.split_whitespace().filter_map(|number| number.parse::<u64>().ok());
        let (first, _, length) = (numbers.next()?, numbers.next()?, numbers.next()?);
        Some(first + length - 1)
    });
    let highest = ends.max().map_or(HIGHEST, |end| u32::try_from(end).unwrap_or(HIGHEST).min(HIGHEST));
    highest - 1 - process % PROCESSES.min((highest / 4).max(1))
}

/// Gives the working directory and the files in it to the user `id`.
pub(crate) fn give(directory: impl AsFd, id: u32) -> Result<(), LaunchError> {
    give_below(&directory, id, DEPTH).step("give the working directory to another user")
}

fn give_below(directory: &impl AsFd, id: u32, depth: u32) -> rustix::io::Result<()> {
    let give_one = |file: BorrowedFd<'_>| fchown(file, Some(rustix::process::Uid::from_raw(id)), Some(rustix::process::Gid::from_raw(id)));
    give_one(directory.as_fd())?;
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = openat(directory, name, flags, Mode::empty()) else { continue };
        let stat = fstat(&file)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory if depth > 0 => give_below(&file, id, depth - 1)?,
            // a file with another name elsewhere is not only the call's
            FileType::RegularFile if stat.st_nlink == 1 => give_one(file.as_fd())?,
            _ => {}
        }
    }
    Ok(())
}

/// Becomes the user `id` for good.
pub(crate) fn change(id: u32) -> Result<(), LaunchError> {
    let step = "become another user than root";
    setgroups(&[]).step(step)?;
    setresgid(Gid::from_raw(id), Gid::from_raw(id), Gid::from_raw(id)).step(step)?;
    setresuid(Uid::from_raw(id), Uid::from_raw(id), Uid::from_raw(id)).step(step)?;
    // a process that changed its user does not own its files in /proc any more
    set_dumpable_behavior(DumpableBehavior::Dumpable).step(step)
}

/// Within a new user namespace: this user keeps its number there, and is the only one.
pub(crate) fn map_self(user: u32, group: u32) -> Result<(), LaunchError> {
    let write = |file: &str, text: String| fs::write(file, text).step(format!("write `{file}`"));
    write("/proc/self/setgroups", "deny".to_owned())?;
    write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// The numbers of the user and the group of this process.
pub(crate) fn own() -> (u32, u32) {
    (geteuid().as_raw(), getegid().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_in_the_map_and_differ() {
        let all = "         0          0 4294967295\n";
        assert!((1_900_000_000..HIGHEST).contains(&id_for(4_000_000, all)));
        assert_ne!(id_for(1, all), id_for(2, all));
        let container = "0 100000 65536\n";
        for process in [1, 7, 40_000, 4_194_303] {
            assert!((40_000..65_535).contains(&id_for(process, container)));
        }
    }
}
