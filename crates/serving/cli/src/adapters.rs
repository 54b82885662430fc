//! `autoact adapters`: the versions of the three adapters, and which of them is in service.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use autoact_base::error::chain;
use autoact_bus::{AdapterAnnouncement, AdapterBoard, BusConfig};
use autoact_model::ModelDir;
use autoact_registry::{CALIBRATION_FILE, NewVersion, Pointer, Registry, RegistryError, Version, VersionId, calibration};
use autoact_trajectory::Calibration;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::bus::reach;
use crate::exit;
use crate::out;

/// Agents look at the registry every second anyway: the bus is not waited for longer than this.
const ANNOUNCE_LIMIT: Duration = Duration::from_secs(5);

/// `autoact adapters`
#[derive(Debug, Args)]
pub(crate) struct AdaptersOptions {
    /// The adapter registry.
    #[arg(long, global = true, default_value = "adapters")]
    registry: PathBuf,
    /// Announce a promotion or a rollback on this bus too; agents look at the registry every second
    /// anyway.
    #[arg(long, global = true, env = "AUTOACT_NATS__URL")]
    nats_url: Option<String>,
    /// A JSON object for programs.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: AdaptersCommand,
}

#[derive(Debug, Subcommand)]
enum AdaptersCommand {
    /// The published versions, oldest first; the one in service is marked.
    List,
    /// Put a version into service: running agents switch to it without a restart.
    Promote {
        /// The version.
        version: VersionId,
        /// Check first that it belongs to this base model.
        #[arg(long)]
        model: Option<PathBuf>,
    },
    /// Go back to the version that was in service before.
    Rollback,
    /// Delete a version that is not in service; no rollback leads to it any more.
    Remove {
        /// The version.
        version: VersionId,
    },
    /// Check that versions are what was published, and belong to a base model.
    Verify {
        /// The versions; none: every one.
        versions: Vec<VersionId>,
        /// The base model.
        #[arg(long, default_value = "models/stem")]
        model: PathBuf,
    },
    /// Publish adapters that lie in a directory, such as those that come with a model.
    /// `autoact learn` does it by itself.
    Publish {
        /// The directory with `plan`, `tool` and `reflect`.
        adapters: PathBuf,
        /// The task they were trained for: the version's name begins with it.
        #[arg(long)]
        task: String,
        /// The base model they were trained on.
        #[arg(long, default_value = "models/stem")]
        model: PathBuf,
    },
}

pub(crate) async fn run(options: AdaptersOptions) -> anyhow::Result<u8> {
    let registry = Registry::open(&options.registry)?;
    if !matches!(options.command, AdaptersCommand::Publish { .. }) && !registry.root().is_dir() {
        out::error(format_args!(
            "no adapter registry in `{}`; fix: name one with `--registry DIR`, or make one with `autoact learn` or `autoact adapters publish`",
            registry.root().display()
        ));
        return Ok(exit::USAGE);
    }
    match &options.command {
        AdaptersCommand::List => list(&registry, options.json),
        AdaptersCommand::Promote { version, model } => {
            if let Some(model) = model {
                registry.get(version)?.check_base(&base_digest(model)?)?;
            }
            let before = registry.pointer()?;
            let after = registry.promote(version)?;
            changed(&registry, &options, &before, &after).await
        }
        AdaptersCommand::Rollback => {
            let before = registry.pointer()?;
            let after = registry.rollback()?;
            changed(&registry, &options, &before, &after).await
        }
        AdaptersCommand::Remove { version } => {
            let pointer = registry.remove(version)?;
            if options.json {
                out::line(json!({ "removed": version, "current": pointer.current(), "revision": pointer.revision }))?;
            } else {
                out::line(format_args!("removed {version}"))?;
            }
            Ok(exit::OK)
        }
        AdaptersCommand::Verify { versions, model } => verify(&registry, versions, model, options.json),
        AdaptersCommand::Publish { adapters, task, model } => publish(&registry, adapters, task, model, options.json),
    }
}

