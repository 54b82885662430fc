//! The program of all three agents: each is a process of its own, and on one machine they share the
//! program's pages as they share the base's weights. Which agent it is says the name it is called
//! by (a link `plan-agent`), or else its first argument.

mod which;

use std::process::ExitCode;

use autoact_service::{EXIT_BAD_CONFIG, main_with};
use which::{Agent, which};

const USAGE: &str = "\
usage: agents plan-agent|tool-agent|reflect-agent [OPTIONS]
       or through a link of one of these names; `agents plan-agent --help` shows its options";

fn main() -> ExitCode {
    // tool-agent confines programs, and what parses pages, by starting itself once more
    autoact_sandbox::run_if_launcher();
    autoact_documents::run_if_reader();
    let Some((agent, args)) = which(std::env::args_os()) else {
        if std::env::args_os().nth(1).is_some_and(|arg| arg == "--help" || arg == "-h") {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        eprintln!("error: which agent?\n{USAGE}");
        return EXIT_BAD_CONFIG.into();
    };
    autoact_allocator::release_unused();
    match agent {
        Agent::Plan => main_with::<plan_agent::PlanAgentService>(args),
        Agent::Tool => main_with::<tool_agent::ToolAgentService>(args),
        Agent::Reflect => main_with::<reflect_agent::ReflectAgentService>(args),
    }
}
