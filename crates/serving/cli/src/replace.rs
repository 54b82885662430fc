//! Puts a whole file in the place of another in one step: a reader sees the old one or the new one.

use std::fs::Permissions;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// What every user may do with a new file, before the umask.
const NEW_FILE: u32 = 0o666;

/// The directory of a file.
pub(crate) fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes `content` to `path`. A file that is there keeps its permissions, and a link its place.
pub(crate) fn replace(path: &Path, mut content: impl Read) -> io::Result<()> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut named = tempfile::Builder::new();
    let mut named = named.prefix(".autoact-").permissions(Permissions::from_mode(NEW_FILE)).tempfile_in(directory(&target))?;
    if let Ok(before) = target.metadata() {
        named.as_file().set_permissions(before.permissions())?;
    }
    io::copy(&mut content, &mut named)?;
    named.as_file().sync_all()?;
    named.persist(&target)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests
    use std::fs;

    use super::*;

    #[test]
    fn a_file_keeps_its_permissions_and_a_link_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("a"), directory.path().join("link"));
        replace(&file, "one".as_bytes()).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o600, 0o600);
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, "two".as_bytes()).unwrap();
        assert_eq!((fs::read_to_string(&file).unwrap().as_str(), fs::read_link(&link).unwrap()), ("two", file.clone()));
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "nothing else is left");
    }
}
