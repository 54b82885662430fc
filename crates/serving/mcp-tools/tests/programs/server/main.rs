//! MCP servers for tests, on standard input and output: `mcp-test-server LIST [FILE]`. What it lists
//! is the first argument; each tool does what its name says. A line for each start and each call goes
//! to the file.

mod list;
mod tools;

use std::fs::OpenOptions;
use std::io::{BufRead as _, Write as _};

use serde_json::{Value, json};

/// A running server.
struct Server {
    list: String,
    file: Option<String>,
    /// Whether the tool `change` was called.
    changed: bool,
    /// The request of a client that listens for changes.
    listener: Value,
}

fn main() {
    autoact_sandbox::run_if_launcher();
    let mut args = std::env::args().skip(1);
    let mut server = Server { list: args.next().unwrap_or_default(), file: args.next(), changed: false, listener: Value::Null };
    server.note("start");
    if server.list == "ends" {
        eprintln!("cannot start: {}", std::env::var("KEY").unwrap_or_default());
        std::process::exit(3);
    }
    let input = std::io::stdin();
    let mut lines = input.lock().lines();
    while let Some(Ok(line)) = lines.next() {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        let Some(method) = message["method"].as_str() else { continue };
        let id = message["id"].clone();
        let result = match method {
            "initialize" if server.list == "mute" => continue,
            "initialize" if server.list == "newest" => Err((-32601, "no such method".to_owned())),
            "initialize" => Ok(json!({
                "protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "test\nserver", "version": "1"},
            })),
            "server/discover" if server.list == "newest" => Ok(json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "newest", "version": "1"}, "ttlMs": 0, "cacheScope": "private",
            })),
            "subscriptions/listen" if server.list == "newest" => {
                let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
                let params = json!({"notifications": message["params"]["notifications"], "_meta": meta});
                say(&json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params}).to_string());
                server.note("listener");
                server.listener = id;
                continue;
            }
            "tools/list" => Ok(list::page(&server.list, &message["params"], server.changed)),
            "tools/call" => {
                let name = message["params"]["name"].as_str().unwrap_or_default().to_owned();
                server.note(&name);
                match tools::call(&mut server, &name, &message, &mut lines) {
                    Some(result) => result,
                    None => continue,
                }
            }
            "notifications/cancelled" => {
                server.note("cancelled");
                continue;
            }
            _ if id.is_null() => continue,
            "ping" => Ok(json!({})),
            _ => Err((-32601, "no such method".to_owned())),
        };
        let answer = match result {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err((code, message)) => json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}),
        };
        say(&answer.to_string());
    }
    server.note("end");
}

impl Server {
    fn note(&self, what: &str) {
        let Some(file) = &self.file else { return };
        if let Ok(mut file) = OpenOptions::new().append(true).create(true).open(file) {
            let _ = writeln!(file, "{what}");
        }
    }
}

/// Writes a line. A client that is gone ends the server.
fn say(line: &str) {
    let mut output = std::io::stdout().lock();
    if writeln!(output, "{line}").and_then(|()| output.flush()).is_err() {
        std::process::exit(0);
    }
}
