//! Which agent a command line means.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// One of the three.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agent {
    Plan,
    Tool,
    Reflect,
}

/// The agent, and its own command line, program name included.
pub(crate) fn which(args: impl IntoIterator<Item = OsString>) -> Option<(Agent, Vec<OsString>)> {
    let mut args: Vec<OsString> = args.into_iter().collect();
    let called = Path::new(args.first()?).file_name()?;
    if let Some(agent) = named(called) {
        return Some((agent, args));
    }
    let agent = named(args.get(1)?)?;
    args.remove(0);
    Some((agent, args))
}

fn named(name: &OsStr) -> Option<Agent> {
    match name.to_str()? {
        "plan-agent" => Some(Agent::Plan),
        "tool-agent" => Some(Agent::Tool),
        "reflect-agent" => Some(Agent::Reflect),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(args: &[&str]) -> Option<(Agent, Vec<OsString>)> {
        which(args.iter().map(OsString::from))
    }

    #[test]
    fn the_name_it_is_called_by_comes_first() {
        let (agent, args) = of(&["/usr/local/bin/plan-agent", "--help"]).unwrap();
        assert_eq!((agent, args.len()), (Agent::Plan, 2));
        let (agent, args) = of(&["reflect-agent", "tool-agent"]).unwrap();
        assert_eq!((agent, args.len()), (Agent::Reflect, 2));
    }

    #[test]
    fn the_first_argument_is_next() {
        let (agent, args) = of(&["target/release/agents", "tool-agent", "--help"]).unwrap();
        assert_eq!((agent, args), (Agent::Tool, vec!["tool-agent".into(), "--help".into()]));
    }

    #[test]
    fn nothing_else_means_an_agent() {
        for args in [&[][..], &["agents"], &["agents", "--help"], &["agents", "memory"], &["agents", "--listen", "plan-agent"]] {
            assert_eq!(of(args), None, "{args:?}");
        }
    }
}
