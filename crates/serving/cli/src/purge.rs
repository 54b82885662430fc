//! `autoact purge`: removes tasks that ended long ago, and records that.

use std::time::{Duration, SystemTime};

use autoact_bus::Bus;
use autoact_trajectory::Tenant;
use clap::Args as ClapArgs;
use serde_json::json;

use crate::bus::NatsOptions;
use crate::{exit, out};

/// Who asked for it, in the records of removals.
const BY: &str = "autoact purge";

/// `autoact purge`
#[derive(Debug, ClapArgs)]
pub(crate) struct PurgeOptions {
    #[command(flatten)]
    nats: NatsOptions,
    /// Whose tasks.
    #[arg(long, value_name = "NAME")]
    tenant: Tenant,
    /// Tasks that ended longer ago than this: `30d`, `12h`, `90m`, `0s` for all that have ended.
    #[arg(long, value_name = "TIME", value_parser = age)]
    older_than: Duration,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(options: PurgeOptions) -> anyhow::Result<u8> {
    let before = SystemTime::now().checked_sub(options.older_than).unwrap_or(SystemTime::UNIX_EPOCH);
    let bus = Bus::attach(options.nats.config()).await?;
    let progress = indicatif::ProgressBar::new_spinner();
    let purged = bus.purge_ended(&options.tenant, before, BY, |task| {
        progress.set_message(format!("removed {task}"));
        progress.tick();
    });
    let purged = purged.await;
    progress.finish_and_clear();
    bus.close().await;
    let purged = purged?;
    match options.json {
        true => out::line(json!({ "purged": purged }))?,
        false => out::line(format_args!("removed {purged} ended tasks of `{}`; the index says so", options.tenant))?,
    }
    Ok(exit::OK)
}

/// A time with days: `30d`, or what the services' settings take.
fn age(text: &str) -> Result<Duration, String> {
    const DAY: u64 = 24 * 60 * 60;
    let days = || text.strip_suffix('d')?.parse::<u64>().ok()?.checked_mul(DAY).map(Duration::from_secs);
    let expected = || format!("`{text}` is no time; expected one such as `30d`, `12h` or `0s`");
    days().map_or_else(|| autoact_config::duration::parse(text).map_err(|_| expected()), Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_days() {
        assert_eq!(age("30d"), Ok(Duration::from_secs(30 * 24 * 3600)));
        assert_eq!(age("12h"), Ok(Duration::from_secs(12 * 3600)));
        assert_eq!(age("0s"), Ok(Duration::ZERO));
        assert!(age("soon").is_err() && age("-1d").is_err() && age("99999999999999999999d").is_err());
    }
}
