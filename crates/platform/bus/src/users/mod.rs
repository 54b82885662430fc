//! NATS users: one for each service, with the subjects that it needs and no others.
//!
//! The table is [`USERS`]. [`server_config`] makes of it what nats-server reads. A user logs in with
//! a key of its own ([`make_keys`]); the server has the public half alone, so that its configuration
//! holds no secret. Answers go to inboxes that begin with the user's first public key, so that no
//! service reads another's.

mod config;
mod keys;
mod table;

pub use config::{Routes, ServerConfig, server_config};
pub use keys::{KeyError, PublicKey, key_file, make_keys, public_keys, replace_key, routes_password};
pub use table::{OPERATOR, USERS, User, user};

pub(crate) use keys::{UserKey, read_key};
pub(crate) use table::ANNOUNCEMENTS;

/// What the inboxes of a login begin with: of its public key, or of its name.
pub(crate) fn inbox_prefix(login: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    format!("_INBOX_{}", login.chars().map(plain).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inbox_is_one_token() {
        assert_eq!(inbox_prefix("tool-agent"), "_INBOX_tool-agent");
        assert_eq!(inbox_prefix("a.b *>"), "_INBOX_a_b___");
    }
}
