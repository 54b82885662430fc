//! What is logged: everything that a library may log, at the lowest level.

use std::io;
use std::sync::{Arc, Mutex};

use autoact_http_tools::{Credential, Secret, SecretPlace};
use autoact_mcp_tools::{HttpOptions, McpServerOptions, McpTransport};
use autoact_trajectory::Arguments;
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use crate::http_server::{HttpServer, answer, events, text};
use crate::world::{SECRET, World, arguments, stdio, until};

/// What was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Log;

    fn make_writer(&self) -> Log {
        self.clone()
    }
}

#[test]
fn no_secret_is_logged() {
    let log = Log::default();
    tracing_subscriber::fmt().with_max_level(tracing_subscriber::filter::LevelFilter::TRACE).with_writer(log.clone()).init();
    let world = World::new();
    let mut options = world.options("all");
    stdio(&mut options).secrets.insert("KEY".to_owned(), Secret::Env("THE_KEY".to_owned()));
    let (_server, tools) = world.tools(options);
    assert!(tools["env"].call(&arguments(json!({"text": "KEY"}))).is_ok());
    until("the standard error is logged", || log.text().contains("asked for KEY=***"));
    assert!(tools["die"].call(&Arguments::new()).is_err());

    let leaks = HttpServer::start(|message| match message["params"]["name"].as_str() {
        Some("look") => events(&[json!({"jsonrpc": "2.0", "id": message["id"], "result": text(SECRET)})]),
        Some("change") if message["params"]["arguments"]["text"] == "type" => answer("200 OK", &format!("content-type: {SECRET}\r\n"), ""),
        _ => answer("403 Forbidden", &format!("www-authenticate: Bearer {SECRET}\r\n"), SECRET),
    });
    let credentials = vec![Credential { secret: Secret::Env("THE_KEY".to_owned()), place: SecretPlace::Header("X-Key".to_owned()) }];
    let http = HttpOptions { url: leaks.url(), credentials, allow_private: true, ..HttpOptions::default() };
    let (_server, tools) = world.tools(McpServerOptions::new("web", McpTransport::Http(http)));
    assert_eq!(tools["look"].call(&arguments(json!({"text": "x"}))).unwrap(), "***");
    for given in ["x", "type"] {
        let failure = tools["change"].call(&arguments(json!({"text": given}))).unwrap_err();
        assert!(!failure.to_string().contains(SECRET), "{failure}");
    }

    let logged = log.text();
    assert!(logged.contains("rmcp"), "the protocol's library logs as well");
    if let Some(line) = logged.lines().find(|line| line.contains(SECRET)) {
        panic!("{line}");
    }
}
