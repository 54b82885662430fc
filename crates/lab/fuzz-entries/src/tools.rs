//! Tools: the arguments that a model writes, and the documents that describe tools of others.

use std::sync::{Arc, LazyLock};

use autoact_http_tools::openapi::{ImportOptions, import};
use autoact_http_tools::{HttpClient, HttpClientOptions, HttpTool};
use autoact_tools::{Corpus, Page, Tool, ToolCall, ToolError, ToolLibrary, ToolOutput};
use autoact_trajectory::{Action, ParameterSchema, ToolSpec, Trajectory};
use tokio::runtime::Runtime;

use crate::parts::parts;

/// What runs requests; one thread, so that a finding is the same every time.
pub(crate) static RUNTIME: LazyLock<Option<Runtime>> =
    LazyLock::new(|| tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().ok());

/// A client of this runtime, without secrets.
pub(crate) fn client() -> Option<HttpClient> {
    let handle = RUNTIME.as_ref()?.handle().clone();
    HttpClient::new(handle, HttpClientOptions::default()).ok()
}

/// The ready-made tools that read nothing from elsewhere.
const LIBRARY: &str = r#"
[[tool]]
name = "Delta"
run = { kind = "time_delta" }
[[tool]]
name = "Calendar"
run = { kind = "calendar", language = "zh" }
[[tool]]
name = "Terms"
run = { kind = "solar_terms" }
[[tool]]
name = "Holidays"
run = { kind = "holidays" }
[[tool]]
name = "Sun"
run = { kind = "sun" }
[[tool]]
name = "Verbalize"
run = { kind = "table_verbalizer" }
"#;

/// The rows of the one table of the database.
const RIVERS: &str = "name,length,mouth\nLoire,1006,Atlantic Ocean\nNile,6650,\n";

/// The bundled tools and the ready-made ones, over two pages and a table.
static TOOLS: LazyLock<Option<ToolLibrary>> = LazyLock::new(|| {
    let page = |title: &str, text: &str| Page { title: title.to_owned(), text: text.to_owned() };
    let pages = vec![page("Loire", "The Loire is a river. It is 1,006 km long."), page("Nantes", "Nantes is a city at the Loire.")];
    let corpus = Arc::new(Corpus::from_pages(pages).ok()?);
    let data = tempfile::tempdir().ok()?.keep();
    std::fs::write(data.join("river.csv"), RIVERS).ok()?;
    let table = |name: &str, kind: &str| format!("[[tool]]\nname = \"{name}\"\nrun = {{ kind = \"{kind}\", tables = {data:?} }}\n");
    let text = [autoact_tools::BUNDLED_TOOLS, LIBRARY, &table("Query", "database"), &table("Graph", "knowledge_graph")].concat();
    ToolLibrary::parse(&text, "the library of the fuzzers", corpus).ok()
});

/// Arguments of a call. Two parts: the schema of a tool from elsewhere, and its arguments. One part:
/// its first byte chooses one of our tools, and the rest are its parameters.
pub fn arguments(data: &[u8]) {
    match parts(data, 2).as_slice() {
        [schema, line] => typed(&String::from_utf8_lossy(schema), &String::from_utf8_lossy(line)),
        _ => {
            let (Some((chosen, params)), Some(library)) = (data.split_first(), TOOLS.as_ref()) else { return };
            let names = library.names();
            let Some(tool) = names.get(usize::from(*chosen) % names.len()) else { return };
            let action = Action { tool: (*tool).to_owned(), params: String::from_utf8_lossy(params).into_owned() };
            run(library, &action);
        }
    }
}

/// Whatever a model writes is an observation, within the tool's bound.
fn run(library: &ToolLibrary, action: &Action) {
    let seen = library.execute(action, &Trajectory::default());
    let most = library.spec(&action.tool).map_or(usize::MAX, |spec| spec.max_observation_bytes);
    assert!(seen.text.len() <= most, "an observation has {} bytes, at most {most} are allowed", seen.text.len());
    assert!(autoact_trajectory::check_sources(&seen.sources).is_ok(), "{:?}", seen.sources);
}

/// A tool that shows that it was called.
struct Echo(ToolSpec);

impl Tool for Echo {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn run(&self, call: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        Ok(call.params.to_owned().into())
    }
}

/// A schema of a server's own making, and what a model writes for it.
fn typed(schema: &str, line: &str) {
    let Ok(schema) = ParameterSchema::parse(schema) else { return };
    let canonical = schema.canonical(line.to_owned());
    assert!(schema.canonical(canonical.clone()) == canonical, "`{canonical}` is not canonical");
    let _ = (schema.arguments(line), schema.line_property(), schema.usage("Echo"));
    let spec =
        ToolSpec { timeout: std::time::Duration::from_secs(1), max_observation_bytes: 4096, schema: Some(schema), ..ToolSpec::new("Echo") };
    let Ok(corpus) = Corpus::from_pages(vec![Page { title: "Page".to_owned(), text: "Text.".to_owned() }]) else { return };
    let Ok(library) = ToolLibrary::bundled(Arc::new(corpus)) else { return };
    let Ok(library) = library.with_tool(Arc::new(Echo(spec))) else { return };
    run(&library, &Action { tool: "Echo".to_owned(), params: line.to_owned() });
}

/// An OpenAPI document, imported; every operation that was imported makes a tool, and takes the
/// example that was made for it.
pub fn openapi(data: &[u8]) {
    static CLIENT: LazyLock<Option<HttpClient>> = LazyLock::new(client);
    let Ok(imported) = import(data, "https://api.example.com/openapi.json", &ImportOptions::default()) else { return };
    let Some(client) = CLIENT.as_ref() else { return };
    for operation in imported.operations {
        let (spec, at) = (operation.spec, operation.at);
        let made = HttpTool::new(spec.clone(), operation.operation, client.clone());
        let Ok(tool) = &made else { panic!("`{at}` was imported and is no tool: {made:?}") };
        for example in &spec.examples {
            if let Some(Ok(arguments)) = spec.schema.as_ref().map(|schema| schema.arguments(example)) {
                let _ = tool.url(&arguments);
            }
        }
    }
}
