//! Copies the files of a directory into another one, within bounds.
//!
//! The working directory of a program is a tmpfs, whose size the kernel bounds whatever the
//! program does. Its files are taken out when nothing can change them any more.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;

use rustix::fs::{Dir, FileType, Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;

use crate::sandbox::Limits;

/// Directories within directories: deeper ones are passed over.
const DEPTH: u32 = 32;

/// How much is copied.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    bytes: u64,
    files: u64,
}

impl Bounds {
    pub(crate) fn of(limits: &Limits) -> Bounds {
        Bounds { bytes: limits.work_bytes, files: limits.work_files() }
    }
}

/// Copies regular files and directories from one directory to another. Links and special files are
/// passed over: they lead elsewhere.
pub(crate) fn tree(from: impl AsFd, to: impl AsFd, mut bounds: Bounds) -> io::Result<()> {
    level(&from, &to, &mut bounds, DEPTH)
}

fn level(from: &impl AsFd, to: &impl AsFd, bounds: &mut Bounds, depth: u32) -> io::Result<()> {
    for entry in Dir::read_from(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        bounds.files = bounds.files.checked_sub(1).ok_or_else(|| too_much("too many files"))?;
        // never waits, and follows no link, whatever the entry said it was
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(from, name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::LOOP | Errno::NXIO) => continue,
            Err(error) => return Err(error.into()),
        };
        let stat = rustix::fs::fstat(&file)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                let mode = Mode::RUSR | Mode::WUSR | (Mode::from_raw_mode(stat.st_mode) & Mode::XUSR);
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let copied =
                    io::copy(&mut File::from(file).take(bounds.bytes.saturating_add(1)), &mut File::from(openat(to, name, flags, mode)?))?;
                bounds.bytes = bounds.bytes.checked_sub(copied).ok_or_else(|| too_much("too many bytes"))?;
            }
            FileType::Directory if depth > 0 => {
                match mkdirat(to, name, Mode::RWXU) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                level(&file, &openat(to, name, flags, Mode::empty())?, bounds, depth - 1)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn too_much(what: &str) -> io::Error {
    io::Error::new(ErrorKind::FileTooLarge, what)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn copied(make: impl FnOnce(&std::path::Path), bounds: Bounds) -> (tempfile::TempDir, io::Result<()>) {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        make(from.path());
        let result = tree(File::open(from.path()).unwrap(), File::open(to.path()).unwrap(), bounds);
        (to, result)
    }

    #[test]
    fn files_and_directories_are_copied_and_links_are_not() {
        let bounds = Bounds { bytes: 100, files: 10 };
        let make = |from: &std::path::Path| {
            fs::create_dir_all(from.join("a/b")).unwrap();
            fs::write(from.join("a/b/line\nbreak"), "text").unwrap();
            symlink("/etc/passwd", from.join("link")).unwrap();
            nix::unistd::mkfifo(&from.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        };
        let (to, result) = copied(make, bounds);
        result.unwrap();
        assert_eq!(fs::read_to_string(to.path().join("a/b/line\nbreak")).unwrap(), "text");
        assert_eq!(fs::read_dir(to.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_sparse_file_and_many_files_end() {
        let sparse = |from: &std::path::Path| File::create(from.join("sparse")).unwrap().set_len(1 << 40).unwrap();
        let (to, result) = copied(sparse, Bounds { bytes: 1000, files: 10 });
        assert_eq!(result.unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert!(fs::metadata(to.path().join("sparse")).unwrap().len() <= 1001);
        let many = |from: &std::path::Path| (0..11).for_each(|number| drop(File::create(from.join(number.to_string())).unwrap()));
        let (to, result) = copied(many, Bounds { bytes: 1000, files: 10 });
        assert_eq!(result.unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert_eq!(fs::read_dir(to.path()).unwrap().count(), 10);
    }
}
