//! The files of a directory, in a fixed order.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::document::Kind;
use crate::error::OpenError;

/// More directories within each other are a mistake, or a trap.
const MAX_DEPTH: usize = 64;

/// A file that can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// Its path below the imported directory, with `/` between its parts.
    pub path: String,
    /// Its format.
    pub kind: Kind,
    /// Its size in bytes.
    pub bytes: u64,
    pub(crate) location: PathBuf,
}

/// What a directory has beside files that can be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ignored {
    /// Files of other formats.
    pub unknown: usize,
    /// Files and directories whose names begin with a dot.
    pub hidden: usize,
    /// Symbolic links: they may lead out of the directory, or in circles.
    pub links: usize,
    /// Devices, pipes and sockets.
    pub special: usize,
    /// Directories that cannot be read, or that lie too deep: their paths.
    pub unreadable: Vec<String>,
}

/// The files below `root`, sorted by the bytes of their paths' parts, and what was passed over.
pub(crate) fn walk(root: &Path) -> Result<(Vec<FileEntry>, Ignored), OpenError> {
    let fail = |source| OpenError::Path { path: root.to_owned(), source };
    // the path itself may be a link: whoever named it means what it points to
    let metadata = fs::metadata(root).map_err(fail)?;
    let mut ignored = Ignored::default();
    if metadata.is_file() {
        let name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let file = Kind::of(root).map(|kind| FileEntry { path: name, kind, bytes: metadata.len(), location: root.to_owned() });
        ignored.unknown += usize::from(file.is_none());
        return Ok((file.into_iter().collect(), ignored));
    }
    if !metadata.is_dir() {
        return Err(fail(io::Error::new(io::ErrorKind::InvalidInput, "neither a directory nor a file")));
    }
    let mut files = Vec::new();
    // what is left to visit, the next one in front
    let mut queue: VecDeque<(PathBuf, String, usize)> = entries(root, "", 0).map_err(fail)?.into();
    while let Some((location, path, depth)) = queue.pop_front() {
        let name = path.rsplit('/').next().unwrap_or_default();
        let Ok(metadata) = fs::symlink_metadata(&location) else {
            continue; // it is gone
        };
        let kind = metadata.file_type();
        if name.starts_with('.') {
            ignored.hidden += 1;
        } else if kind.is_symlink() {
            ignored.links += 1;
        } else if kind.is_dir() {
            match entries(&location, &path, depth + 1) {
                Ok(inside) if depth < MAX_DEPTH => inside.into_iter().rev().for_each(|entry| queue.push_front(entry)),
                _ => ignored.unreadable.push(path),
            }
        } else if !kind.is_file() {
            ignored.special += 1;
        } else if let Some(kind) = Kind::of(&location) {
            files.push(FileEntry { path, kind, bytes: metadata.len(), location });
        } else {
            ignored.unknown += 1;
        }
    }
    Ok((files, ignored))
}

/// The entries of a directory, sorted by name.
fn entries(directory: &Path, path: &str, depth: usize) -> io::Result<Vec<(PathBuf, String, usize)>> {
    let mut names = fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.file_name())).collect::<io::Result<Vec<_>>>()?;
    names.sort();
    let entry = |name: std::ffi::OsString| {
        let below = name.to_string_lossy();
        let path = if path.is_empty() { below.into_owned() } else { format!("{path}/{below}") };
        (directory.join(name), path, depth)
    };
    Ok(names.into_iter().map(entry).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_walk_is_sorted_and_stays_inside() {
        let directory = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret.txt"), "secret").unwrap();
        let root = directory.path();
        fs::create_dir_all(root.join("b/inner")).unwrap();
        fs::create_dir_all(root.join(".git")).unwrap();
        for name in ["c.md", "a.TXT", "b/inner/x.html", "b/y.pdf", ".hidden.md", ".git/z.md", "photo.jpg", "b.txt"] {
            fs::write(root.join(name), "text").unwrap();
        }
        symlink(root, root.join("b/loop")).unwrap();
        symlink(outside.path(), root.join("out")).unwrap();
        symlink(outside.path().join("secret.txt"), root.join("secret.txt")).unwrap();
        nix::unistd::mkfifo(&root.join("pipe.txt"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let (files, ignored) = walk(root).unwrap();
        let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["a.TXT", "b/inner/x.html", "b/y.pdf", "b.txt", "c.md"]);
        assert_eq!(ignored, Ignored { unknown: 1, hidden: 2, links: 3, special: 1, unreadable: vec![] });
        assert_eq!(walk(root).unwrap().0, files);
    }

    #[test]
    fn one_file_is_a_walk_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.md");
        fs::write(&file, "text").unwrap();
        let (files, _) = walk(&file).unwrap();
        assert_eq!((files[0].path.as_str(), files[0].kind, files[0].bytes), ("a.md", Kind::Markdown, 4));
        assert!(walk(&directory.path().join("none")).is_err());
    }

    #[test]
    fn directories_that_lie_too_deep_are_named() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("d/".repeat(MAX_DEPTH + 3))).unwrap();
        assert_eq!(walk(directory.path()).unwrap().1.unreadable.len(), 1);
    }
}
