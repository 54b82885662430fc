//! What receipts cost, by the effect of the tool and by where the bus keeps its files.

use std::path::Path;

use anyhow::Context as _;

use crate::Options;
use crate::group::{Group, Variant};
use crate::measure::{self, Measured};

/// A file system in memory, where there is one.
const MEMORY: &str = "/dev/shm";
const EFFECTS: [&str; 3] = ["read_only", "idempotent", "side_effect"];

/// The same tool with and without receipts: one entry for each round.
struct Pair {
    store: &'static str,
    effect: &'static str,
    without: Vec<Step>,
    with: Vec<Step>,
}

/// How long a step takes in one round, without model and tool, in microseconds.
#[derive(Clone, Copy, serde::Serialize)]
struct Step {
    p50: f64,
    p90: f64,
}

/// Measures every pair in every round, its halves one after the other and every round the other one
/// first, and prints how they compare.
pub(super) async fn compare(options: &Options) -> anyhow::Result<()> {
    let build = std::env::current_exe().context("this program has a path")?;
    let stores = ["disk", "memory"].into_iter().filter(|store| *store == "disk" || Path::new(MEMORY).is_dir());
    let pair = |store, effect| Pair { store, effect, without: Vec::new(), with: Vec::new() };
    let mut pairs: Vec<Pair> = stores.flat_map(|store| EFFECTS.map(|effect| pair(store, effect))).collect();
    for round in 0..options.rounds {
        for pair in &mut pairs {
            eprintln!("round {} of {}: {}, {}", round + 1, options.rounds, pair.store, pair.effect);
            for receipts in [round % 2 == 0, round % 2 != 0] {
                let store = (pair.store == "memory").then(|| MEMORY.into());
                let group = Group::start(&build, options.steps, &Variant { effect: pair.effect, receipts, store, secured: None }).await?;
                let mut measured = Measured::default();
                measure::one_by_one(&group, options, &mut measured).await?;
                group.stop().await;
                let (p50, p90) = measured.step();
                let step = Step { p50: p50.as_secs_f64() * 1e6, p90: p90.as_secs_f64() * 1e6 };
                if receipts { pair.with.push(step) } else { pair.without.push(step) }
            }
        }
    }
    let rows: Vec<Row> = pairs.iter().map(Row::new).collect();
    if options.json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
        return Ok(());
    }
    println!("| files of JetStream | effect | p50 without | p90 without | p50 with | p90 with | ratio of p50 | lowest to highest |");
    println!("| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |");
    for Row { store, effect, without, with, ratio, lowest, highest } in rows {
        println!(
            "| {store} | {effect} | {:.0} µs | {:.0} µs | {:.0} µs | {:.0} µs | {ratio:.2} | {lowest:.2} to {highest:.2} |",
            without.p50, without.p90, with.p50, with.p90,
        );
    }
    Ok(())
}

/// Medians of the rounds, and the ratios of the pairs.
#[derive(serde::Serialize)]
struct Row {
    store: &'static str,
    effect: &'static str,
    without: Step,
    with: Step,
    ratio: f64,
    lowest: f64,
    highest: f64,
}

impl Row {
    fn new(Pair { store, effect, without, with }: &Pair) -> Row {
        let medians =
            |steps: &[Step]| Step { p50: median(steps.iter().map(|step| step.p50)), p90: median(steps.iter().map(|step| step.p90)) };
        let [ratio, lowest, highest] = ratios(with.iter().zip(without).map(|(with, without)| with.p50 / without.p50.max(1e-3)));
        Row { store, effect, without: medians(without), with: medians(with), ratio, lowest, highest }
    }
}

pub(super) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// The median, lowest and highest of the ratios of pairs.
pub(super) fn ratios(ratios: impl Iterator<Item = f64>) -> [f64; 3] {
    let ratios: Vec<f64> = ratios.collect();
    let (lowest, highest) = ratios.iter().fold((f64::MAX, 0.0_f64), |(low, high), ratio| (low.min(*ratio), high.max(*ratio)));
    [median(ratios.into_iter()), lowest, highest]
}
