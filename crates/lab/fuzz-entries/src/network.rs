//! What servers answer: pages, APIs, MCP servers, model servers. A server on the loopback address
//! says the input, and the clients are those of production, with their checks.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use autoact_http_tools::{HostRule, HttpClient, Visit};
use autoact_mcp_tools::{HttpOptions, McpLimits, McpServer, McpServerOptions, McpTransport};
use autoact_model::{Backend as _, GenerateRequest, Grammar, Scores};
use autoact_openai::{Dialect, Remote, RemoteOptions};
use autoact_trajectory::{ToolSpec, Trajectory};
use url::Url;

use crate::parts::parts;
use crate::tools::{RUNTIME, client};

/// How long a client waits for an answer that does not come.
const PATIENCE: Duration = Duration::from_millis(300);
/// More answers than any seed has.
const MOST: usize = 8;

/// A server that says what it is told to.
struct Server {
    address: SocketAddr,
    answers: Arc<Answers>,
}

/// The answers, in their order. The input that they belong to has a number: a connection of the
/// input before must not take one.
#[derive(Default)]
struct Answers {
    input: AtomicU64,
    left: Mutex<Vec<Vec<u8>>>,
}

impl Server {
    /// Listens, and answers every request with the next answer; with the last one when there are no
    /// more.
    fn start() -> Option<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
        let address = listener.local_addr().ok()?;
        let answers = Arc::new(Answers::default());
        let told = Arc::clone(&answers);
        std::thread::Builder::new()
            .name("server".to_owned())
            .spawn(move || {
                for stream in listener.incoming().flatten() {
                    let _ = answer(stream, &told);
                }
            })
            .ok()?;
        Some(Server { address, answers })
    }

    fn say(&self, answers: Vec<Vec<u8>>) {
        self.answers.input.fetch_add(1, Ordering::SeqCst);
        let mut left = self.answers.left.lock().unwrap_or_else(PoisonError::into_inner);
        *left = answers;
        left.reverse();
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// Reads one request, and writes the next answer.
fn answer(mut stream: TcpStream, answers: &Answers) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let input = answers.input.load(Ordering::SeqCst);
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while !whole(&request) {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            read => request.extend_from_slice(&buffer[..read]),
        }
    }
    let answer = {
        let mut left = answers.left.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.input.load(Ordering::SeqCst) != input {
            return Ok(());
        }
        if left.len() > 1 { left.pop() } else { left.last().cloned() }
    };
    stream.write_all(&answer.unwrap_or_default())?;
    stream.shutdown(Shutdown::Write)?;
    // read what is left, so that closing does not reset the connection before the answer is read
    while stream.read(&mut buffer)? > 0 {}
    Ok(())
}

/// Whether a request has its head and its body.
fn whole(request: &[u8]) -> bool {
    let Some(head) = request.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let text = String::from_utf8_lossy(&request[..head]).to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    request.len() >= head + 4 + length.unwrap_or(0)
}

