//! Files that are read again when they change.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Says whether files have changed, each time it is asked. Files are asked for their time, size and
/// place: mounted configurations change without a sign that can be waited for everywhere.
///
/// Make one *before* the files are read, so that a change in between is seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileWatch {
    seen: Vec<(PathBuf, Option<Stamp>)>,
}

/// How a file looks from outside, behind links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: SystemTime,
    bytes: u64,
    inode: u64,
}

impl Stamp {
    /// `None`: there is no such file, or it cannot be looked at.
    fn of(path: &Path) -> Option<Stamp> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(Stamp { modified: metadata.modified().ok()?, bytes: metadata.len(), inode: metadata.ino() })
    }
}

impl FileWatch {
    /// How often to ask: how soon a change is noticed.
    pub const PERIOD: Duration = Duration::from_secs(1);

    /// Of these files as they are now. They need not be there.
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> FileWatch {
        let seen = paths.into_iter().map(|path| {
            let stamp = Stamp::of(&path);
            (path, stamp)
        });
        FileWatch { seen: seen.collect() }
    }

    /// Whether any file has changed, come or gone since it was last asked.
    pub fn look(&mut self) -> bool {
        self.look_at(self.seen.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>())
    }

    /// The same of these files, from now on. That they are other ones is a change too.
    pub fn look_at(&mut self, paths: impl IntoIterator<Item = PathBuf>) -> bool {
        let now = FileWatch::new(paths);
        let changed = *self != now;
        *self = now;
        changed
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A directory of this test's own, removed at its end.
    struct Dir(PathBuf);

    impl Dir {
        fn new(name: &str) -> Dir {
            let dir = std::env::temp_dir().join(format!("autoact-files-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&dir).unwrap();
            Dir(dir)
        }

        fn file(&self, name: &str, text: &str) -> PathBuf {
            let path = self.0.join(name);
            std::fs::write(&path, text).unwrap();
            path
        }
    }

    impl Drop for Dir {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn each_change_is_told_once() {
        let dir = Dir::new("change");
        let (file, later) = (dir.file("a", "1"), dir.0.join("b"));
        let mut watch = FileWatch::new([file.clone(), later.clone()]);
        assert!(!watch.look());
        dir.file("a", "two");
        assert!(watch.look() && !watch.look(), "it has another size");
        dir.file("b", "1");
        assert!(watch.look() && !watch.look(), "it has come");
        std::fs::remove_file(&later).unwrap();
        assert!(watch.look() && !watch.look(), "it has gone");
        let opened = std::fs::File::options().append(true).open(&file).unwrap();
        opened.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert!(watch.look() && !watch.look(), "it has another time");
    }

    #[test]
    fn a_file_put_in_the_place_of_another_is_a_change_behind_links_too() {
        let dir = Dir::new("place");
        let (one, two, link) = (dir.file("one", "same"), dir.file("two", "same"), dir.0.join("link"));
        let time = std::fs::metadata(&one).unwrap().modified().unwrap();
        std::fs::File::options().append(true).open(&two).unwrap().set_modified(time).unwrap();
        // as a kubelet changes a mounted ConfigMap
        std::os::unix::fs::symlink(&one, &link).unwrap();
        let mut watch = FileWatch::new([link.clone()]);
        std::fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(&two, &link).unwrap();
        assert!(watch.look() && !watch.look());
    }

    #[test]
    fn other_files_are_a_change() {
        let dir = Dir::new("other");
        let (one, two) = (dir.file("one", "1"), dir.file("two", "2"));
        let mut watch = FileWatch::new([one.clone()]);
        assert!(watch.look_at([one.clone(), two.clone()]));
        assert!(!watch.look());
        dir.file("two", "three");
        assert!(watch.look_at([one.clone(), two]));
        assert!(watch.look_at([one.clone()]) && !watch.look_at([one]));
    }
}
