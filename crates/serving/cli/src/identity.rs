//! Who this program is for the gateway and for memory: a token from a file or a variable, never
//! from an argument, which everybody on the machine can read.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use autoact_trajectory::Tenant;
use autoact_wire::client::Bearer;

/// The token itself.
const TOKEN_VARIABLE: &str = "AUTOACT_TOKEN";
/// Where it is.
const TOKEN_FILE_VARIABLE: &str = "AUTOACT_TOKEN_FILE";
/// More than any token has.
const MAX_BYTES: u64 = 64 * 1024;

static GIVEN: OnceLock<Given> = OnceLock::new();

/// What the command line says.
#[derive(Debug, Default)]
struct Given {
    file: Option<PathBuf>,
    tenant: Option<Tenant>,
}

/// A token that cannot be used. It never shows the token.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadToken {
    #[error("cannot read the token in `{}`", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("the token {from} is not valid: expected one line, as `autoact token new` prints it")]
    Invalid { from: String },
}

/// Keeps what the command line says, for every client that is made later.
pub(crate) fn set(file: Option<PathBuf>, tenant: Option<Tenant>) {
    // once, at the start
    let _ = GIVEN.set(Given { file, tenant });
}

/// What every call carries. `--token-file` counts before `AUTOACT_TOKEN`, and that before
/// `AUTOACT_TOKEN_FILE`.
pub(crate) fn bearer() -> Result<Bearer, BadToken> {
    let given = GIVEN.get_or_init(Given::default);
    let bearer = match token(given.file.as_deref(), |name| std::env::var(name).ok())? {
        Some((token, from)) => Bearer::new(&token).map_err(|_| BadToken::Invalid { from })?,
        None => Bearer::default(),
    };
    match &given.tenant {
        Some(tenant) => bearer.acting_for(tenant.as_str()).map_err(|_| BadToken::Invalid { from: String::new() }),
        None => Ok(bearer),
    }
}

/// The token and where it is from, if there is one.
pub(crate) fn given() -> Result<Option<(String, String)>, BadToken> {
    token(GIVEN.get_or_init(Given::default).file.as_deref(), |name| std::env::var(name).ok())
}

fn token(file: Option<&Path>, variable: impl Fn(&str) -> Option<String>) -> Result<Option<(String, String)>, BadToken> {
    let variable = |name| variable(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    if let Some(file) = file {
        return read(file).map(Some);
    }
    if let Some(token) = variable(TOKEN_VARIABLE) {
        return Ok(Some((token, format!("in the variable `{TOKEN_VARIABLE}`"))));
    }
    variable(TOKEN_FILE_VARIABLE).map(|path| read(Path::new(&path))).transpose()
}

fn read(path: &Path) -> Result<(String, String), BadToken> {
    use std::io::Read as _;
    let mut text = String::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text));
    read.map_err(|source| BadToken::Read { path: path.to_owned(), source })?;
    Ok((text.trim().to_owned(), format!("in `{}`", path.display())))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_file_that_is_named_counts_before_variables() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("flag"), "one\n").unwrap();
        std::fs::write(path("variable"), " two ").unwrap();
        let named = path("variable").display().to_string();
        let variables = |name: &str| match name {
            TOKEN_VARIABLE => Some("three".to_owned()),
            _ => Some(named.clone()),
        };
        let found =
            |file: Option<&Path>, variables: &dyn Fn(&str) -> Option<String>| token(file, variables).unwrap().map(|(token, _)| token);
        assert_eq!(found(Some(&path("flag")), &variables).as_deref(), Some("one"));
        assert_eq!(found(None, &variables).as_deref(), Some("three"));
        assert_eq!(found(None, &|name| variables(name).filter(|_| name == TOKEN_FILE_VARIABLE)).as_deref(), Some("two"));
        assert_eq!(found(None, &|_| Some(String::new())), None);
        assert_eq!(found(None, &|_| None), None);
        assert!(matches!(token(Some(&path("gone")), variables), Err(BadToken::Read { .. })));
    }
}
