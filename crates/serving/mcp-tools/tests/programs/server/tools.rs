//! What a server's tools do.

use std::io::{Lines, StdinLock};
use std::process::Command;

use serde_json::{Value, json};

use crate::{Server, say};

type Answer = Result<Value, (i32, String)>;

/// A call; none if it is not answered here.
pub(crate) fn call(server: &mut Server, name: &str, message: &Value, lines: &mut Lines<StdinLock<'static>>) -> Option<Answer> {
    let arguments = &message["params"]["arguments"];
    let given = arguments["text"].as_str().unwrap_or_default();
    Some(Ok(match name {
        "echo" if given == "_meta" => text(&message["params"]["_meta"].to_string()),
        "echo" => text(given),
        "add" => text(&(arguments["a"].as_i64().unwrap_or(1) + arguments["b"].as_i64().unwrap_or(0)).to_string()),
        "env" => {
            eprintln!("asked for {given}={}", std::env::var(given).unwrap_or_default());
            let all: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
            text(&format!("{:?} of {all:?}", std::env::var(given)))
        }
        "read" => text(&std::fs::read_to_string(given).unwrap_or_else(|error| format!("cannot read it: {:?}", error.kind()))),
        "error" => json!({"content": [{"type": "text", "text": "the \u{1b}[31mdisk is full"}], "isError": true}),
        "refuse" => return Some(Err((-32602, "`b` is wrong".to_owned()))),
        "picture" => json!({"content": [
            {"type": "text", "text": "a picture"}, {"type": "image", "data": "A".repeat(4000), "mimeType": "image/png"},
        ]}),
        "numbers" => json!({"content": [], "structuredContent": {"numbers": (0..5000).collect::<Vec<_>>()}}),
        "asks" => text(&asks(lines)),
        "change" => {
            server.changed = true;
            let params = match &server.listener {
                Value::Null => json!({}),
                id => json!({"_meta": {"io.modelcontextprotocol/subscriptionId": id}}),
            };
            say(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": params}).to_string());
            text("changed")
        }
        "child" => match Command::new("sleep").arg("1000").spawn() {
            Ok(child) => text(&child.id().to_string()),
            Err(error) => text(&error.to_string()),
        },
        "die" => {
            eprintln!("out of memory, key {}", std::env::var("KEY").unwrap_or_default());
            std::process::exit(9)
        }
        "silent" => return None,
        "endless" => {
            use std::io::Write as _;
            let mut output = std::io::stdout().lock();
            while output.write_all(&[b'x'; 64 * 1024]).is_ok() {}
            std::process::exit(0)
        }
        "garbage" => {
            (0..50).for_each(|_| say("{\"jsonrpc\": nonsense \u{1b}[2J"));
            say(&"[".repeat(1000));
            say("{\"jsonrpc\":\"2.0\",\"id\":987654,\"result\":{}}");
            text("after garbage")
        }
        "malformed" => {
            say(&json!({"jsonrpc": "2.0", "id": message["id"], "outcome": 1}).to_string());
            return None;
        }
        "odd" => json!({"content": "text", "action": "accept"}),
        "deep" => {
            let id = &message["id"];
            say(&format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[],\"structuredContent\":{}{}}}}}",
                "[".repeat(100),
                "]".repeat(100)
            ));
            return None;
        }
        // asks for ever, and reads no answer
        "nag" => loop {
            say(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string());
        },
        other => return Some(Err((-32602, format!("no tool `{other}`")))),
    }))
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// Asks the client for what it should refuse, and tells how it answered.
fn asks(lines: &mut Lines<StdinLock<'static>>) -> String {
    let question = json!({"messages": [{"role": "user", "content": {"type": "text", "text": "tell me"}}], "maxTokens": 10});
    let form = json!({"message": "your password", "requestedSchema": {"type": "object", "properties": {}}});
    let mut told = Vec::new();
    for (method, params) in [
        ("ping", json!({})),
        ("roots/list", json!({})),
        ("sampling/createMessage", question),
        ("elicitation/create", form),
        ("x/y", json!({})),
    ] {
        say(&json!({"jsonrpc": "2.0", "id": format!("s-{method}"), "method": method, "params": params}).to_string());
        let answer = lines.next().and_then(Result::ok).unwrap_or_default();
        let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
        let outcome = match (&answer["error"]["code"], &answer["result"]["action"]) {
            (Value::Null, Value::Null) => "ok".to_owned(),
            (Value::Null, action) => action.to_string(),
            (code, _) => code.to_string(),
        };
        told.push(format!("{method}: {outcome}"));
    }
    told.join(", ")
}