fn list(registry: &Registry, as_json: bool) -> anyhow::Result<u8> {
    let (listing, pointer) = (registry.list()?, registry.pointer()?);
    let current = pointer.current();
    for broken in &listing.broken {
        out::note(format_args!("warning: {}", chain(broken)));
    }
    if as_json {
        let versions: Vec<Value> = listing.versions.iter().map(|version| json!(version.manifest)).collect();
        let broken: Vec<String> = listing.broken.iter().map(|broken| chain(broken)).collect();
        out::line(
            json!({ "current": current, "revision": pointer.revision, "promotions": pointer.promotions, "versions": versions, "broken": broken }),
        )?;
        return Ok(exit::OK);
    }
    if listing.versions.is_empty() {
        out::line("no versions yet; publish one with `autoact learn` or `autoact adapters publish`")?;
        return Ok(exit::OK);
    }
    let wide = listing.versions.iter().map(|version| version.id().as_str().len()).max().unwrap_or_default();
    out::line(format_args!("  {:<wide$}  {:<20}  {:<16} {:<16} parent", "version", "published", "task", "base"))?;
    for version in &listing.versions {
        let manifest = &version.manifest;
        let mark = if current == Some(version.id()) { '*' } else { ' ' };
        let parent = manifest.parent.as_ref().map_or("-", VersionId::as_str);
        out::line(format_args!(
            "{mark} {:<wide$}  {:<20}  {:<16} {:<16} {parent}",
            version.id().as_str(),
            manifest.created,
            manifest.task,
            manifest.base.name
        ))?;
        let metrics = numbers(&manifest.metrics);
        if !metrics.is_empty() {
            out::line(format_args!("  {:<wide$}  {metrics}", ""))?;
        }
    }
    match current {
        Some(current) => out::line(format_args!("in service: {current}"))?,
        None => out::line("in service: the adapters the agents were started with")?,
    }
    Ok(exit::OK)
}

/// The plain numbers among the metrics, for one line.
fn numbers(metrics: &Value) -> String {
    let entries = metrics.as_object().into_iter().flatten();
    let numbers = entries.filter_map(|(name, value)| Some(format!("{name} {:.3}", value.as_f64()?)));
    numbers.collect::<Vec<_>>().join(", ")
}

async fn changed(registry: &Registry, options: &AdaptersOptions, before: &Pointer, after: &Pointer) -> anyhow::Result<u8> {
    let name = |pointer: &Pointer| pointer.current().map(VersionId::to_string);
    let same = before.revision == after.revision;
    // also when nothing changed: the last announcement may not have reached the bus
    let announced = match &options.nats_url {
        Some(url) => match announce(registry, url, after).await {
            Ok(()) => true,
            Err(error) => {
                let cause = chain(error.as_ref());
                out::note(format_args!("warning: not announced on the bus: {cause}; the agents see it in the registry all the same"));
                false
            }
        },
        None => false,
    };
    if options.json {
        out::line(json!({ "current": name(after), "before": name(before), "revision": after.revision, "announced": announced }))?;
        return Ok(exit::OK);
    }
    let now = name(after).unwrap_or_else(|| "the adapters the agents were started with".to_owned());
    if same {
        out::line(format_args!("in service already: {now}"))?;
    } else {
        let was = name(before).unwrap_or_else(|| "the adapters the agents were started with".to_owned());
        out::line(format_args!(
            "in service: {now} (before: {was}); agents that follow `{}` switch within seconds",
            registry.root().display()
        ))?;
    }
    Ok(exit::OK)
}

/// Tells the bus what is in service.
pub(crate) async fn announce(registry: &Registry, url: &str, pointer: &Pointer) -> anyhow::Result<()> {
    let version = pointer.current().map(|id| registry.get(id)).transpose()?;
    let announcement = announcement(pointer, version.as_ref());
    let config = BusConfig { name: "autoact-adapters".to_owned(), connect_limit: ANNOUNCE_LIMIT, ..BusConfig::over(reach(url)) };
    let board = AdapterBoard::connect(&config).await?;
    let outcome = tokio::time::timeout(ANNOUNCE_LIMIT, board.announce(&announcement)).await;
    board.close().await;
    outcome.context("the bus did not answer")??;
    Ok(())
}

