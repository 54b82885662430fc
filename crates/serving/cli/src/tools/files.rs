//! Which files a library is made of: those of the group in the state directory, wherever the command
//! is typed.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::args::FilesOptions;
use crate::bus::CONFIG;

/// The files of a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Files {
    /// The library.
    pub(super) tools: PathBuf,
    /// The user's own, whose entries are added; it need not exist.
    pub(super) own: PathBuf,
}

/// As the options say; what they do not say is as `up` wrote it into its state directory.
///
/// # Errors
/// Nothing says which library it is: then another directory is meant than this one.
pub(super) fn files(options: &FilesOptions) -> anyhow::Result<Files> {
    let FilesOptions { tools, own_tools, state_dir } = options.clone();
    let own = own_tools.unwrap_or_else(|| state_dir.join(crate::up::OWN_TOOLS));
    let known = [of_group(&state_dir)?, Some(FilesOptions::LIBRARY.into())];
    let Some(tools) = tools.or_else(|| known.into_iter().flatten().find(|path| path.exists())) else {
        bail!(
            "the state directory `{}` names no tool library that is there, and there is no `{}` here; fix: name the state directory \
             of the group with `--state-dir DIR` (or AUTOACT_STATE_DIR), or the library with `--tools FILE`",
            state_dir.display(),
            FilesOptions::LIBRARY
        )
    };
    Ok(Files { tools, own })
}

/// The library of the group that was started last with this state directory, if there was one.
fn of_group(state_dir: &Path) -> anyhow::Result<Option<PathBuf>> {
    let path = state_dir.join(CONFIG);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read `{}`", path.display())),
    };
    let settings: toml::Table = text.parse().with_context(|| format!("`{}` is not what `autoact up` writes", path.display()))?;
    let tools = settings.get("tool-agent").and_then(|section| section.get("tools")).and_then(toml::Value::as_str);
    Ok(tools.map(PathBuf::from))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn options(state_dir: &Path) -> FilesOptions {
        FilesOptions { tools: None, own_tools: None, state_dir: state_dir.to_owned() }
    }

    #[test]
    fn the_group_of_the_state_directory_says_which_files() {
        let dir = tempfile::tempdir().unwrap();
        let (library, own) = (dir.path().join("other.toml"), dir.path().join(crate::up::OWN_TOOLS));
        std::fs::write(dir.path().join(CONFIG), format!("[tool-agent]\ntools = \"{}\"\n", library.display())).unwrap();
        assert!(files(&options(dir.path())).is_err(), "it is gone");
        std::fs::write(&library, "").unwrap();
        assert_eq!(files(&options(dir.path())).unwrap(), Files { tools: library, own });
        // what is said goes before it
        let said = FilesOptions { tools: Some("/c.toml".into()), own_tools: Some("/d.toml".into()), ..options(dir.path()) };
        assert_eq!(files(&said).unwrap(), Files { tools: "/c.toml".into(), own: "/d.toml".into() });
        std::fs::write(dir.path().join(CONFIG), "[tool-agent").unwrap();
        assert!(files(&options(dir.path())).is_err());
    }

    #[test]
    fn where_no_group_was_the_library_has_to_be_named() {
        let dir = tempfile::tempdir().unwrap();
        // tests run in the crate's directory, where there is no library
        let error = files(&options(dir.path())).unwrap_err().to_string();
        assert!(error.contains("--state-dir") && error.contains("--tools"), "{error}");
        let said = FilesOptions { tools: Some("/c.toml".into()), ..options(dir.path()) };
        assert_eq!(files(&said).unwrap(), Files { tools: "/c.toml".into(), own: dir.path().join(crate::up::OWN_TOOLS) });
    }
}
