//! `autoact tools call`: runs a tool as the group would.

use std::time::{SystemTime, UNIX_EPOCH};

use autoact_wire::{agents_v1, v1};
use serde_json::json;

use crate::args::CallOptions;
use crate::client::{self, Service};
use crate::exit;
use crate::out;

/// The call. Tools that need the time are told that of this machine, as a task's context tells it.
fn request(options: &CallOptions, time: SystemTime) -> agents_v1::ExecuteRequest {
    // tools with an effect run once for a task: each call of a person is one of its own
    let id = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let now = options.now.unwrap_or_else(|| time.into());
    let context = v1::TaskContext { now: Some(now), time_zone: options.time_zone.clone(), ..v1::TaskContext::default() };
    agents_v1::ExecuteRequest {
        tenant: options.tenant.to_string(),
        task_id: format!("cli-{}-{id}", std::process::id()),
        action: Some(v1::Action { tool: options.name.clone(), params: options.input.clone() }),
        trajectory: Some(v1::Trajectory { context: Some(context), ..v1::Trajectory::default() }),
        ..agents_v1::ExecuteRequest::default()
    }
}

pub(crate) async fn run(options: &CallOptions, json: bool) -> anyhow::Result<u8> {
    let mut client = client::tool_agent(&options.tool_agent)?;
    let request = request(options, SystemTime::now());
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use autoact_tools::{Caller, ToolLibrary};
    use autoact_trajectory::{Action, Trajectory};
    use clap::Parser as _;

    use super::*;
    use crate::args::{Args, Command, ToolsCommand, ToolsOptions};

    /// 27 July 2026, half past ten in the evening in UTC.
    const NOW: Duration = Duration::from_secs(1_785_191_400);
    const LIBRARY: &str = r#"
[[tool]]
name = "TimeDelta"
run = { kind = "time_delta" }
[[tool]]
name = "Finish"
definition = "Ends."
usage = "Finish[answer]"
run = { kind = "finish" }
"#;

    /// What the tool says of today.
    fn said(flags: &[&str]) -> String {
        let input = r#"{"start_time":"today","end_time":"2026-07-30"}"#;
        let args = Args::try_parse_from([&["autoact", "tools", "call", "TimeDelta", input][..], flags].concat()).unwrap();
        let Command::Tools(ToolsOptions { command: Some(ToolsCommand::Call(options)), .. }) = args.command else {
            panic!("another command")
        };
        let request = request(&options, UNIX_EPOCH + NOW);
        let trajectory = Trajectory::try_from(request.trajectory.unwrap()).unwrap();
        let v1::Action { tool, params } = request.action.unwrap();
        let observation = ToolLibrary::parse(LIBRARY, "test", autoact_tools::Knowledge::new(None, None)).unwrap().execute_as(
            Caller::default(),
            &Action { tool, params },
            &trajectory,
        );
        assert!(!observation.is_error, "{}", observation.text);
        observation.text
    }

    #[test]
    fn today_is_that_of_the_client() {
        assert!(said(&[]).contains("3 days"), "{}", said(&[]));
        // there it is tomorrow already
        assert!(said(&["--time-zone", "Asia/Tokyo"]).contains("2 days"), "{}", said(&["--time-zone", "Asia/Tokyo"]));
        assert!(said(&["--now", "2026-07-20T12:00:00Z"]).contains("10 days"), "{}", said(&["--now", "2026-07-20T12:00:00Z"]));
    }
}
