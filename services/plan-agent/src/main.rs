//! The plan-agent process.

use std::process::ExitCode;

fn main() -> ExitCode {
    autoact_service::main::<plan_agent::PlanAgentService>()
}
