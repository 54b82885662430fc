//! `autoact audit`: whether everything on the bus is there, as it was stored.

use std::path::PathBuf;

use autoact_bus::{Bus, Finding, Report, Summary};
use autoact_trajectory::Tenant;
use clap::Args as ClapArgs;
use serde_json::json;

use crate::bus::{Bar, NatsOptions};
use crate::{exit, out};

/// `autoact audit`
#[derive(Debug, ClapArgs)]
pub(crate) struct AuditOptions {
    #[command(flatten)]
    nats: NatsOptions,
    /// One tenant's tasks; the index is always checked as a whole [default: everybody's].
    #[arg(long, value_name = "NAME")]
    tenant: Option<Tenant>,
    /// Compare with a backup: it knows the last events of tasks that have not ended.
    #[arg(long, value_name = "DIR")]
    backup: Option<PathBuf>,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(options: AuditOptions) -> anyhow::Result<u8> {
    let backup = options.backup.as_deref().map(Summary::read).transpose()?;
    let bus = Bus::attach(options.nats.config()).await?;
    let mut bar = Bar::new();
    let wanted = autoact_bus::AuditOptions { tenant: options.tenant.clone(), backup };
    let report = autoact_bus::audit(&bus, wanted, |progress| bar.show(progress)).await;
    bar.end();
    bus.close().await;
    let report = report?;
    if options.json {
        out::line(to_json(&report))?;
    } else {
        print(&report)?;
    }
    Ok(if report.findings.is_empty() { exit::OK } else { exit::FOUND })
}

fn print(report: &Report) -> anyhow::Result<()> {
    for finding in &report.findings {
        out::line(told(finding))?;
    }
    if report.more > 0 {
        out::line(format_args!("… and {} more", report.more))?;
    }
    let Report { tasks, ended, events, records, artifacts, purged, cut_off, .. } = report;
    out::line(format_args!(
        "{tasks} tasks ({ended} ended) with {events} events and {artifacts} artifacts, {records} records in the index"
    ))?;
    if *purged > 0 {
        out::line(format_args!("{purged} tasks were removed, and their removal is recorded"))?;
    }
    if *cut_off > 0 {
        out::line(format_args!("{cut_off} submissions were cut off before they were accepted"))?;
    }
    match report.findings.len() as u64 + report.more {
        0 => out::line("nothing is lost, nothing is changed")?,
        1 => out::line("1 finding")?,
        count => out::line(format_args!("{count} findings"))?,
    }
    Ok(())
}

/// `default/t-3 event 5 changed: …`
fn told(finding: &Finding) -> String {
    let Finding { task, kind, index, sequence, detail } = finding;
    let task = task.as_ref().map_or("index".to_owned(), ToString::to_string);
    let event = index.map(|index| format!(" event {index}")).unwrap_or_default();
    let place = sequence.map(|sequence| format!(" (at {sequence})")).unwrap_or_default();
    format!("{task}{event} {kind}: {detail}{place}")
}

fn to_json(report: &Report) -> serde_json::Value {
    let finding = |finding: &Finding| {
        json!({
            "kind": finding.kind.as_str(),
            "tenant": finding.task.as_ref().map(|task| task.tenant.as_str()),
            "task_id": finding.task.as_ref().map(|task| task.id.as_str()),
            "index": finding.index,
            "sequence": finding.sequence,
            "detail": finding.detail,
        })
    };
    json!({
        "tasks": report.tasks,
        "ended": report.ended,
        "events": report.events,
        "records": report.records,
        "artifacts": report.artifacts,
        "purged": report.purged,
        "cut_off": report.cut_off,
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
        "more": report.more,
    })
}
