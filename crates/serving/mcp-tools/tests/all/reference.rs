//! Servers of the reference implementation, with the interpreter that `AUTOACT_TEST_MCP` names.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use autoact_mcp_tools::{HttpOptions, McpClass, McpFailure, McpServer, McpServerOptions, McpTransport, StdioOptions};
use autoact_sandbox::{Sandbox, Tiers};
use autoact_trajectory::{Arguments, Effect};
use serde_json::{Value, json};

use crate::world::{PATIENCE, World, arguments, program, stdio, until};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/reference.py");

/// The interpreter; none if the tests are to be skipped.
fn python() -> Option<String> {
    let python = std::env::var("AUTOACT_TEST_MCP").ok();
    if python.is_none() {
        println!("skipped: AUTOACT_TEST_MCP is not set to a Python with the package `mcp`");
    }
    python
}

fn over_stdio(python: String) -> McpServerOptions {
    let stdio = StdioOptions { program: python, args: vec![SCRIPT.to_owned()], ..StdioOptions::default() };
    let mut options = McpServerOptions::new("reference", McpTransport::Stdio(stdio));
    (options.limits.connect, options.timeout, options.trusted) = (PATIENCE, PATIENCE, true);
    options
}

/// A server at a port, which ends with this.
struct Web(Child);

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

fn over_http_server(python: &str) -> (Web, McpServerOptions) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new(python);
    command.args([SCRIPT, "http", &port.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
    let web = Web(command.spawn().unwrap());
    until("the server listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    let http = HttpOptions { url: format!("http://127.0.0.1:{port}/mcp"), allow_private: true, ..HttpOptions::default() };
    let mut options = McpServerOptions::new("reference", McpTransport::Http(http));
    (options.timeout, options.trusted) = (PATIENCE, true);
    (web, options)
}

fn works(world: &World, options: McpServerOptions) {
    let server = world.server(options.clone());
    let import = world.import(&server).unwrap();
    assert!(import.server.starts_with("reference"), "{}", import.server);
    println!("protocol {}", import.protocol);
    assert!(import.skipped.is_empty(), "{:?}", import.skipped);
    let spec = |name: &str| &import.tools.iter().find(|tool| tool.remote == name).unwrap().spec;
    assert_eq!(
        (spec("add").effect, spec("weather").effect, spec("fail").effect),
        (Effect::ReadOnly, Effect::Idempotent, Effect::SideEffect)
    );
    assert_eq!(spec("add").definition, "Adds two numbers.");
    let call = |name: &str, given: Value| {
        let tool = import.tools.iter().find(|tool| tool.remote == name).unwrap();
        server.tool(tool).call(&arguments(given))
    };
    assert_eq!(call("add", json!({"a": 1, "b": 2})).unwrap(), "3");
    assert_eq!(call("add", json!({"a": 1})).unwrap(), "2");
    let weather = call("weather", json!({"city": "Köln"})).unwrap();
    let parsed: Value = serde_json::from_str(&weather).unwrap();
    assert!(weather.len() <= 4096 && parsed["city"] == "Köln", "{weather}");
    assert_eq!(call("where", json!({"place": {"name": "Nantes", "inside": {"name": "France"}}})).unwrap(), "Nantes in France");
    let failed = call("fail", json!({"reason": "no paper"})).unwrap_err();
    // version 2 keeps the reason to itself
    assert!(matches!(&failed, McpFailure::Tool { message } if message.contains("Error executing tool fail")), "{failed}");
    assert_eq!(call("picture", json!({})).unwrap(), "(image, image/png, 100 bytes, not shown)");
    assert_eq!(call("slow", json!({"seconds": 0.1})).unwrap(), "waited");
    let wrong = call("add", json!({"a": "many"})).unwrap_err();
    assert_eq!(wrong.class(), McpClass::Refused, "{wrong}");
    // the same definitions have the same digests
    assert_eq!(world.import(&world.server(options)).unwrap().digest, import.digest);
}

fn times_out(world: &World, mut options: McpServerOptions) {
    let server = world.server(options.clone());
    world.import(&server).unwrap();
    options.timeout = Duration::from_secs(3);
    let (_server, tools) = world.tools(options);
    let late = tools["slow"].call(&arguments(json!({"seconds": 100}))).unwrap_err();
    assert_eq!(late, McpFailure::TimedOut { after: Duration::from_secs(3) });
    assert_eq!(tools["add"].call(&arguments(json!({"a": 1}))).unwrap(), "2");
}

fn changes(world: &World, options: McpServerOptions) {
    let (server, tools) = world.tools(options);
    let changes = server.changes();
    assert_eq!(tools["grow"].call(&Arguments::new()).unwrap(), "grown");
    until("the change is noticed", || *changes.borrow() > 0);
    assert_eq!(tools["add"].call(&arguments(json!({"a": 1}))).unwrap(), "2");
    let import = world.import(&server).unwrap();
    assert!(import.tools.iter().any(|tool| tool.remote == "grown"));
}

#[test]
fn over_standard_streams() {
    let Some(python) = python() else { return };
    let world = World::new();
    let options = over_stdio(python);
    works(&world, options.clone());
    times_out(&world, options.clone());
    changes(&world, options.clone());
    let (_server, tools): (McpServer, _) = world.tools(options);
    assert_eq!(tools["variables"].call(&Arguments::new()).unwrap(), "LANG PATH");
    let left = tools["leave"].call(&Arguments::new()).unwrap_err();
    assert!(matches!(&left, McpFailure::MayHaveRun { reason, .. } if reason.starts_with("exit code 7")), "{left}");
    assert_eq!(tools["add"].call(&arguments(json!({"a": 1}))).unwrap(), "2");
}

#[test]
fn over_http() {
    let Some(python) = python() else { return };
    let world = World::new();
    let (web, options) = over_http_server(&python);
    works(&world, options.clone());
    times_out(&world, options.clone());
    changes(&world, options.clone());
    let (_server, tools) = world.tools(options);
    drop(web);
    let gone = tools["add"].call(&arguments(json!({"a": 1}))).unwrap_err();
    assert!(matches!(gone.class(), McpClass::NotSent | McpClass::MayHaveRun), "{gone}");
}

#[test]
fn in_a_sandbox() {
    let Some(python) = python() else { return };
    if let Err(reason) = Tiers::of(program().as_ref()).namespaces {
        return println!("skipped: {reason}");
    }
    let home = |python: &Path| python.parent().and_then(Path::parent).unwrap().to_owned();
    let (own, base) = (home(python.as_ref()), home(&Path::new(&python).canonicalize().unwrap()));
    let open = |path: &Path| std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o5 == 0o5);
    if let Some(closed) = [&own, &base].into_iter().flat_map(|path| path.ancestors()).find(|path| !open(path)) {
        return println!("skipped: a sandbox has another user, who may not read `{}`", closed.display());
    }
    let world = World::new();
    let mut options = over_stdio(python);
    // the interpreter, its packages, and the script; what the system has is there anyway
    let mut read = vec![own, SCRIPT.into()];
    read.extend(Some(base).filter(|base| !base.starts_with("/usr")));
    stdio(&mut options).sandbox = Some(Sandbox { read, launcher: Some(program().into()), ..Sandbox::default() });
    works(&world, options);
}
