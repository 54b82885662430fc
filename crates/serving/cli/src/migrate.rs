//! `autoact migrate`: moves what the release before stored on the bus. Once, while no gateway runs.

use autoact_bus::BusConfig;
use autoact_trajectory::Tenant;
use clap::Args as ClapArgs;

use crate::bus::reach;
use crate::{exit, out};

/// `autoact migrate`
#[derive(Debug, ClapArgs)]
pub(crate) struct MigrateOptions {
    /// The NATS servers.
    #[arg(long, env = "AUTOACT_NATS__URL", default_value = "nats://127.0.0.1:7422")]
    nats_url: String,
    /// Whose the tasks are from now on.
    #[arg(long, default_value = "default")]
    tenant: String,
}

pub(crate) async fn run(options: MigrateOptions) -> anyhow::Result<u8> {
    let tenant: Tenant = options.tenant.parse()?;
    let progress = indicatif::ProgressBar::new_spinner();
    let moved = autoact_bus::migrate(BusConfig::over(reach(&options.nats_url)), &tenant, |moved| {
        progress.set_message(format!("{} tasks, {} events", moved.tasks, moved.events));
        progress.tick();
    })
    .await?;
    progress.finish_and_clear();
    match moved.events {
        0 => out::line("nothing to move: the bus holds no trajectories of schema version 1")?,
        events => out::line(format_args!("moved {} tasks with {events} events; {} of them are queued again", moved.tasks, moved.queued))?,
    }
    Ok(exit::OK)
}
