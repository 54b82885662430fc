//! A disk that can be full: a small file system in memory, where mounting one is allowed.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use tempfile::TempDir;

/// The file that takes all the room.
const FILLER: &str = "filler";
/// Written at once.
const BLOCK: usize = 64 * 1024;

/// A mounted file system of a fixed size; gone when dropped. What runs on it has to end first.
#[derive(Debug)]
pub struct SmallDisk {
    dir: TempDir,
}

impl SmallDisk {
    /// Mounts one of so many bytes. `Err` says why that is not possible here.
    pub fn new(bytes: u64) -> anyhow::Result<SmallDisk> {
        let dir = TempDir::with_prefix("autoact-disk-")?;
        let options = format!("size={bytes}");
        mount(Some("tmpfs"), dir.path(), Some("tmpfs"), MsFlags::empty(), Some(options.as_str()))
            .context("a small file system cannot be mounted here (that needs the rights of root)")?;
        Ok(SmallDisk { dir })
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Fills it to its last byte.
    pub fn fill(&self) -> anyhow::Result<()> {
        let mut file = std::fs::File::options().create(true).append(true).open(self.filler())?;
        for block in [BLOCK, 1] {
            loop {
                match file.write_all(&vec![0; block]) {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    /// Gives the room back that [`SmallDisk::fill`] took.
    pub fn free(&self) -> anyhow::Result<()> {
        Ok(std::fs::remove_file(self.filler())?)
    }

    fn filler(&self) -> PathBuf {
        self.path().join(FILLER)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // also where a process has not let go of it yet
        let _ = umount2(self.dir.path(), MntFlags::MNT_DETACH);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_full_disk_takes_nothing_until_there_is_room() {
        let disk = match SmallDisk::new(1 << 20) {
            Ok(disk) => disk,
            Err(why) => return println!("SKIPPED: {why:#}"),
        };
        let file = disk.path().join("file");
        disk.fill().unwrap();
        assert_eq!(std::fs::write(&file, [0; 4096]).unwrap_err().kind(), ErrorKind::StorageFull);
        disk.free().unwrap();
        std::fs::write(&file, [0; 4096]).unwrap();
    }
}
