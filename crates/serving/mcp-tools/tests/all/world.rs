//! A runtime, a client and servers for one test.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use autoact_http_tools::{HttpClient, HttpClientOptions};
use autoact_mcp_tools::{McpFailure, McpImport, McpServer, McpServerOptions, McpTool, McpTransport, StdioOptions};
use autoact_trajectory::Arguments;
use serde_json::Value;
use tokio::runtime::Runtime;

/// How long something may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// A secret of the tests.
pub(crate) const SECRET: &str = "tops3cret-key";

pub(crate) struct World {
    pub(crate) runtime: Runtime,
    pub(crate) client: HttpClient,
    pub(crate) directory: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> World {
        let runtime = Runtime::new().unwrap();
        let variables: BTreeMap<String, String> = [("THE_KEY".to_owned(), SECRET.to_owned())].into();
        let client = HttpClient::new(runtime.handle().clone(), HttpClientOptions { variables, ..HttpClientOptions::default() }).unwrap();
        World { runtime, client, directory: tempfile::tempdir().unwrap() }
    }

    /// The file that a server notes its starts and calls in.
    pub(crate) fn notes(&self) -> PathBuf {
        self.directory.path().join("notes")
    }

    /// How often the server noted this.
    pub(crate) fn noted(&self, what: &str) -> usize {
        std::fs::read_to_string(self.notes()).unwrap_or_default().lines().filter(|line| *line == what).count()
    }

    /// Options of a test server with this list.
    pub(crate) fn options(&self, list: &str) -> McpServerOptions {
        let args = vec![list.to_owned(), self.notes().display().to_string()];
        let stdio = StdioOptions { program: program(), args, ..StdioOptions::default() };
        let mut options = McpServerOptions::new("test", McpTransport::Stdio(stdio));
        options.timeout = Duration::from_secs(20);
        options
    }

    pub(crate) fn server(&self, options: McpServerOptions) -> McpServer {
        McpServer::new(options, &self.client).unwrap()
    }

    pub(crate) fn import(&self, server: &McpServer) -> Result<McpImport, McpFailure> {
        self.runtime.block_on(server.import())
    }

    /// A server, and its tools by the server's names.
    pub(crate) fn tools(&self, options: McpServerOptions) -> (McpServer, BTreeMap<String, McpTool>) {
        let server = self.server(options);
        let import = self.import(&server).unwrap();
        let tools = import.tools.iter().map(|tool| (tool.remote.clone(), server.tool(tool))).collect();
        (server, tools)
    }
}

/// The program of the test servers.
pub(crate) fn program() -> String {
    env!("CARGO_BIN_EXE_mcp-test-server").to_owned()
}

/// The options of a program, to be changed.
pub(crate) fn stdio(options: &mut McpServerOptions) -> &mut StdioOptions {
    match &mut options.transport {
        McpTransport::Stdio(stdio) => stdio,
        McpTransport::Http(_) => panic!("no program"),
    }
}

pub(crate) fn arguments(value: Value) -> Arguments {
    value.as_object().cloned().unwrap()
}

/// Waits until something is so.
pub(crate) fn until(what: &str, mut is: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

/// Whether a process runs. One that only waits to be reaped does not.
pub(crate) fn runs(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    status.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}
