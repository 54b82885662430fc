//! What mutual TLS and tokens cost.

use std::path::Path;

use anyhow::Context as _;
use autoact_access::{NewToken, Principal, Role};
use autoact_certificates as certificates;

use crate::Options;
use crate::group::{Group, Variant};
use crate::measure::{self, Measured};
use crate::receipts::{median, ratios};

/// The file of tokens, beside the certificates.
pub(super) const TOKENS: &str = "tokens.toml";

/// Certificates of all services and of the client, and its token.
#[derive(Debug, Clone)]
pub(super) struct Secured {
    dir: std::sync::Arc<tempfile::TempDir>,
    token: String,
}

impl Secured {
    fn new() -> anyhow::Result<Secured> {
        let dir = tempfile::tempdir()?;
        certificates::init(dir.path(), &certificates::Options { force: true, ..certificates::Options::default() })?;
        let principal = Principal { name: "ann".to_owned(), tenant: "ops".parse()?, roles: [Role::Ask].into() };
        let NewToken { token, entry } = NewToken::make(&principal, None).map_err(anyhow::Error::msg)?;
        std::fs::write(dir.path().join(TOKENS), entry)?;
        Ok(Secured { dir: dir.into(), token })
    }

    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }
}

/// Measures both groups in every round, every round the other one first, and prints the ratios.
pub(super) async fn compare(options: &Options) -> anyhow::Result<()> {
    let build = std::env::current_exe().context("this program has a path")?;
    let secured = Secured::new()?;
    let (mut steps, mut rates, mut busy) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for round in 0..options.rounds {
        eprintln!("round {} of {}", round + 1, options.rounds);
        for side in [round % 2, 1 - round % 2] {
            let variant = Variant { secured: (side == 1).then(|| secured.clone()), ..Variant::default() };
            let group = Group::start(&build, options.steps, &variant).await?;
            let mut measured = Measured::default();
            measure::one_by_one(&group, options, &mut measured).await?;
            steps[side].push(measured.step().0.as_secs_f64() * 1e6);
            let (mut reached, mut all) = (Vec::new(), 0);
            let before = group.processor_time();
            for at_once in &options.at_once {
                let saturated = measure::at_once(&group, *at_once, options.seconds).await?;
                reached.push(saturated.rate());
                all += saturated.steps();
            }
            rates[side].push(reached);
            if let (Some(before), Some(after)) = (before, group.processor_time()) {
                busy[side].push((after - before).as_secs_f64() * 1e6 / all.max(1) as f64);
            }
            group.stop().await;
        }
    }
    let mut rows = vec![Row::new("a step, p50", "µs", &steps[0], &steps[1])];
    for (at, at_once) in options.at_once.iter().enumerate() {
        let of = |side: usize| rates[side].iter().map(|reached: &Vec<f64>| reached[at]).collect::<Vec<_>>();
        rows.push(Row::new(&format!("{at_once} tasks at once"), "steps a second", &of(0), &of(1)));
    }
    if !busy[0].is_empty() {
        // hardly depends on what else the machine does
        rows.push(Row::new("processor time of a step, under load", "µs", &busy[0], &busy[1]));
    }
    if options.json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
        return Ok(());
    }
    println!("| | without | with TLS and a token | ratio | lowest to highest |");
    println!("| --- | ---: | ---: | ---: | --- |");
    for Row { what, unit, without, with, ratio, lowest, highest } in rows {
        println!("| {what} | {without:.0} {unit} | {with:.0} {unit} | {ratio:.2} | {lowest:.2} to {highest:.2} |");
    }
    Ok(())
}

/// Medians of the rounds, and the ratios of the pairs.
#[derive(Debug, serde::Serialize)]
struct Row {
    what: String,
    unit: &'static str,
    without: f64,
    with: f64,
    ratio: f64,
    lowest: f64,
    highest: f64,
}

impl Row {
    fn new(what: &str, unit: &'static str, without: &[f64], with: &[f64]) -> Row {
        let [ratio, lowest, highest] = ratios(with.iter().zip(without).map(|(with, without)| with / without.max(1e-9)));
        let [without, with] = [without, with].map(|values| median(values.iter().copied()));
        Row { what: what.to_owned(), unit, without, with, ratio, lowest, highest }
    }
}
