//! Who may do what on the bus. Plain data: the server's configuration, `autoact nats users` and the
//! table in docs/security.md say the same.
//!
//! `$JS.API.…` are requests to JetStream, `$JS.ACK.…` say what became of a message, `$JS.FC.…` keep
//! a consumer going. Everybody listens to its own inbox beside what is listed. NATS has no wildcard
//! for a part of a name: where streams are made for each tenant (`OBJ_AUTOACT_ARTIFACTS_<tenant>`),
//! `*` stands for all streams, and `never` takes others out again. nats-server 2.10 does not find
//! `a.*` for `a.b` where `a.b.>` is in the same list: such pairs are for different requests only.

/// A user and its permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    /// Its name, which is the service's.
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// Subjects to which it may publish.
    pub publish: &'static [&'static str],
    /// Those among them to which it may not.
    pub never: &'static [&'static str],
    /// Subjects to which it may listen, beside its own inbox.
    pub subscribe: &'static [&'static str],
}

/// The user of people and jobs with the `autoact` command.
pub const OPERATOR: &str = "autoact";

/// Where the adapter version in service is announced.
pub(crate) const ANNOUNCEMENTS: &str = "$KV.AUTOACT_ADAPTERS.current";

/// All users. memory has none: it does not use the bus.
pub const USERS: [User; 7] = [
    User {
        name: "gateway",
        about: "gateways: make the streams, write trajectories, take and give tasks, remove what has expired",
        publish: &[
            "autoact.*.traj.*",
            "autoact.*.index.*",
            "autoact.*.queue.*",
            "autoact.*.outbox.*.*",
            "autoact.*.receipt.*",
            "autoact.*.words.*",
            "autoact.*.cancel.*",
            "$KV.AUTOACT_TOOLS.>",
            // artifacts: chunks and descriptions
            "$O.*.C.>",
            "$O.*.M.>",
            "$JS.API.INFO",
            "$JS.API.STREAM.INFO.*",
            "$JS.API.STREAM.CREATE.*",
            // streams of releases that let the server drop messages
            "$JS.API.STREAM.UPDATE.AUTOACT_TRAJECTORIES",
            "$JS.API.STREAM.UPDATE.AUTOACT_TASK_INDEX",
            "$JS.API.STREAM.MSG.GET.*",
            "$JS.API.DIRECT.GET.>",
            "$JS.API.STREAM.PURGE.*",
            "$JS.API.CONSUMER.CREATE.AUTOACT_QUEUE.>",
            "$JS.API.CONSUMER.CREATE.AUTOACT_OUTBOX.>",
            // reading an artifact, with a consumer that has no name
            "$JS.API.CONSUMER.CREATE.*",
            "$JS.API.CONSUMER.NAMES.AUTOACT_QUEUE",
            "$JS.API.CONSUMER.MSG.NEXT.AUTOACT_QUEUE.*",
            "$JS.API.CONSUMER.MSG.NEXT.AUTOACT_OUTBOX.*",
            "$JS.ACK.AUTOACT_QUEUE.>",
            "$JS.ACK.AUTOACT_OUTBOX.>",
            "$JS.FC.>",
        ],
        never: &[
            "$JS.API.STREAM.CREATE.KV_AUTOACT_ADAPTERS",
            "$JS.API.STREAM.PURGE.AUTOACT_QUEUE",
            "$JS.API.STREAM.PURGE.AUTOACT_OUTBOX",
            "$JS.API.STREAM.PURGE.KV_AUTOACT_TOOLS",
            "$JS.API.STREAM.PURGE.KV_AUTOACT_ADAPTERS",
            "$JS.API.CONSUMER.CREATE.AUTOACT_TRAJECTORIES",
            "$JS.API.CONSUMER.CREATE.AUTOACT_TASK_INDEX",
            "$JS.API.CONSUMER.CREATE.AUTOACT_QUEUE",
            "$JS.API.CONSUMER.CREATE.AUTOACT_OUTBOX",
            "$JS.API.CONSUMER.CREATE.AUTOACT_RECEIPTS",
            "$JS.API.CONSUMER.CREATE.KV_AUTOACT_TOOLS",
            "$JS.API.CONSUMER.CREATE.KV_AUTOACT_ADAPTERS",
        ],
        subscribe: &["autoact.*.events.*", "autoact.*.words.*", "autoact.*.cancel.*"],
    },
    User {
        name: "tool-agent",
        about: "tool-agents: create and read receipts",
        publish: &["autoact.*.receipt.*", "$JS.API.DIRECT.GET.AUTOACT_RECEIPTS"],
        never: &[],
        subscribe: &[],
    },
    User {
        name: "plan-agent",
        about: "plan-agents that follow an adapter registry: hear announcements",
        publish: &[],
        never: &[],
        subscribe: &[ANNOUNCEMENTS],
    },
    User {
        name: "reflect-agent",
        about: "reflect-agents that follow an adapter registry: hear announcements",
        publish: &[],
        never: &[],
        subscribe: &[ANNOUNCEMENTS],
    },
    User {
        name: "announcer",
        about: "`autoact learn` and `autoact adapters promote`: announce adapter versions",
        publish: &[
            ANNOUNCEMENTS,
            "$JS.API.INFO",
            "$JS.API.STREAM.INFO.KV_AUTOACT_ADAPTERS",
            "$JS.API.STREAM.CREATE.KV_AUTOACT_ADAPTERS",
            "$JS.API.DIRECT.GET.KV_AUTOACT_ADAPTERS.>",
        ],
        never: &[],
        subscribe: &[],
    },
    User {
        name: "auditor",
        about: "jobs with `autoact audit` and `autoact backup`: read everything, store nothing",
        publish: &[
            "$JS.API.STREAM.INFO.*",
            "$JS.API.STREAM.NAMES",
            "$JS.API.STREAM.MSG.GET.*",
            "$JS.API.DIRECT.GET.>",
            // consumers that have no name
            "$JS.API.CONSUMER.CREATE.*",
            "$JS.API.CONSUMER.MSG.NEXT.*.*",
            "$JS.FC.>",
        ],
        // reading there takes from the gateways
        never: &[
            "$JS.API.CONSUMER.CREATE.AUTOACT_QUEUE",
            "$JS.API.CONSUMER.CREATE.AUTOACT_OUTBOX",
            "$JS.API.CONSUMER.MSG.NEXT.AUTOACT_QUEUE.*",
            "$JS.API.CONSUMER.MSG.NEXT.AUTOACT_OUTBOX.*",
        ],
        subscribe: &[],
    },
    User {
        name: OPERATOR,
        about: "people with `autoact restore`, `purge`, `migrate` and `nats stream`: everything on autoact's subjects and streams",
        publish: &["autoact.>", "$KV.>", "$O.>", "$JS.API.>", "$JS.ACK.>", "$JS.FC.>"],
        never: &[],
        // `_INBOX` is what the `nats` command listens to; no other user's answers go there
        subscribe: &["autoact.>", "$KV.>", "$O.>", "_INBOX.>"],
    },
];

