//! `autoact model`: look at a model, try it, train the bundled one.

mod convert;
mod judge;
mod probe;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use autoact_pretrain::{Options, Outcome, Paths, Role};
use autoact_train::Progress;
use clap::{Args, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};

use crate::exit::{self, BadArguments};
use crate::out;

/// `autoact model`
#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// Train a part of the bundled model by its recipe; goes on from the newest checkpoint.
    Train(TrainOptions),
    /// Try the agents on the atlas in this process: no services, no bus. For working on recipes.
    Probe(probe::ProbeOptions),
    /// Ask Reflect-Agent about histories that are right, or wrong in every way: its recall per fault.
    Judge(judge::JudgeOptions),
    /// Write a model in another number format, which the agents then read where it is mapped.
    Convert(convert::ConvertOptions),
}

/// What can be trained, in the order it has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    Tokenizer,
    Base,
    Plan,
    Tool,
    Reflect,
    /// All of them, one after the other.
    All,
}

impl Part {
    const EACH: [Part; 5] = [Part::Tokenizer, Part::Base, Part::Plan, Part::Tool, Part::Reflect];

    /// As the command line has it.
    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// `autoact model train`
#[derive(Debug, Args)]
pub(crate) struct TrainOptions {
    /// Which part.
    pub(crate) part: Part,
    /// The recipe.
    #[arg(long, default_value = "models/stem/recipe/recipe.toml")]
    recipe: PathBuf,
    /// The atlas: relations and phrasings for the adapters, spelling for invented names.
    #[arg(long, default_value = "corpora/atlas")]
    atlas: PathBuf,
    /// The model directory that is written.
    #[arg(long, default_value = "models/stem")]
    model: PathBuf,
    /// Where checkpoints go.
    #[arg(long, default_value = "target/stem")]
    work: PathBuf,
    /// Train on so many tokens instead of the recipe's number.
    #[arg(long)]
    tokens: Option<u64>,
    /// Start from the weights in this directory instead of new ones. For the base: a model with the
    /// recipe's tokenizer, which may have fewer layers; others are added. For an adapter: one of the
    /// same base and shape, activated or not. With `all`, only the base starts from it.
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
    /// Train an adapter that always acts, whatever the recipe says, for servers that cannot apply
    /// activated ones. It is written to `plain-adapters/` of the model directory. With `all`, the
    /// three adapters are plain; the tokenizer and the base have no such form.
    #[arg(long)]
    plain: bool,
    /// Forget earlier checkpoints.
    #[arg(long)]
    restart: bool,
}

impl TrainOptions {
    /// A flag that was given and means something for weights alone.
    fn of_weights(&self) -> Option<&'static str> {
        let given = [(self.from.is_some(), "--from"), (self.tokens.is_some(), "--tokens"), (self.restart, "--restart")];
        given.into_iter().find_map(|(given, flag)| given.then_some(flag))
    }
}

pub(crate) async fn run(command: ModelCommand) -> anyhow::Result<u8> {
    match command {
        ModelCommand::Train(options) => {
            let stop = Arc::new(AtomicBool::new(false));
            let raised = Arc::clone(&stop);
            let listener = tokio::spawn(async move {
                if tokio::signal::ctrl_c().await.is_ok() {
                    raised.store(true, Ordering::Relaxed);
                }
            });
            let code = tokio::task::spawn_blocking(move || train(&options, &stop)).await?;
            listener.abort();
            code
        }
        ModelCommand::Probe(options) => tokio::task::spawn_blocking(move || probe::run(&options)).await?,
        ModelCommand::Judge(options) => tokio::task::spawn_blocking(move || judge::run(&options)).await?,
        ModelCommand::Convert(options) => tokio::task::spawn_blocking(move || convert::run(&options)).await?,
    }
}

