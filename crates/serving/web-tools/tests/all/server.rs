//! A web server on a free port, a resolver with written answers, and libraries of tools for both.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use autoact_http_tools::{HttpClient, HttpClientOptions, Resolve, Resolving};
use autoact_tools::{Corpus, Kinds, Observation, Page, Preset, Tool, ToolLibrary, ToolSet};
use autoact_trajectory::{Action, Effect, ToolSpec, Trajectory};
use axum::Router;
use axum::body::Body;
use axum::http::{Response, Uri};
use serde_json::Value;
use tokio::runtime::Runtime;

type Answer = dyn Fn(&Uri) -> Response<Body> + Send + Sync;

/// A server that answers with what a function says, on threads that may wait, and keeps what was
/// asked for.
pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
    _runtime: Runtime,
}

impl Site {
    pub(crate) fn start(answer: impl Fn(&Uri) -> Response<Body> + Send + Sync + 'static) -> Site {
        let runtime = runtime();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let (kept, answer): (_, Arc<Answer>) = (Arc::clone(&seen), Arc::new(answer));
        let router = Router::new().fallback(move |uri: Uri| {
            kept.lock().unwrap().push(uri.to_string());
            let answer = Arc::clone(&answer);
            async move { tokio::task::spawn_blocking(move || answer(&uri)).await.unwrap() }
        });
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(async move { axum::serve(listener, router).await });
        Site { address, seen, _runtime: runtime }
    }

    /// A site of written pages; others are not found.
    pub(crate) fn of(pages: Vec<(&'static str, &'static str, Vec<u8>)>) -> Site {
        Site::start(move |uri| match pages.iter().find(|(path, ..)| *path == uri.path()) {
            Some((_, media, body)) => ok(media, body.clone()),
            None => status(404),
        })
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// The paths and queries that were asked for.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

pub(crate) fn ok(media: &str, body: impl Into<Body>) -> Response<Body> {
    let response = Response::builder();
    let response = if media.is_empty() { response } else { response.header("content-type", media) };
    response.body(body.into()).unwrap()
}

pub(crate) fn html(body: &str) -> Response<Body> {
    ok("text/html; charset=utf-8", body.to_owned())
}

pub(crate) fn json(value: &Value) -> Response<Body> {
    ok("application/json", value.to_string())
}

pub(crate) fn status(status: u16) -> Response<Body> {
    Response::builder().status(status).header("content-type", "text/plain").body(Body::from("no")).unwrap()
}

pub(crate) fn redirect(to: &str) -> Response<Body> {
    Response::builder().status(302).header("location", to).body(Body::empty()).unwrap()
}

/// The value of a key of a query, decoded.
pub(crate) fn parameter(uri: &Uri, key: &str) -> Option<String> {
    let url = url::Url::parse(&format!("http://x{uri}")).unwrap();
    url.query_pairs().find(|(name, _)| name == key).map(|(_, value)| value.into_owned())
}

/// Written answers by host: the first is that of the first question. Names without one have none.
#[derive(Default)]
pub(crate) struct Names {
    answers: Mutex<HashMap<String, Vec<IpAddr>>>,
}

impl Names {
    pub(crate) fn set(self, host: &str, answers: &[&str]) -> Names {
        self.answers.lock().unwrap().insert(host.to_owned(), answers.iter().map(|ip| ip.parse().unwrap()).collect());
        self
    }
}

impl Resolve for Names {
    fn resolve<'a>(&'a self, host: &'a str) -> Resolving<'a> {
        let mut answers = self.answers.lock().unwrap();
        let found = match answers.get_mut(host) {
            Some(all) if all.len() > 1 => Ok(vec![all.remove(0)]),
            Some(all) => Ok(all.clone()),
            None => Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        Box::pin(async move { found })
    }
}

/// A runtime with a client, and the directory of a library.
pub(crate) struct World {
    runtime: Runtime,
    client: HttpClient,
    pub(crate) directory: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> World {
        World::with(Names::default())
    }

    pub(crate) fn with(names: Names) -> World {
        let runtime = runtime();
        let options =
            HttpClientOptions { resolver: Arc::new(names), connect_timeout: Duration::from_secs(2), ..HttpClientOptions::default() };
        let client = HttpClient::new(runtime.handle().clone(), options).unwrap();
        World { runtime, client, directory: tempfile::tempdir().unwrap() }
    }

    /// A library with one tool: `Tool` with this `run`, and what else the entry says.
    pub(crate) fn try_library(&self, run: &str, more: &str) -> Result<ToolLibrary, String> {
        let _inside = self.runtime.enter();
        let entries = format!(
            "[[tool]]\nname = \"Tool\"\nrun = {{ {run} }}\n{more}\n[[tool]]\nname = \"Finish\"\ndefinition = \"Ends.\"\n\
             usage = \"Finish[answer]\"\nrun = {{ kind = \"finish\" }}\n"
        );
        let path = self.directory.path().join("tools.toml");
        std::fs::write(&path, entries).unwrap();
        let corpus = Corpus::from_pages(vec![Page { title: "Page".into(), text: "Text.".into() }]).unwrap();
        ToolLibrary::open(&path, None, Arc::new(corpus), &Web(self.client.clone())).map_err(|error| error.to_string())
    }

    pub(crate) fn library(&self, run: &str) -> ToolLibrary {
        self.try_library(run, "").unwrap()
    }

    /// A tool that reads pages of these hosts, whatever their addresses.
    pub(crate) fn browser(&self, hosts: &[&str]) -> ToolLibrary {
        self.library(&format!("kind = \"browse_website\", sandbox = false, hosts = {hosts:?}, allow_private = true"))
    }
}

/// What a call returned.
pub(crate) fn call(library: &ToolLibrary, arguments: &Value) -> Observation {
    let params = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
    library.execute(&Action { tool: "Tool".into(), params }, &Trajectory::default())
}

pub(crate) fn browse(library: &ToolLibrary, url: &str, question: &str) -> Observation {
    call(library, &serde_json::json!({ "url": url, "question": question }))
}

/// The kinds of this crate, as tool-agent has them.
struct Web(HttpClient);

impl Kinds for Web {
    fn kinds(&self) -> &'static [&'static str] {
        &["browse_website", "browse_wiki", "web_search", "hybrid_search", "weather"]
    }

    fn preset(&self, kind: &str) -> Option<&'static Preset> {
        autoact_web_tools::preset(kind)
    }

    fn effect(&self, _: &str, _: &toml::Table) -> Option<Effect> {
        None
    }

    fn tool(&self, kind: &str, run: toml::Table, spec: ToolSpec, base: Option<&Path>) -> Result<Arc<dyn Tool>, Vec<String>> {
        autoact_web_tools::tool(kind, run, spec, base, &self.0)
    }

    fn sections(&self) -> &'static [&'static str] {
        &[]
    }

    fn set(&self, section: &str, _: toml::Table, _: Option<&Path>) -> Result<ToolSet, Vec<String>> {
        Err(vec![section.to_owned()])
    }
}
