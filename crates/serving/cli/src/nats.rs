//! `autoact nats`: the users of nats-server, their keys and their permissions.

use anyhow::Context as _;
use autoact_bus::{Routes, ServerConfig, USERS, User, make_keys, public_keys, replace_key, routes_password, server_config, user};
use serde_json::json;

use crate::args::{ConfigOptions, NatsCommand};
use crate::{exit, out};

pub(crate) fn run(command: NatsCommand) -> anyhow::Result<u8> {
    match command {
        NatsCommand::Init { dir, force, users } => {
            let named = |name: &String| user(name).with_context(|| format!("there is no user `{name}`; `autoact nats users` shows them"));
            let users: Vec<&User> = users.iter().map(named).collect::<anyhow::Result<_>>()?;
            let mut made = make_keys(&dir, force)?;
            for user in users {
                let path = replace_key(&dir, user)?;
                if !made.contains(&path) {
                    made.push(path);
                }
            }
            for path in made {
                out::line(path.display())?;
            }
            out::note("each service needs its own key as `nats.nkey_file`, and nats-server what `autoact nats config` prints");
        }
        NatsCommand::Config(options) => out::line(config(options)?.trim_end())?,
        NatsCommand::Users { json } => users(json)?,
    }
    Ok(exit::OK)
}

fn config(options: ConfigOptions) -> anyhow::Result<String> {
    let ConfigOptions { dir, account, server_ca, server_cert, server_key, routes: hosts } = options;
    let tls = match (server_ca, server_cert, server_key) {
        (Some(ca), Some(cert), Some(key)) => Some((ca, cert, key)),
        _ => None,
    };
    let routes = if hosts.is_empty() { None } else { Some(Routes { hosts, password: routes_password(&dir)? }) };
    Ok(server_config(&public_keys(&dir)?, &ServerConfig { account, tls, routes }))
}

fn users(as_json: bool) -> anyhow::Result<()> {
    if as_json {
        let each = USERS.iter().map(|User { name, about, publish, never, subscribe }| {
            json!({ "name": name, "about": about, "publish": publish, "never": never, "subscribe": subscribe })
        });
        out::line(serde_json::Value::Array(each.collect()))?;
        return Ok(());
    }
    for User { name, about, publish, never, subscribe } in &USERS {
        out::line(format_args!("{name}: {about}"))?;
        for (what, subjects) in [("publish", publish), ("never", never), ("listen", subscribe)] {
            for subject in *subjects {
                out::line(format_args!("  {what:<8} {subject}"))?;
            }
        }
    }
    out::note("everybody listens to its own inbox, too");
    Ok(())
}