/// The user with this name.
pub fn user(name: &str) -> Option<&'static User> {
    USERS.iter().find(|user| user.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_different_and_subjects_are_subjects() {
        let names: std::collections::BTreeSet<&str> = USERS.iter().map(|user| user.name).collect();
        assert_eq!(names.len(), USERS.len());
        for user in &USERS {
            for subject in user.publish.iter().chain(user.never).chain(user.subscribe) {
                let tokens: Vec<&str> = subject.split('.').collect();
                let valid = |(at, token): (usize, &&str)| match *token {
                    "" => false,
                    ">" => at + 1 == tokens.len(),
                    token => !token.contains([' ', '"', '\\']) && (token == "*" || !token.contains('*')),
                };
                assert!(tokens.iter().enumerate().all(valid), "{}: {subject}", user.name);
            }
        }
    }

    #[test]
    fn a_tool_agent_may_create_and_read_receipts_and_nothing_else() {
        let agent = user("tool-agent").unwrap();
        assert_eq!(agent.publish, ["autoact.*.receipt.*", "$JS.API.DIRECT.GET.AUTOACT_RECEIPTS"]);
        assert_eq!(agent.subscribe, [""; 0]);
    }

    #[test]
    fn the_documents_say_who_may_do_what() {
        let docs = include_str!("../../../../../docs/security.md");
        for User { name, about, publish, never, subscribe } in &USERS {
            let cell = |subjects: &[&str]| subjects.iter().map(|subject| format!("`{subject}`")).collect::<Vec<_>>().join(" ");
            let row = format!("| `{name}` | {about} | {} | {} | {} |", cell(publish), cell(never), cell(subscribe));
            assert!(docs.lines().any(|line| line == row), "docs/security.md has to have the line\n{row}");
        }
    }
}
