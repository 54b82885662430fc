//! The tool-agent process.

use std::process::ExitCode;

fn main() -> ExitCode {
    autoact_service::main::<tool_agent::ToolAgentService>()
}
