//! What nats-server reads: the users with their permissions, and, where they are wanted, TLS and
//! the other servers of a cluster.

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::users::table::USERS;
use crate::users::{PublicKey, inbox_prefix};

/// What the configuration is to say beside the users.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerConfig {
    /// Put the users into an account of this name, for a server that others use too. Without it
    /// they are in the server's global account, which is where streams are that were made without
    /// logins.
    pub account: Option<String>,
    /// Speak TLS alone: the authority, the server's certificate, and its key. Clients have to show a
    /// certificate of the same authority, and so have the other servers of a cluster.
    pub tls: Option<(PathBuf, PathBuf, PathBuf)>,
    /// The servers of a cluster.
    pub routes: Option<Routes>,
}

/// The connections between the servers of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routes {
    /// Their hosts, this one included; `HOST:PORT` where the port is another than 6222. With TLS
    /// these are names that the servers' certificates have.
    pub hosts: Vec<String>,
    /// What they show each other.
    pub password: String,
}

/// The configuration, for a file of its own that the server's configuration includes. `keys`: the
/// public key of each user. With routes it holds a secret.
pub fn server_config(keys: &[PublicKey], wanted: &ServerConfig) -> String {
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
        let Some(PublicKey { key, inbox, .. }) = keys.iter().find(|known| known.user == user.name) else { continue };
        // of a key that was replaced, and of one whose file does not say what was before it
        let mut inboxes = vec![format!("{}.>", inbox_prefix(inbox)), format!("{}.>", inbox_prefix(key))];
        inboxes.dedup();
        let listens: Vec<&str> = user.subscribe.iter().copied().chain(inboxes.iter().map(String::as_str)).collect();
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
    if let Some(files) = &wanted.tls {
        text.push_str("# clients show a certificate of this authority\n");
        tls(&mut text, "", files);
    }
    if let Some(Routes { hosts, password }) = &wanted.routes {
        let _ = write!(
            text,
            "cluster {{\n  name: autoact\n  listen: \"0.0.0.0:6222\"\n  # clients know the servers by their own addresses\n  no_advertise: true\n  authorization {{ user: autoact, password: {} }}\n  routes: [\n",
            quoted(password)
        );
        for host in hosts {
            let port = if host.contains(':') { "" } else { ":6222" };
            let _ = writeln!(text, "    {}", quoted(&format!("nats-route://autoact:{password}@{host}{port}")));
        }
        text.push_str("  ]\n");
        if let Some(files) = &wanted.tls {
            text.push_str("  # and so do the other servers, whichever of the two calls\n");
            tls(&mut text, "  ", files);
        }
        text.push_str("}\n");
    }
    text
}

/// TLS alone, with certificates of one authority on both sides.
fn tls(text: &mut String, indent: &str, (ca, cert, key): &(PathBuf, PathBuf, PathBuf)) {
    let _ = writeln!(text, "{indent}tls {{");
    for (name, path) in [("ca_file", ca), ("cert_file", cert), ("key_file", key)] {
        let _ = writeln!(text, "{indent}  {name}: {}", quoted(&path.display().to_string()));
    }
    let _ = writeln!(text, "{indent}  verify: true\n{indent}  timeout: 5\n{indent}}}");
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

    fn keys() -> Vec<PublicKey> {
        let of =
            |user: &crate::users::User| PublicKey { user: user.name, key: format!("U{}", user.name), inbox: format!("U{}", user.name) };
        USERS.iter().map(of).collect()
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
        let wanted = ServerConfig { account: Some("A\"B".into()), tls: Some(files), routes: Some(routes) };
        let text = server_config(&keys(), &wanted);
        assert_eq!(text.matches("verify: true").count(), 2, "of clients, and of servers");
        assert_eq!(server_config(&keys(), &ServerConfig { tls: None, ..wanted }).matches("tls {").count(), 0);
        for part in ["\"A\\\"B\" {", "jetstream: enabled", "verify: true", "ca_file: \"ca.pem\"", "\"nats-route://autoact:pw@n-1.n:6222\""]
        {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }
}
