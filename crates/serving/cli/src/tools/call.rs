//! `autoact tools call`: runs a tool as the group would.

use std::time::{SystemTime, UNIX_EPOCH};

use autoact_wire::{agents_v1, v1};
use serde_json::json;

use crate::args::CallOptions;
use crate::client::{self, Service};
use crate::exit;
use crate::out;

pub(crate) async fn run(options: &CallOptions, json: bool) -> anyhow::Result<u8> {
    let mut client = client::tool_agent(&options.tool_agent)?;
    // tools with an effect run once for a task: each call of a person is one of its own
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let request = agents_v1::ExecuteRequest {
        tenant: options.tenant.to_string(),
        task_id: format!("cli-{}-{now}", std::process::id()),
        action: Some(v1::Action { tool: options.name.clone(), params: options.input.clone() }),
        ..agents_v1::ExecuteRequest::default()
    };
    let response = match client.execute(request).await {
        Ok(response) => response.into_inner(),
        Err(status) => return Err(client::explain(status, Service::ToolAgent, &options.tool_agent).await),
    };
    if json {
        let artifacts: Vec<_> =
            response.artifacts.iter().map(|artifact| json!({"name": artifact.name, "bytes": artifact.data.len()})).collect();
        out::line(json!({
            "observation": response.observation,
            "is_error": response.is_error,
            "truncated": response.truncated,
            "artifacts": artifacts,
        }))?;
    } else {
        out::line(&response.observation)?;
    }
    Ok(if response.is_error { exit::FAILED } else { exit::OK })
}
