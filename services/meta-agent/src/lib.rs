//! Learning as a job, for a Kubernetes Job or any other scheduler: the stages of `autoact learn`,
//! configured by flags or the environment, with one JSON line of log for everything that a terminal
//! would show as it moves. The report goes to standard output.
//!
//! A job that is ended (SIGTERM, SIGKILL, a lost node) and started again on the same run directory
//! goes on where it was.

mod logs;

use std::path::PathBuf;
use std::sync::Arc;

use autoact_base::error::chain;
use autoact_learn::{LearnError, LearningPlan, Stage, Stop, learn};
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use crate::logs::Logs;

/// It failed; the last line of the log says why.
pub const FAILED: u8 = 1;
/// The arguments or the task are wrong; starting it again does not help.
pub const USAGE: u8 = 64;
/// It was asked to stop, and goes on when it is started again.
pub const STOPPED: u8 = 130;

/// What to learn.
#[derive(Debug, Clone, Parser)]
#[command(name = "meta-agent", version, about = "Learn a task: three adapters and a report, as a job that goes on where it was")]
pub struct Args {
    /// The task file.
    #[arg(long, env = "AUTOACT_LEARN_TASK")]
    pub task: PathBuf,
    /// The base model, a Hugging Face directory.
    #[arg(long, env = "AUTOACT_LEARN_MODEL", default_value = "models/stem")]
    pub model: PathBuf,
    /// The run directory, on a volume that outlives the pod.
    #[arg(long, env = "AUTOACT_LEARN_RUN")]
    pub run: PathBuf,
    /// An adapter registry to publish to.
    #[arg(long, env = "AUTOACT_LEARN_PUBLISH")]
    pub publish: Option<PathBuf>,
    /// Put the published version in service.
    #[arg(long, env = "AUTOACT_LEARN_PROMOTE", requires = "publish")]
    pub promote: bool,
    /// Small numbers.
    #[arg(long, env = "AUTOACT_LEARN_QUICK")]
    pub quick: bool,
    /// Also the ablations of the paper's table 2.
    #[arg(long, env = "AUTOACT_LEARN_VARIANTS")]
    pub variants: bool,
    /// The last stage.
    #[arg(long, env = "AUTOACT_LEARN_UNTIL", default_value = "report")]
    pub until: Stage,
}

/// Learns; the exit code.
pub fn run(args: &Args) -> u8 {
    let stop = Stop::default();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            logs::line("error", serde_json::json!({ "message": format!("cannot start: {error}") }));
            return FAILED;
        }
    };
    let plan = LearningPlan {
        run: Some(args.run.clone()),
        quick: args.quick,
        variants: args.variants,
        until: args.until,
        publish: args.publish.clone(),
        promote: args.promote,
        ..LearningPlan::new(&args.task, &args.model)
    };
    let asked = stop.clone();
    let result = runtime.block_on(async move {
        let waiting = tokio::spawn(signals(asked));
        let result = tokio::task::spawn_blocking(move || learn(&plan, Arc::new(Logs::default()), stop)).await;
        waiting.abort();
        result
    });
    match result {
        Ok(Ok(report)) => {
            println!("{}", serde_json::to_string(&report).unwrap_or_default());
            0
        }
        Ok(Err(error)) => {
            logs::line("error", serde_json::json!({ "message": chain(&error) }));
            match error {
                LearnError::Stopped { .. } => STOPPED,
                LearnError::Task(_) => USAGE,
                _ => FAILED,
            }
        }
        Err(panic) => {
            logs::line("error", serde_json::json!({ "message": format!("a mistake in the program: {panic}") }));
            FAILED
        }
    }
}

/// The first signal asks to stop, the second ends at once: what was written is whole either way.
async fn signals(stop: Stop) {
    let (Ok(mut term), Ok(mut int)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) else { return };
    loop {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
        if stop.is_raised() {
            std::process::exit(i32::from(STOPPED));
        }
        logs::line("info", serde_json::json!({ "message": "stopping: what has begun is finished first" }));
        stop.raise();
    }
}
