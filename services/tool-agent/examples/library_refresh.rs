//! What a gateway's look at the library costs, of a tool-agent over gRPC: with all tools, as it was
//! before libraries had digests, and with a digest:
//! `cargo run --release -p tool-agent --example library_refresh -- [TOOLS]`.
#![allow(clippy::unwrap_used)] // a measurement ends where something fails

use std::sync::Arc;
use std::time::{Duration, Instant};

use autoact_agent::testing::ScriptedBackend;
use autoact_agent::{Agent, AgentOptions};
use autoact_config::Common;
use autoact_service::Setup;
use autoact_tools::{Corpus, Knowledge, Page, Tool, ToolCall, ToolError, ToolLibrary, ToolOutput};
use autoact_trajectory::{Effect, ParameterSchema, Role, ToolSpec};
use autoact_wire::agents_v1::tool_agent_client::ToolAgentClient;
use autoact_wire::agents_v1::{ListToolsRequest, ListToolsResponse};
use prost::Message as _;
use serde_json::json;
use tonic::transport::Channel;
use tool_agent::{ToolAgentConfig, Tools};

/// Arguments of a tool, as of an API's operation.
const ARGUMENTS: usize = 8;
/// Looks of each kind; the median is told.
const LOOKS: usize = 21;

struct Nothing(ToolSpec);

impl Tool for Nothing {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn run(&self, _: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        Ok(String::new().into())
    }
}

fn tool(number: usize) -> Arc<dyn Tool> {
    let argument = |at: usize| {
        let description = format!("The {at}th part of what operation {number} is asked for, as the API's own document describes it.");
        (format!("argument_{at}"), json!({"type": "string", "maxLength": 200, "description": description}))
    };
    let properties: serde_json::Map<_, _> = (0..ARGUMENTS).map(argument).collect();
    let schema = json!({"type": "object", "properties": properties, "required": ["argument_0"], "additionalProperties": false});
    Arc::new(Nothing(ToolSpec {
        name: format!("api_operation_{number}"),
        definition: format!("Returns what the API knows of the things of kind {number}, one page at a time."),
        usage: format!("api_operation_{number}{{\"argument_0\": …}}"),
        effect: Effect::ReadOnly,
        timeout: Duration::from_secs(30),
        max_observation_bytes: 4096,
        terminal: None,
        schema: Some(ParameterSchema::parse(&schema.to_string()).unwrap()),
        examples: Vec::new(),
        multiline: false,
        asks: None,
    }))
}

/// One look: the reply's bytes, how long the call took, and how long reading the tools.
async fn look(client: &mut ToolAgentClient<Channel>, known: &str) -> (usize, Duration, Duration, ListToolsResponse) {
    let began = Instant::now();
    let reply = client.list_tools(ListToolsRequest { known: known.into() }).await.unwrap().into_inner();
    let called = began.elapsed();
    let bytes = reply.encoded_len();
    let tools = reply.tools.clone();
    let began = Instant::now();
    let specs: Vec<ToolSpec> = tools.into_iter().map(|tool| tool.try_into().unwrap()).collect();
    assert_eq!(specs.len(), reply.tools.len());
    (bytes, called, began.elapsed(), reply)
}

async fn median(client: &mut ToolAgentClient<Channel>, known: &str) -> (usize, Duration, Duration) {
    let (mut bytes, mut calls, mut readings) = (0, Vec::new(), Vec::new());
    for _ in 0..LOOKS {
        let (size, called, read, _) = look(client, known).await;
        bytes = size;
        calls.push(called);
        readings.push(read);
    }
    calls.sort();
    readings.sort();
    (bytes, calls[LOOKS / 2], readings[LOOKS / 2])
}

#[tokio::main]
async fn main() {
    let tools: usize = std::env::args().nth(1).map_or(1500, |count| count.parse().unwrap());
    let page = Page { title: "Loire".into(), text: "Loire is a river in France.".into() };
    let knowledge = Knowledge::from(Arc::new(Corpus::from_pages(vec![page]).unwrap()));
    let mut library = ToolLibrary::bundled(knowledge).unwrap();
    for number in 0..tools {
        library = library.with_tool(tool(number)).unwrap();
    }
    let mut config = ToolAgentConfig::default();
    config.own.receipts = false;
    let mut setup = Setup::bind("tool-agent", Common::on_ports(0, 0)).await.unwrap();
    let agent = Agent::new(Role::Tool, Arc::new(ScriptedBackend::new(|_| Ok("x\n".to_owned()))), AgentOptions::default());
    autoact_agent::install(Arc::new(agent), Arc::new(Tools::from(Arc::new(library))), &config, &mut setup);
    let running = setup.finish().await.unwrap().start();
    let channel = autoact_wire::client::connect_lazy(&running.addr().to_string()).unwrap();
    let mut client = ToolAgentClient::new(channel).max_decoding_message_size(16 << 20);

    let (_, _, _, reply) = look(&mut client, "").await;
    let (bytes, called, read) = median(&mut client, "").await;
    let (few, asked, _) = median(&mut client, &reply.digest).await;
    println!("a library of {} tools; medians of {LOOKS} looks", reply.tools.len());
    println!("all tools:  {bytes} bytes, {called:.1?}, and {read:.1?} for reading their schemas");
    println!("unchanged:  {few} bytes, {asked:.1?}");
    let ratio = (called + read).as_secs_f64() / asked.as_secs_f64();
    println!("{:.0} times fewer bytes, {ratio:.0} times less time", bytes as f64 / few as f64);
    running.stop().await.unwrap();
}
