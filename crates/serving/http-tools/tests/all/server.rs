//! A small HTTP server on a free port, a resolver with written answers, and tools for both.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use autoact_http_tools::{
    Argument, BodyForm, HttpClient, HttpClientOptions, HttpFailure, HttpTool, Method, Operation, OperationError, Place, Resolve, Resolving,
    UrlTemplate,
};
use autoact_tools::{Corpus, Page};
use autoact_trajectory::{ParameterSchema, ToolSpec};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

type Answer = dyn Fn(&str, usize) -> String + Send + Sync;

/// A server that answers each request with what a function says, and keeps the requests.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// The function gets the request and how many there were before.
    pub(crate) fn start(answer: impl Fn(&str, usize) -> String + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (kept, answer): (_, Arc<Answer>) = (Arc::clone(&seen), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                std::thread::spawn(move || serve(stream, &kept, &*answer));
            }
        });
        Server { address, seen }
    }

    /// A server that answers with the request itself, as JSON.
    pub(crate) fn echo() -> Server {
        Server::start(|request, _| {
            let (head, body) = request.split_once("\r\n\r\n").unwrap();
            ok("application/json", &json!({ "head": head, "body": body }).to_string())
        })
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, seen: &Mutex<Vec<String>>, answer: &Answer) {
    let Some(request) = read(&mut stream) else { return };
    let before = {
        let mut seen = seen.lock().unwrap();
        seen.push(request.clone());
        seen.len() - 1
    };
    let _ = stream.write_all(answer(&request, before).as_bytes());
}

fn read(stream: &mut TcpStream) -> Option<String> {
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Some(text);
            }
        }
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&chunk[..read]),
        }
    }
}

/// A whole response.
pub(crate) fn response(status: u16, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n{headers}\r\n{body}", body.len())
}

pub(crate) fn ok(media: &str, body: &str) -> String {
    response(200, &format!("content-type: {media}\r\n"), body)
}

pub(crate) fn redirect(status: u16, to: &str) -> String {
    response(status, &format!("location: {to}\r\n"), "")
}

/// Written answers by host: the first is that of the first question. Names without one have none.
#[derive(Default)]
pub(crate) struct Names {
    answers: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    asked: Mutex<Vec<String>>,
}

impl Names {
    pub(crate) fn set(self, host: &str, answers: &[&[&str]]) -> Names {
        let read = answers.iter().map(|all| all.iter().map(|ip| ip.parse().unwrap()).collect()).collect();
        self.answers.lock().unwrap().insert(host.to_owned(), read);
        self
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl Resolve for Names {
    fn resolve<'a>(&'a self, host: &'a str) -> Resolving<'a> {
        self.asked.lock().unwrap().push(host.to_owned());
        let mut answers = self.answers.lock().unwrap();
        let found = match answers.get_mut(host) {
            Some(all) if all.len() > 1 => Ok(all.remove(0)),
            Some(all) => Ok(all[0].clone()),
            None => Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        Box::pin(async move { found })
    }
}

/// A runtime with a client.
pub(crate) struct World {
    _runtime: Runtime,
    pub(crate) client: HttpClient,
    pub(crate) names: Arc<Names>,
}

impl World {
    pub(crate) fn new(names: Names) -> World {
        World::with(names, &[], None)
    }

    pub(crate) fn with(names: Names, variables: &[(&str, &str)], ca_file: Option<std::path::PathBuf>) -> World {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let names = Arc::new(names);
        let variables: BTreeMap<String, String> = variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let resolver: Arc<dyn Resolve> = names.clone();
        let options = HttpClientOptions { variables, ca_file, connect_timeout: Duration::from_secs(2), resolver };
        let client = HttpClient::new(runtime.handle().clone(), options).unwrap();
        World { _runtime: runtime, client, names }
    }

    pub(crate) fn tool(&self, operation: Operation) -> HttpTool {
        self.try_tool(operation).unwrap()
    }

    pub(crate) fn try_tool(&self, operation: Operation) -> Result<HttpTool, OperationError> {
        HttpTool::new(spec(&operation), operation, self.client.clone())
    }

    /// The observation of a GET without arguments.
    pub(crate) fn get(&self, url: &str, allow_private: bool) -> Result<String, HttpFailure> {
        let mut operation = get(url);
        operation.allow_private = allow_private;
        self.tool(operation).call(&serde_json::Map::new(), "")
    }
}

pub(crate) fn get(url: &str) -> Operation {
    Operation::new(Method::Get, UrlTemplate::parse(url).unwrap())
}

/// An operation on a server of this machine, with texts as arguments.
pub(crate) fn operation(method: Method, url: &str, arguments: &[(&str, Place)], body: BodyForm) -> Operation {
    let mut operation = Operation::new(method, UrlTemplate::parse(url).unwrap());
    operation.arguments = arguments.iter().map(|(name, place)| Argument::new(*name, *place)).collect();
    operation.body = body;
    operation.allow_private = true;
    operation
}

/// A spec that takes anything as the operation's arguments.
pub(crate) fn spec(operation: &Operation) -> ToolSpec {
    let properties: serde_json::Map<String, Value> = operation.arguments.iter().map(|one| (one.name.clone(), json!({}))).collect();
    let schema = ParameterSchema::parse(&json!({ "type": "object", "properties": properties }).to_string()).unwrap();
    ToolSpec {
        definition: "Calls.".into(),
        usage: schema.usage("Call"),
        effect: operation.method.effect(),
        timeout: Duration::from_secs(10),
        max_observation_bytes: 4096,
        schema: Some(schema),
        ..ToolSpec::new("Call")
    }
}

/// Arguments from JSON.
pub(crate) fn arguments(value: Value) -> serde_json::Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// A corpus, without which there is no library.
pub(crate) fn corpus() -> Corpus {
    Corpus::from_pages(vec![Page { title: "Page".into(), text: "Text.".into() }]).unwrap()
}
