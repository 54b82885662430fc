//! `autoact up`: nats-server and the five services as processes on this machine.

mod group;
mod layout;
pub(crate) mod model;
pub(crate) mod patience;

use std::time::Duration;

use autoact_wire::v1;

use crate::args::{DownOptions, UpOptions};
use crate::ask::{self, Show};
use crate::exit;
use crate::out;

pub(crate) use group::{Group, OWN_TOOLS, free_base};

/// What the demonstration asks: two hops through the atlas.
const DEMO_QUESTION: &str = "What is the capital of the country where the Loire flows?";

/// Starts the group, demonstrates it if asked, and stays until Ctrl-C or until a process ends.
pub(crate) async fn run(options: UpOptions) -> anyhow::Result<u8> {
    // Ctrl-C while starting has to stop what already runs
    let mut group = tokio::select! {
        group = Group::start(&options.group, &|line| out::note(line)) => group?,
        _ = stop_signal() => return Ok(exit::INTERRUPTED),
    };
    let result = tokio::select! {
        code = serve(&options, &mut group) => code,
        _ = stop_signal() => Ok(exit::OK),
    };
    out::note("stopping …");
    let in_a_hurry = tokio::select! {
        () = group.stop() => false,
        _ = stop_signal() => true,
    };
    if in_a_hurry {
        out::note("ending at once");
        group.kill().await;
    }
    result
}

async fn serve(options: &UpOptions, group: &mut Group) -> anyhow::Result<u8> {
    if options.demo {
        let question = options.question.clone().unwrap_or_else(|| DEMO_QUESTION.to_owned());
        out::line("")?;
        let task = v1::SubmitTaskRequest { question, ..v1::SubmitTaskRequest::default() };
        let code = ask::ask(&group.gateway(), task, Show::Lines, Duration::ZERO).await?;
        if options.once {
            return Ok(code);
        }
    }
    match out::line(group.instructions()) {
        // nobody reads, and the group is there all the same
        Err(error) if error.is_closed() => {}
        written => written?,
    }
    group.watch().await?;
    Ok(exit::FAILED)
}

/// SIGINT or SIGTERM.
pub(crate) async fn stop_signal() {
    let terminate = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => {
                signal.recv().await;
            }
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminate => {}
    }
}

/// Stops the group that another `autoact up` holds.
pub(crate) async fn down(options: &DownOptions) -> anyhow::Result<u8> {
    let Some(holder) = layout::holder(&options.state_dir)? else {
        out::line(format_args!("nothing runs in {}", options.state_dir.display()))?;
        return Ok(exit::OK);
    };
    layout::terminate(holder)?;
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    let mut interval = tokio::time::interval(Duration::from_millis(50));
    while layout::holder(&options.state_dir)?.is_some() {
        anyhow::ensure!(tokio::time::Instant::now() < deadline, "process {holder} does not end; fix: kill {holder}");
        interval.tick().await;
    }
    out::line("stopped")?;
    Ok(exit::OK)
}