fn train(options: &TrainOptions, stop: &AtomicBool) -> anyhow::Result<u8> {
    if options.plain && matches!(options.part, Part::Tokenizer | Part::Base) {
        let name = options.part.name();
        let why = format!("`--plain` is a form of adapters, and `{name}` is none; fix: leave it out, or train `plan`, `tool` or `reflect`");
        return Err(BadArguments(why).into());
    }
    if let Some(flag) = options.of_weights().filter(|_| options.part == Part::Tokenizer) {
        return Err(BadArguments(format!("`{flag}` is about weights, and `tokenizer` has none; fix: leave it out")).into());
    }
    let paths =
        Paths { recipe: options.recipe.clone(), atlas: options.atlas.clone(), model: options.model.clone(), work: options.work.clone() };
    let run = Options { tokens: options.tokens, from: options.from.clone(), plain: options.plain, restart: options.restart };
    let adapters = Options { from: options.from.clone().filter(|_| options.part != Part::All), ..run };
    let parts: Vec<Part> = if options.part == Part::All { Part::EACH.to_vec() } else { vec![options.part] };
    for part in parts {
        let name = part.name();
        let bar = Bar::new(&name);
        let mut on_step = |progress: &Progress| bar.step(progress, stop);
        let outcome = match part {
            Part::Tokenizer | Part::All => {
                let size = autoact_pretrain::train_tokenizer(&paths)?;
                out::note(format_args!("tokenizer: {size} tokens → {}", paths.model.join("tokenizer.json").display()));
                continue;
            }
            Part::Base => autoact_pretrain::train_base(&paths, run.clone(), &mut on_step)?,
            Part::Plan => autoact_pretrain::train_adapter(Role::Plan, &paths, adapters.clone(), &mut on_step)?,
            Part::Tool => autoact_pretrain::train_adapter(Role::Tool, &paths, adapters.clone(), &mut on_step)?,
            Part::Reflect => autoact_pretrain::train_adapter(Role::Reflect, &paths, adapters.clone(), &mut on_step)?,
        };
        match outcome {
            Outcome::Done(report) => out::note(format_args!(
                "{name}: {} steps, {:.2} M tokens, loss {:.4}, {:.0} tokens/s",
                report.steps,
                report.tokens as f64 / 1e6,
                report.loss_ema,
                report.tokens as f64 / report.seconds.max(1e-9)
            )),
            Outcome::Stopped(report) => {
                out::note(format_args!("{name}: stopped after step {}; the same command goes on from there", report.steps));
                return Ok(exit::INTERRUPTED);
            }
        }
    }
    Ok(exit::OK)
}

/// A progress bar on a terminal, a line now and then elsewhere.
struct Bar {
    name: String,
    bar: ProgressBar,
}

/// Steps between lines where there is no terminal.
const LINE_EVERY: u64 = 20;

impl Bar {
    fn new(name: &str) -> Bar {
        let bar = ProgressBar::no_length();
        if let Ok(style) = ProgressStyle::with_template("{prefix:10} {bar:40} {pos}/{len}  {msg}") {
            bar.set_style(style);
        }
        bar.set_prefix(name.to_owned());
        Bar { name: name.to_owned(), bar }
    }

    fn step(&self, progress: &Progress, stop: &AtomicBool) -> ControlFlow<()> {
        self.bar.set_length(progress.total);
        self.bar.set_position(progress.step);
        let left = Duration::from_secs(progress.eta_seconds.max(0.0) as u64);
        let text = format!(
            "loss {:.4}  {:.2} M tokens  {:.0} tokens/s  {} left",
            progress.loss_ema,
            progress.tokens as f64 / 1e6,
            progress.tokens_per_second,
            indicatif::HumanDuration(left)
        );
        if self.bar.is_hidden() && (progress.step.is_multiple_of(LINE_EVERY) || progress.step == progress.total) {
            out::note(format_args!("{} {}/{}  {text}", self.name, progress.step, progress.total));
        }
        self.bar.set_message(text);
        if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Args, Command};

    fn run(arguments: &[&str]) -> anyhow::Error {
        match Args::try_parse_from(["autoact", "model", "train"].iter().chain(arguments)).unwrap().command {
            Command::Model(ModelCommand::Train(options)) => train(&options, &AtomicBool::new(false)).unwrap_err(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_tokenizer_takes_nothing_that_is_about_weights() {
        for given in [&["--from", "/nowhere"][..], &["--tokens", "5"], &["--restart"]] {
            let error = run(&[&["tokenizer"][..], given, &["--recipe", "/nowhere/recipe.toml"]].concat());
            assert!(error.to_string().contains(given[0]), "{error}");
            assert_eq!(crate::exit_code(&error), exit::USAGE);
        }
    }

    #[test]
    fn only_adapters_can_be_plain() {
        let nowhere = ["--recipe", "/nowhere/recipe.toml"];
        for part in ["tokenizer", "base"] {
            let error = run(&[&[part, "--plain"][..], &nowhere].concat());
            assert!(error.to_string().contains(part) && error.to_string().contains("fix:"), "{error}");
            assert_eq!(crate::exit_code(&error), exit::USAGE);
        }
        for part in ["plan", "all"] {
            let error = run(&[&[part, "--plain"][..], &nowhere].concat());
            assert!(!error.is::<BadArguments>(), "{error}");
        }
    }
}
