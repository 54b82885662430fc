//! `autoact token`: makes tokens for users, and looks at the file that the gateway reads.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use autoact_access::{Entry, NewToken, Principal, Role, Tokens};
use autoact_trajectory::Tenant;
use clap::Subcommand;
use serde_json::{Value, json};

use crate::replace::replace;
use crate::{exit, identity, out};

/// `autoact token`
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token, and show it once: on standard output, alone.
    New {
        /// Whose it is: a name for logs, one in the file.
        #[arg(long)]
        name: String,
        /// The tenant whose tasks, memories and documents its user sees.
        #[arg(long)]
        tenant: Tenant,
        /// What its user may do: `ask`, `operate` or `admin`.
        #[arg(long, default_value = "ask")]
        role: Role,
        /// How long it is valid: `12h`, `30d`. Without it, until it is taken out of the file.
        #[arg(long, value_name = "TIME", value_parser = lifetime)]
        expires: Option<Duration>,
        /// Add the entry to this file (`access.tokens` of the gateway), which is made if it is not
        /// there. Without it, the entry is shown on standard error.
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// The tokens of a file: whose they are, and until when.
    List {
        /// The file (`access.tokens`).
        #[arg(long, value_name = "FILE")]
        file: PathBuf,
        /// A JSON array for programs.
        #[arg(long)]
        json: bool,
    },
    /// Whether a file is valid, and whose the token is that `--token-file` or `AUTOACT_TOKEN` names.
    Check {
        /// The file (`access.tokens`).
        #[arg(long, value_name = "FILE")]
        file: PathBuf,
    },
}

pub(crate) fn run(command: TokenCommand) -> anyhow::Result<u8> {
    match command {
        TokenCommand::New { name, tenant, role, expires, file } => {
            let expires = expires.map(|after| SystemTime::now() + after);
            let principal = Principal { name, tenant, roles: [role].into() };
            let made = NewToken::make(&principal, expires).map_err(|reason| anyhow::anyhow!("cannot make this token: {reason}"))?;
            match &file {
                Some(file) => add(file, &made)?,
                None => {
                    out::note(format_args!("add this to the file that `access.tokens` of the gateway names:\n{}", made.entry.trim_end()))
                }
            }
            out::line(&made.token)?;
        }
        TokenCommand::List { file, json } => list(&Tokens::read(&file)?, json)?,
        TokenCommand::Check { file } => {
            let tokens = Tokens::read(&file)?;
            out::line(format_args!("{}: {} tokens", file.display(), tokens.entries().len()))?;
            if let Some((token, from)) = identity::given()? {
                let principal = tokens.find(&token, SystemTime::now())?;
                let roles = roles(&principal);
                out::line(format_args!("the token {from} is `{}`, of tenant `{}`, with {roles}", principal.name, principal.tenant))?;
            }
        }
    }
    Ok(exit::OK)
}

/// Adds an entry, if the file is valid with it.
fn add(file: &std::path::Path, made: &NewToken) -> anyhow::Result<()> {
    let before = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(anyhow::Error::new(error).context(format!("cannot read `{}`", file.display()))),
    };
    let gap = if before.is_empty() || before.ends_with("\n\n") { "" } else { "\n" };
    let line = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    let text = format!("{before}{line}{gap}{}", made.entry);
    Tokens::parse(&text).map_err(|reason| anyhow::anyhow!("`{}` was not changed: with the new token, {reason}", file.display()))?;
    replace(file, text.as_bytes()).map_err(|error| anyhow::Error::new(error).context(format!("cannot write `{}`", file.display())))
}

fn list(tokens: &Tokens, json: bool) -> anyhow::Result<()> {
    let now = SystemTime::now();
    if json {
        out::line(Value::Array(tokens.entries().iter().map(|entry| row(entry, now)).collect()))?;
        return Ok(());
    }
    for entry in tokens.entries() {
        let Principal { name, tenant, .. } = &entry.principal;
        let until = match entry.expires.map(|expires| (expires <= now, prost_types::Timestamp::from(expires))) {
            None => "does not expire".to_owned(),
            Some((true, at)) => format!("expired {at}"),
            Some((false, at)) => format!("until {at}"),
        };
        out::line(format_args!("{name:<24} {tenant:<16} {:<16} {until}", roles(&entry.principal)))?;
    }
    Ok(())
}

fn row(entry: &Entry, now: SystemTime) -> Value {
    let Principal { name, tenant, roles } = &entry.principal;
    json!({
        "name": name,
        "tenant": tenant.as_str(),
        "roles": roles.iter().map(|role| role.as_str()).collect::<Vec<_>>(),
        "expires": entry.expires.map(|expires| prost_types::Timestamp::from(expires).to_string()),
        "expired": entry.expires.is_some_and(|expires| expires <= now),
    })
}

fn roles(principal: &Principal) -> String {
    principal.roles.iter().map(|role| role.as_str()).collect::<Vec<_>>().join(", ")
}

/// A time that may be in days.
fn lifetime(text: &str) -> Result<Duration, String> {
    let expected = || "expected a time above 0 such as `12h` or `30d`, at most `3650d`".to_owned();
    let time = match text.strip_suffix('d') {
        Some(days) => days.parse::<u64>().ok().and_then(|days| days.checked_mul(24 * 60 * 60)).map(Duration::from_secs),
        None => autoact_base::duration::parse(text).ok(),
    };
    time.filter(|time| !time.is_zero() && *time <= Duration::from_secs(3650 * 24 * 60 * 60)).ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn made(name: &str) -> NewToken {
        let principal = Principal { name: name.into(), tenant: Tenant::default(), roles: [Role::Ask].into() };
        NewToken::make(&principal, None).unwrap()
    }

    #[test]
    fn entries_are_added_and_a_mistake_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("tokens.toml");
        let (ann, bob) = (made("ann"), made("bob"));
        add(&file, &ann).unwrap();
        add(&file, &bob).unwrap();
        let tokens = Tokens::read(&file).unwrap();
        assert_eq!(tokens.find(&ann.token, SystemTime::now()).unwrap().name, "ann");
        assert_eq!(tokens.find(&bob.token, SystemTime::now()).unwrap().name, "bob");
        let before = std::fs::read_to_string(&file).unwrap();
        assert!(add(&file, &made("ann")).is_err(), "the name is taken");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
        std::fs::write(&file, "# a comment without an end of line").unwrap();
        add(&file, &ann).unwrap();
        assert!(std::fs::read_to_string(&file).unwrap().starts_with("# a comment"));
        assert_eq!(Tokens::read(&file).unwrap().entries().len(), 1);
    }

    #[test]
    fn lifetimes_may_be_days() {
        assert_eq!(lifetime("30d"), Ok(Duration::from_secs(30 * 24 * 60 * 60)));
        assert_eq!(lifetime("90m"), Ok(Duration::from_secs(90 * 60)));
        for wrong in ["", "0d", "0s", "-1d", "d", "1.5d", "99999d", "18446744073709551615d", "soon"] {
            assert!(lifetime(wrong).is_err(), "{wrong}");
        }
    }
}
