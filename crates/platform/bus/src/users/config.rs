//! What nats-server reads: the users with their permissions, and, where they are wanted, TLS and
//! the other servers of a cluster.

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::users::inbox_prefix;
use crate::users::table::USERS;

/// What the configuration is to say beside the users.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerConfig {
    /// Put the users into an account of this name, for a server that others use too. Without it
    /// they are in the server's global account, which is where streams are that were made without
    /// logins.
    pub account: Option<String>,
    /// Speak TLS alone: the authority, the server's certificate, and its key. Clients have to show a
    /// certificate of the same authority.
    pub tls: Option<(PathBuf, PathBuf, PathBuf)>,
    /// The servers of a cluster.
    pub routes: Option<Routes>,
}

/// The connections between the servers of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routes {
    /// Their hosts, this one included.
    pub hosts: Vec<String>,
    /// What they show each other.
    pub password: String,
}

/// The configuration, for a file of its own that the server's configuration includes. `keys`: the
/// public key of each user. With routes it holds a secret.
pub fn server_config(keys: &[(&str, String)], wanted: &ServerConfig) -> String {
    let mut text =
        String::from("# made by `autoact nats config`: who may do what on the bus. Users log in with the private halves of these keys.\n");
    let (open, indent, close) = match &wanted.account {
        Some(account) => {
            let open = format!("accounts {{\n  {} {{\n    jetstream: enabled\n    users: [\n", quoted(account));
            (open, "      ", "    ]\n  }\n}\n")
        }
        None => ("authorization {\n  users: [\n".to_owned(), "    ", "  ]\n}\n"),
    };
    text.push_str(&open);
    for user in &USERS {
        let Some((_, key)) = keys.iter().find(|(name, _)| *name == user.name) else { continue };
        let inbox = format!("{}.>", inbox_prefix(key));
        let listens: Vec<&str> = user.subscribe.iter().copied().chain([inbox.as_str()]).collect();
        let mut line = |depth: usize, what: &str| {
            let _ = writeln!(text, "{indent}{:depth$}{what}", "");
        };
        line(0, &format!("# {}: {}", user.name, user.about));
        line(0, "{");
        line(2, &format!("nkey: {}", quoted(key)));
        line(2, "permissions: {");
        line(4, "publish: {");
        // an empty list of what is allowed would allow everything
        match user.publish {
            [] => line(6, "deny: [\">\"]"),
            allowed => {
                list(&mut line, "allow", allowed);
                if !user.never.is_empty() {
                    list(&mut line, "deny", user.never);
                }
            }
        }
        line(4, "}");
        line(4, "subscribe: {");
        list(&mut line, "allow", &listens);
        line(4, "}");
        line(2, "}");
        line(0, "}");
    }
    text.push_str(close);
    if let Some((ca, cert, key)) = &wanted.tls {
        let path = |path: &PathBuf| quoted(&path.display().to_string());
        let _ = write!(
            text,
            "# clients show a certificate of this authority\ntls {{\n  ca_file: {}\n  cert_file: {}\n  key_file: {}\n  verify: true\n  timeout: 5\n}}\n",
            path(ca),
            path(cert),
            path(key)
        );
    }
    if let Some(Routes { hosts, password }) = &wanted.routes {
        let _ = write!(
            text,
            "cluster {{\n  name: autoact\n  listen: \"0.0.0.0:6222\"\n  # clients know the servers by their own addresses\n  no_advertise: true\n  authorization {{ user: autoact, password: {} }}\n  routes: [\n",
            quoted(password)
        );
        for host in hosts {
            let _ = writeln!(text, "    {}", quoted(&format!("nats-route://autoact:{password}@{host}:6222")));
        }
        text.push_str("  ]\n}\n");
    }
    text
}

fn list(line: &mut impl FnMut(usize, &str), name: &str, subjects: &[&str]) {
    line(6, &format!("{name}: ["));
    for subject in subjects {
        line(8, &quoted(subject));
    }
    line(6, "]");
}

/// A string of the server's configuration.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Vec<(&'static str, String)> {
        USERS.iter().map(|user| (user.name, format!("U{}", user.name))).collect()
    }

    #[test]
    fn every_user_has_its_own_inbox_and_one_that_publishes_nothing_may_publish_nothing() {
        let text = server_config(&keys(), &ServerConfig::default());
        for user in &USERS {
            assert!(text.contains(&format!("nkey: \"U{}\"", user.name)) && text.contains(&format!("\"_INBOX_U{}.>\"", user.name)));
        }
        assert_eq!(text.matches("deny: [\">\"]").count(), 2, "plan-agent and reflect-agent");
        assert!(!text.contains("tls {") && !text.contains("cluster {") && !text.contains("accounts {"));
    }

    #[test]
    fn accounts_tls_and_clusters_are_said_where_they_are_wanted() {
        let files = ("ca.pem".into(), "nats.pem".into(), "nats.key".into());
        let routes = Routes { hosts: vec!["n-0.n".into(), "n-1.n".into()], password: "pw".into() };
        let text = server_config(&keys(), &ServerConfig { account: Some("A\"B".into()), tls: Some(files), routes: Some(routes) });
        for part in ["\"A\\\"B\" {", "jetstream: enabled", "verify: true", "ca_file: \"ca.pem\"", "\"nats-route://autoact:pw@n-1.n:6222\""]
        {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }
}
