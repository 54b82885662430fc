//! `autoact eval`: its words.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use super::ask::Attempt;
use super::group::GroupOptions;
use crate::eval::calibrate::CalibrateOptions;
use crate::eval::compare::options::CompareOptions;

/// Whose experiment is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Protocol {
    /// That of the AutoAct paper.
    Paper,
}

/// `autoact eval`
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct EvalOptions {
    #[command(flatten)]
    pub(crate) group: GroupOptions,
    /// `held-out`, `dev`, `phrasings`, `plain`, `hand`, `typed`, or a JSONL file with `question`, `answer` and `kind`.
    #[arg(long, default_value = "held-out")]
    pub(crate) set: String,
    /// Swap the facts of the atlas first: the group has to follow the corpus, not its memory.
    #[arg(long)]
    pub(crate) counterfactual: bool,
    /// Ask a running group at `--gateway` instead of starting one.
    #[arg(long, conflicts_with = "counterfactual")]
    pub(crate) running: bool,
    /// Only the first so many questions; with `--protocol` so many drawn from all levels, rounded up to
    /// as many of each.
    #[arg(long)]
    pub(crate) limit: Option<usize>,
    /// Questions in flight at once.
    #[arg(long, default_value_t = 4)]
    pub(crate) concurrency: usize,
    /// Sampling temperature.
    #[arg(long, default_value_t = 0.0)]
    pub(crate) temperature: f32,
    /// Seed of the sampling, of the counterfactual and of what `--protocol` draws.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// What the agents are given after a judgement "wrong" [default: what the adapters'
    /// calibration says]. With `--calibrate`, the calibration says so from then on.
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) next_attempt: Option<Attempt>,
    /// Write every question with its answer and trajectory to this JSONL file.
    #[arg(long)]
    pub(crate) output: Option<PathBuf>,
    /// A JSON report for programs.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) calibrate: CalibrateOptions,
    #[command(flatten)]
    pub(crate) compare: CompareOptions,
}
