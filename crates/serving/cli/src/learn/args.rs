//! The words of `autoact learn`.

use std::path::PathBuf;

use anyhow::Context as _;
use autoact_learn::{LearningPlan, Stage};
use clap::{Args, Subcommand};

use crate::args::Protocol;

/// `autoact learn TASK`, or `autoact learn STAGE TASK`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  autoact learn tasks/atlas.toml                     everything; stopped anywhere, the same command goes on\n  autoact learn tasks/atlas.toml --until filter      up to a stage\n  autoact learn instruct tasks/atlas.toml            one stage\n  autoact learn tasks/atlas.toml --again train       a stage and those after it anew\n  autoact learn tasks/atlas.toml --variants          also the ablations of the paper's table 2, figures 3 and 4"
)]
pub(crate) struct LearnArgs {
    #[command(subcommand)]
    stage: Option<StageCommand>,
    #[command(flatten)]
    options: Option<LearnOptions>,
}

/// What every form of the command takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct LearnOptions {
    /// The task file: name, description, examples, corpus and tool library.
    task: PathBuf,
    /// The base model, a Hugging Face directory.
    #[arg(long, default_value = "models/stem")]
    model: PathBuf,
    /// Where everything goes; default: `runs/<task>`.
    #[arg(long)]
    run: Option<PathBuf>,
    /// The paper's settings in place of the task's: its table 4 to the letter, 200 trajectories of one
    /// round, no question bias and no filter but the reward; goes to `runs/<task>-paper`.
    #[arg(long, value_enum)]
    protocol: Option<Protocol>,
    /// Small numbers and one round, a few minutes for a first look; goes to `runs/<task>-quick`.
    #[arg(long)]
    quick: bool,
    /// Also train and evaluate the ablations of the paper's table 2 and the groups of its figures 3
    /// and 4.
    #[arg(long)]
    variants: bool,
    /// Stop after this stage.
    #[arg(long, value_name = "STAGE")]
    until: Option<Stage>,
    /// Delete what this stage and those after it made, and do them anew.
    #[arg(long, value_name = "STAGE", num_args = 0..=1, default_missing_value = "instruct")]
    again: Option<Stage>,
    /// Publish the learned adapters to this adapter registry.
    #[arg(long, value_name = "DIR")]
    publish: Option<PathBuf>,
    /// Put the published version in service: agents that follow the registry switch to it.
    #[arg(long, requires = "publish")]
    promote: bool,
    /// Announce the promotion on this bus too; agents look at the registry every second anyway.
    #[arg(long, env = "AUTOACT_NATS__URL")]
    nats_url: Option<String>,
    /// No live view; one JSON object at the end.
    #[arg(long)]
    json: bool,
}

/// One stage alone.
#[derive(Debug, Subcommand)]
enum StageCommand {
    /// Self-instruct: questions from the examples.
    Instruct(LearnOptions),
    /// Which tools the task needs.
    Select(LearnOptions),
    /// Trajectories by the meta-agent, tools really run.
    Synthesize(LearnOptions),
    /// The reward filter.
    Filter(LearnOptions),
    /// Judgements of right and wrong histories.
    Reflect(LearnOptions),
    /// The three agents' data sets.
    Differentiate(LearnOptions),
    /// The LoRA trainings.
    Train(LearnOptions),
    /// Further rounds by the learned group, kept while they are better.
    Iterate(LearnOptions),
    /// The learned group and the base on the evaluation questions.
    Evaluate(LearnOptions),
    /// `report.json` and `report.html` of what is there so far.
    Report(LearnOptions),
}

impl StageCommand {
    fn split(self) -> (Stage, LearnOptions) {
        match self {
            StageCommand::Instruct(options) => (Stage::Instruct, options),
            StageCommand::Select(options) => (Stage::Select, options),
            StageCommand::Synthesize(options) => (Stage::Synthesize, options),
            StageCommand::Filter(options) => (Stage::Filter, options),
            StageCommand::Reflect(options) => (Stage::Reflect, options),
            StageCommand::Differentiate(options) => (Stage::Differentiate, options),
            StageCommand::Train(options) => (Stage::Train, options),
            StageCommand::Iterate(options) => (Stage::Iterate, options),
            StageCommand::Evaluate(options) => (Stage::Evaluate, options),
            StageCommand::Report(options) => (Stage::Report, options),
        }
    }
}

/// Who is told, and how.
#[derive(Debug, Clone)]
pub(crate) struct Telling {
    /// One JSON object for programs.
    pub(crate) json: bool,
    /// The bus that hears of a promotion.
    pub(crate) nats_url: Option<String>,
}

impl LearnArgs {
    /// What is to be done, and how it is told.
    pub(crate) fn plan(self) -> anyhow::Result<(LearningPlan, Telling)> {
        let (only, options) = match self.stage {
            Some(stage) => {
                let (stage, options) = stage.split();
                (Some(stage), options)
            }
            None => (None, self.options.context("no task file given; try `autoact learn tasks/atlas.toml`")?),
        };
        let LearnOptions { task, model, run, protocol, quick, variants, until, again, publish, promote, nats_url, json } = options;
        let paper = protocol.is_some();
        let plan =
            LearningPlan { task, model, run, paper, quick, variants, only, until: until.unwrap_or(Stage::Report), again, publish, promote };
        Ok((plan, Telling { json, nats_url }))
    }
}
