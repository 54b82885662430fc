//! The users' keys: a directory with a file `<user>.nk` each, for its owner alone, and the password
//! that the servers of a cluster show each other.

use std::fs::{DirBuilder, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nkeys::{KeyPair, KeyPairType};

use crate::users::{USERS, User};

/// The password of the connections between servers.
const ROUTES: &str = "routes.password";
/// What stands before the name of the inboxes in a key's file.
const INBOX: &str = "# inbox:";

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// A file cannot be read or written.
    #[error("cannot use `{}`; fix: `autoact nats init` makes the keys", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file holds no key.
    #[error("`{}` holds no key of a NATS user; expected one line that begins with `SU`, as `autoact nats init` writes it", path.display())]
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// No key can be made.
    #[error("cannot make a key: {0}")]
    Make(String),
}

/// The key of a user.
pub(crate) struct UserKey {
    pub(crate) pair: KeyPair,
    /// What its inboxes are named after: its first public key. A service that runs keeps its inboxes
    /// when its key is replaced.
    pub(crate) inbox: String,
}

impl std::fmt::Debug for UserKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UserKey").field("inbox", &self.inbox).finish_non_exhaustive()
    }
}

/// What nats-server knows of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    /// The user, one of [`USERS`].
    pub user: &'static str,
    /// Its public key.
    pub key: String,
    /// What its inboxes are named after: its first public key.
    pub inbox: String,
}

/// Where the key of a user is.
pub fn key_file(dir: &Path, user: &str) -> PathBuf {
    dir.join(format!("{user}.nk"))
}

/// Makes a key for each user, and the password of the servers: what is missing, or with `replace`
/// all of them. Returns the files that were written.
///
/// # Errors
/// The directory cannot be written.
pub fn make_keys(dir: &Path, replace: bool) -> Result<Vec<PathBuf>, KeyError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|source| KeyError::File { path: dir.to_owned(), source })?;
    let paths = USERS.iter().map(|user| key_file(dir, user.name)).chain([dir.join(ROUTES)]);
    paths.filter(|path| replace || !path.exists()).map(|path| write_new(&path).map(|()| path)).collect()
}

/// Makes another key for a user, in the place of the one before. Returns its file.
///
/// # Errors
/// The directory cannot be written.
pub fn replace_key(dir: &Path, user: &User) -> Result<PathBuf, KeyError> {
    let path = key_file(dir, user.name);
    write_new(&path)?;
    Ok(path)
}

/// The public key of each user of [`USERS`], in their order.
///
/// # Errors
/// A key is missing, or none.
pub fn public_keys(dir: &Path) -> Result<Vec<PublicKey>, KeyError> {
    let public = |user: &User| {
        let UserKey { pair, inbox } = read_key(&key_file(dir, user.name))?;
        Ok(PublicKey { user: user.name, key: pair.public_key(), inbox })
    };
    USERS.iter().map(public).collect()
}

/// The password of the connections between servers.
///
/// # Errors
/// Its file cannot be read.
pub fn routes_password(dir: &Path) -> Result<String, KeyError> {
    let path = dir.join(ROUTES);
    let read = std::fs::read_to_string(&path).map_err(|source| KeyError::File { path, source })?;
    Ok(read.trim().to_owned())
}

/// The key in a file: its first line that is none of a comment.
pub(crate) fn read_key(path: &Path) -> Result<UserKey, KeyError> {
    let text = std::fs::read_to_string(path).map_err(|source| KeyError::File { path: path.to_owned(), source })?;
    let mut lines = text.lines().map(str::trim);
    let inbox = lines.clone().find_map(|line| line.strip_prefix(INBOX)).map(|inbox| inbox.trim().to_owned());
    let seed = lines.find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or_default();
    let no_key = || KeyError::NoKey { path: path.to_owned() };
    // its error may show the text
    let pair = KeyPair::from_seed(seed).map_err(|_| no_key())?;
    if pair.key_pair_type() != KeyPairType::User {
        return Err(no_key());
    }
    let inbox = inbox.filter(|inbox| !inbox.is_empty()).unwrap_or_else(|| pair.public_key());
    Ok(UserKey { pair, inbox })
}

fn write_new(path: &Path) -> Result<(), KeyError> {
    let text = if path.file_name().is_some_and(|name| name == ROUTES) {
        // 32 random bytes, in letters and digits that need no quoting in an address
        KeyPair::new(KeyPairType::Server).public_key()
    } else {
        let seed = KeyPair::new_user().seed().map_err(|error| KeyError::Make(error.to_string()))?;
        match read_key(path) {
            Ok(before) => format!("{INBOX} {}\n{seed}", before.inbox),
            // there was none
            Err(_) => seed,
        }
    };
    let failed = |source| KeyError::File { path: path.to_owned(), source };
    // written beside and moved: nobody reads a half, and one that was open to others is not kept so
    let beside = path.with_extension("new");
    let _ = std::fs::remove_file(&beside);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside).map_err(failed)?;
    writeln!(file, "{text}").and_then(|()| file.sync_all()).and_then(|()| std::fs::rename(&beside, path)).map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn keys_are_made_once_and_are_their_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("nats");
        assert_eq!(make_keys(&at, false).unwrap().len(), USERS.len() + 1);
        for path in std::fs::read_dir(&at).unwrap().map(|entry| entry.unwrap().path()).chain([at.clone()]) {
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o077, 0, "{}", path.display());
        }
        let keys = public_keys(&at).unwrap();
        let different: std::collections::BTreeSet<&String> = keys.iter().map(|known| &known.key).collect();
        assert_eq!((different.len(), keys.iter().all(|known| known.key.starts_with('U') && known.inbox == known.key)), (USERS.len(), true));
        assert_eq!(make_keys(&at, false).unwrap(), [""; 0].map(PathBuf::from));
        std::fs::remove_file(key_file(&at, "gateway")).unwrap();
        assert_eq!(make_keys(&at, false).unwrap(), [key_file(&at, "gateway")]);
        let of = |name: &str, keys: &[PublicKey]| keys.iter().find(|known| known.user == name).unwrap().clone();
        let later = public_keys(&at).unwrap();
        assert_eq!(of("tool-agent", &keys), of("tool-agent", &later));
        assert_ne!(of("gateway", &keys).key, of("gateway", &later).key);
        assert_ne!(of("gateway", &keys).inbox, of("gateway", &later).inbox, "nothing was known of the one before");
        make_keys(&at, true).unwrap();
        replace_key(&at, &USERS[0]).unwrap();
        let last = public_keys(&at).unwrap();
        for (before, after) in later.iter().zip(&last) {
            assert_ne!(before.key, after.key);
            assert_eq!(before.inbox, after.inbox, "whoever runs keeps its inboxes");
        }
    }

    #[test]
    fn what_is_no_key_of_a_user_is_refused_and_not_shown() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.nk");
        assert!(matches!(read_key(&path), Err(KeyError::File { .. })));
        for text in ["", "secret\n", &KeyPair::new(KeyPairType::Account).seed().unwrap()] {
            std::fs::write(&path, text).unwrap();
            let error = read_key(&path).unwrap_err();
            assert!(matches!(error, KeyError::NoKey { .. }) && !format!("{error} {error:?}").contains("secret"));
        }
        let seed = KeyPair::new_user().seed().unwrap();
        std::fs::write(&path, format!("# of the gateway\n\n  {seed}\n")).unwrap();
        let read = read_key(&path).unwrap();
        assert_eq!((read.pair.seed().unwrap(), read.inbox), (seed, read.pair.public_key()));
    }
}
