//! How many files and connections the process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// More than the limits of the doors add up to. Not all that the system allows: programs that the
/// process starts inherit it, and old ones close every number up to it.
const ENOUGH: u64 = 65_536;
/// For files, NATS, other services and whatever else is no caller.
const OTHERS: u64 = 256;

/// Raises what the process asks for to what it may have: systems begin with 1,024.
pub(crate) fn raise() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.unwrap_or(ENOUGH).min(ENOUGH);
    if current.is_none_or(|current| current >= wanted) {
        return;
    }
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }) {
        tracing::warn!(%error, ?current, "cannot raise the limit of open files; fix: raise it where the service is started");
    }
}

/// As many connections as are asked for, and for which there are descriptors.
pub(crate) fn connections(asked: usize) -> usize {
    let most = within(asked, getrlimit(Resource::Nofile).current);
    if most < asked {
        tracing::warn!(asked, most, "the limit of open files allows fewer connections; fix: raise it, or lower `door.max_connections`");
    }
    most
}

fn within(asked: usize, limit: Option<u64>) -> usize {
    let Some(limit) = limit else { return asked };
    let room = limit.saturating_sub(OTHERS).max(limit / 2).max(1);
    asked.min(usize::try_from(room).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_room_for_other_files() {
        assert_eq!(within(4096, Some(65_536)), 4096);
        assert_eq!(within(4096, Some(1024)), 768);
        assert_eq!(within(4096, Some(64)), 32);
        assert_eq!(within(4096, None), 4096);
    }

    #[test]
    fn what_the_system_allows_is_taken() {
        raise();
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        assert!(current.is_none_or(|current| current >= maximum.unwrap_or(ENOUGH).min(ENOUGH)));
    }
}
