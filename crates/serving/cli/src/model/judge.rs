//! `autoact model judge`: Reflect-Agent alone, over histories that it has never read. Half are right,
//! the others wrong in one way each. The report says which ways it sees.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use autoact_pretrain::{Tools, histories};
use autoact_score::{Bootstrap, Interval, auroc};
use autoact_synthetic_kb::Atlas;
use autoact_trajectory::Verdict;
use clap::Args;
use indicatif::ProgressBar;
use serde_json::json;

use super::probe;
use crate::exit;
use crate::out;

/// The row of the right histories.
const RIGHT: &str = "right";
/// The row of all wrong ones.
const WRONG: &str = "all wrong ones";

/// `autoact model judge`
#[derive(Debug, Args)]
pub(crate) struct JudgeOptions {
    #[command(flatten)]
    model: probe::ModelFiles,
    /// The atlas, whose pages and relations the histories are about.
    #[arg(long, default_value = "corpora/atlas")]
    atlas: PathBuf,
    /// How many histories; half of them are right.
    #[arg(long, default_value_t = 520, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    histories: u32,
    /// Seed of the histories.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print each wrong verdict with its history.
    #[arg(long)]
    wrong: bool,
    /// A JSON report for programs.
    #[arg(long, conflicts_with = "wrong")]
    json: bool,
}

/// One kind of histories.
#[derive(Debug, Default)]
struct Row {
    /// For each: 1 if the verdict is what it should be, else 0.
    hits: Vec<f64>,
}

impl Row {
    fn share(&self) -> Interval {
        Bootstrap::default().mean(&self.hits)
    }
}

pub(crate) fn run(options: &JudgeOptions) -> anyhow::Result<u8> {
    let atlas = Atlas::load(&options.atlas)?;
    let library = Arc::new(Tools::bundled()?);
    let group = options.model.group(Arc::clone(&library))?;
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    let mut scored: Vec<(f64, bool)> = Vec::new();
    let mut unread = 0;
    let all = histories(atlas.base(), &library, options.histories as usize, options.seed)?;
    let bar = if options.wrong { ProgressBar::hidden() } else { ProgressBar::new(all.len() as u64) };
    for history in bar.wrap_iter(all.iter()) {
        let right = history.fault.is_none();
        let told = group.reflect(&history.trajectory);
        // a reply without a verdict approves nothing
        let verdict = told.as_ref().map_or(Verdict::Wrong, |told| told.verdict);
        unread += usize::from(told.is_err());
        if let Ok(Some(log_odds)) = told.as_ref().map(|told| told.log_odds) {
            scored.push((log_odds, right));
        }
        let hit = (verdict == Verdict::Right) == right;
        let name = history.fault.map_or(RIGHT, |fault| fault.family());
        for name in [name, if right { RIGHT } else { WRONG }].into_iter().take(if right { 1 } else { 2 }) {
            rows.entry(name).or_default().hits.push(f64::from(u8::from(hit)));
        }
        if options.wrong && !hit {
            let said = told.map_or_else(|error| error.to_string(), |told| told.thought);
            let text = autoact_prompt::transcript(&history.trajectory);
            out::line(format_args!("{text}{name}; said: {said}\nexpected: {}\n", history.reflection.thought))?;
        }
    }
    bar.finish_and_clear();
    let ranking = Bootstrap::default().statistic(&scored, auroc);
    if options.json {
        let of = |row: &Row| json!({ "histories": row.hits.len(), "share": row.share() });
        let faults: BTreeMap<&str, serde_json::Value> =
            rows.iter().filter(|(name, _)| ![RIGHT, WRONG].contains(*name)).map(|(name, row)| (*name, of(row))).collect();
        let report = json!({
            "seed": options.seed, "kept": rows.get(RIGHT).map(of), "caught": rows.get(WRONG).map(of), "faults": faults,
            "auroc": ranking, "without_verdict": unread,
        });
        out::line(format_args!("{report}"))?;
        return Ok(exit::OK);
    }
    out::line(format_args!("{:<18}{:>10}  {}", "history", "histories", "judged right"))?;
    let order = |name: &str| (name != RIGHT, name == WRONG);
    let mut names: Vec<&str> = rows.keys().copied().collect();
    names.sort_by_key(|name| order(name));
    for name in names {
        let Row { hits } = &rows[name];
        let Interval { mean, low, high } = rows[name].share();
        out::line(format_args!("{name:<18}{:>10}  {:.1}% [{:.1}, {:.1}]", hits.len(), 100.0 * mean, 100.0 * low, 100.0 * high))?;
    }
    if let Some(Interval { mean, low, high }) = ranking {
        out::line(format_args!("verdict's log-odds  AUROC {mean:.3} [{low:.3}, {high:.3}]"))?;
    }
    if unread > 0 {
        out::line(format_args!("{unread} replies without a verdict, which approve nothing"))?;
    }
    Ok(exit::OK)
}