/// An answer with this media type and body.
fn ok(media: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {media}\r\ncontent-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

struct World {
    server: Server,
    client: HttpClient,
}

impl World {
    fn start() -> Option<World> {
        Some(World { server: Server::start()?, client: client()? })
    }
}

/// A server's whole answer, bytes on the wire, or a page. The first byte chooses.
pub fn http(data: &[u8]) {
    static WORLD: LazyLock<Option<World>> = LazyLock::new(World::start);
    let (Some(world), Some(runtime), Some((kind, rest))) = (WORLD.as_ref(), RUNTIME.as_ref(), data.split_first()) else { return };
    let Ok(host) = HostRule::parse(&world.server.address.to_string()) else { return };
    match kind % 4 {
        0 => {
            world.server.say(vec![rest.to_vec()]);
            let Ok(url) = Url::parse(&world.server.url("/a")) else { return };
            for cut in [false, true] {
                let visit = Visit { hosts: vec![host.clone()], allow_private: true, response_bytes: 1 << 16, cut, accept: "*/*" };
                let _ = runtime.block_on(async { tokio::time::timeout(PATIENCE, visit.get(&world.client, &url)).await });
            }
        }
        1 => browse(world, "browse_website", ok("text/html", rest)),
        2 => browse(world, "browse_website", ok("text/plain; charset=utf-16", rest)),
        _ => browse(world, "browse_website", rest.to_vec()),
    }
}

/// A page as the tool reads it that browses; its site has no `robots.txt`.
fn browse(world: &World, kind: &str, answer: Vec<u8>) {
    let Some(preset) = autoact_web_tools::preset(kind) else { return };
    let host = world.server.address.to_string();
    let run = toml::Table::from_iter([
        ("hosts".to_owned(), toml::Value::Array(vec![toml::Value::String(host)])),
        ("allow_private".to_owned(), toml::Value::Boolean(true)),
        ("ignore_robots".to_owned(), toml::Value::Boolean(true)),
        // a process for each page would be most of what is fuzzed
        ("sandbox".to_owned(), toml::Value::Boolean(false)),
    ]);
    let schema = preset.schema.and_then(|schema| autoact_trajectory::ParameterSchema::parse(schema).ok());
    let spec = ToolSpec {
        definition: preset.definition.to_owned(),
        timeout: Duration::from_secs(2),
        max_observation_bytes: preset.max_observation_bytes.into(),
        schema,
        multiline: preset.multiline,
        ..ToolSpec::new(preset.name)
    };
    let tool = match autoact_web_tools::tool(kind, run, spec, None, &world.client) {
        Ok(tool) => tool,
        Err(mistakes) => panic!("the tool of the fuzzer is none: {mistakes:?}"),
    };
    world.server.say(vec![answer]);
    let line = serde_json::json!({ "url": world.server.url("/a"), "question": "How long is the Loire?" }).to_string();
    let Some(Ok(arguments)) = tool.spec().schema.as_ref().map(|schema| schema.arguments(&line)) else { return };
    let call = autoact_tools::ToolCall {
        tenant: "default",
        key: "key",
        deadline: None,
        params: &line,
        arguments: Some(&arguments),
        trajectory: &Trajectory::default(),
    };
    let _ = tool.run(&call);
}

/// The answers of an MCP server, one after another: each is a JSON-RPC message, or with `!` as its
/// first byte an event stream, or with `?` a whole answer on the wire.
pub fn mcp(data: &[u8]) {
    static WORLD: LazyLock<Option<World>> = LazyLock::new(World::start);
    let (Some(world), Some(runtime)) = (WORLD.as_ref(), RUNTIME.as_ref()) else { return };
    let answers = parts(data, MOST).into_iter().map(|answer| match answer.split_first() {
        Some((b'!', events)) => ok("text/event-stream", events),
        Some((b'?', wire)) => wire.to_vec(),
        _ => ok("application/json", answer),
    });
    world.server.say(answers.collect());
    let http = HttpOptions { url: world.server.url("/mcp"), allow_private: true, ..HttpOptions::default() };
    let limits = McpLimits { connect: PATIENCE, message_bytes: 1 << 16, concurrency: 1 };
    let options = McpServerOptions { timeout: PATIENCE, limits, ..McpServerOptions::new("fuzzed", McpTransport::Http(http)) };
    let Ok(server) = McpServer::new(options, &world.client) else { return };
    runtime.block_on(async {
        let Ok(imported) = server.import().await else { return };
        for tool in &imported.tools {
            let _ = server.tool(tool);
        }
    });
}

/// What a server with an OpenAI interface answers to a completion. The first byte chooses the form
/// of the answer and whether there is a grammar.
pub fn model_server(data: &[u8]) {
    static WORLD: LazyLock<Option<(Server, Remote)>> = LazyLock::new(remote);
    let (Some((server, remote)), Some(runtime)) = (WORLD.as_ref(), RUNTIME.as_ref()) else { return };
    let Some((kind, rest)) = data.split_first() else { return };
    let answer = match kind % 3 {
        0 => ok("text/event-stream", rest),
        1 => ok("application/json", rest),
        _ => rest.to_vec(),
    };
    server.say(vec![answer]);
    let grammar = (kind & 0x10 != 0).then(|| Grammar::Regex(" [a-z ]{1,20}\nAction: (Retrieve|Finish)\n".to_owned()));
    let scores = (kind & 0x20 != 0).then(Scores::default);
    let request = GenerateRequest { grammar, scores, max_tokens: 16, ..GenerateRequest::new("Thought:") };
    runtime.block_on(async {
        if let Ok(stream) = remote.generate(request) {
            let _ = tokio::time::timeout(4 * PATIENCE, stream.finish()).await;
        }
    });
}

/// A server that says the least that a model's server has to, and a client that has found it.
fn remote() -> Option<(Server, Remote)> {
    let server = Server::start()?;
    let listed = br#"{"object":"list","data":[{"id":"m","object":"model","max_model_len":512}]}"#;
    let one = br#"{"choices":[{"index":0,"text":"a","message":{"role":"assistant","content":"a"}}],"usage":{"prompt_tokens":9}}"#;
    server.say(vec![ok("application/json", listed), ok("application/json", one)]);
    let options = RemoteOptions {
        dialect: Dialect::Vllm,
        retries: 0,
        connect_timeout: PATIENCE,
        start_timeout: 10 * PATIENCE,
        timeout: PATIENCE,
        ..RemoteOptions::new(server.url("/v1"), "m")
    };
    match RUNTIME.as_ref()?.block_on(Remote::connect(options)) {
        Ok(remote) => Some((server, remote)),
        Err(error) => panic!("the server of the fuzzer is none: {error}"),
    }
}