/// What the bus is told of the registry.
pub(crate) fn announcement(pointer: &Pointer, version: Option<&Version>) -> AdapterAnnouncement {
    let digests = |version: &Version| -> BTreeMap<String, String> {
        version.manifest.adapters.iter().map(|(role, adapter)| (role.clone(), adapter.sha256.clone())).collect()
    };
    AdapterAnnouncement {
        revision: pointer.revision,
        version: version.map(|version| version.id().to_string()),
        base_sha256: version.map(|version| version.manifest.base.sha256.clone()).unwrap_or_default(),
        adapters: version.map(digests).unwrap_or_default(),
    }
}

fn verify(registry: &Registry, versions: &[VersionId], model: &Path, as_json: bool) -> anyhow::Result<u8> {
    let digest = base_digest(model)?;
    let mut outcomes: Vec<(String, Result<(), RegistryError>)> = Vec::new();
    if versions.is_empty() {
        let listing = registry.list()?;
        outcomes.extend(listing.broken.into_iter().map(|broken| ("?".to_owned(), Err(broken))));
        for version in &listing.versions {
            outcomes.push((version.id().to_string(), registry.verify(version, &digest)));
        }
    } else {
        for id in versions {
            let version = registry.get(id)?;
            outcomes.push((id.to_string(), registry.verify(&version, &digest)));
        }
    }
    let failed = outcomes.iter().any(|(_, outcome)| outcome.is_err());
    if as_json {
        let each: Vec<Value> = outcomes
            .iter()
            .map(|(id, outcome)| json!({ "version": id, "ok": outcome.is_ok(), "error": outcome.as_ref().err().map(|error| chain(error)) }))
            .collect();
        out::line(json!({ "ok": !failed, "base_sha256": digest, "versions": each }))?;
    } else if outcomes.is_empty() {
        out::line("no versions yet; publish one with `autoact learn` or `autoact adapters publish`")?;
    } else {
        for (id, outcome) in &outcomes {
            match outcome {
                Ok(()) => out::line(format_args!("ok       {id}: as published, and of the base `{}`", model.display()))?,
                Err(error) => out::line(format_args!("refused  {id}: {}", chain(error)))?,
            }
        }
    }
    Ok(if failed { exit::FAILED } else { exit::OK })
}

fn publish(registry: &Registry, adapters: &Path, task: &str, model: &Path, as_json: bool) -> anyhow::Result<u8> {
    check_calibration(&adapters.join("reflect"))?;
    let dir = ModelDir::open(model)?;
    let new = NewVersion {
        task: task.to_owned(),
        base: dir.name().to_owned(),
        base_sha256: dir.digest()?.to_owned(),
        adapters: adapters.to_owned(),
        ..NewVersion::default()
    };
    let version = registry.publish(new)?;
    if as_json {
        out::line(json!(version.manifest))?;
    } else {
        out::line(format_args!(
            "published {}; put it into service with `autoact adapters promote {} --registry {}`",
            version.id(),
            version.id(),
            registry.root().display()
        ))?;
    }
    Ok(exit::OK)
}

/// Refuses a calibration that no agent could load.
fn check_calibration(adapter: &Path) -> anyhow::Result<()> {
    let Some(bytes) = calibration(adapter)? else { return Ok(()) };
    Calibration::parse(&String::from_utf8_lossy(&bytes)).map(drop).with_context(|| {
        let path = adapter.join(CALIBRATION_FILE);
        format!("cannot use the calibration `{}`; fix: write it anew with `autoact eval --calibrate`, or remove it", path.display())
    })
}

fn base_digest(model: &Path) -> anyhow::Result<String> {
    let cannot = || format!("cannot open model `{}`; fix: name the base model with `--model DIR`", model.display());
    let dir = ModelDir::open(model).with_context(cannot)?;
    Ok(dir.digest().with_context(cannot)?.to_owned())
}
