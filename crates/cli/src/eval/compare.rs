//! `autoact eval --planner …`: planners in this process, on the same questions, seeds and model.

mod cast;
mod plot;
mod problem;
mod race;
mod scores;
mod table;

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Context as _;
use autoact_datasets::Format;
use autoact_planners::{Kind, PlannerOptions, UnknownPlanner};
use clap::Args;

use crate::args::EvalOptions;
use crate::exit;
use crate::out;
use cast::Stage;
use problem::Problem;
use race::Race;

/// What runs planners in this process instead of the services.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CompareOptions {
    /// Run these planners in this process instead of the services, on the same questions and seeds: `autoact`, `react` and so on,
    /// comma-separated, or `all`.
    #[arg(long, value_delimiter = ',', value_name = "NAME", conflicts_with = "running")]
    planner: Vec<Choice>,
    /// Run the planners of this table of the AutoAct paper: 1 (all methods), 2 (without one part each) or 5 (rounds).
    #[arg(long, value_name = "NUMBER", value_parser = table_number, conflicts_with_all = ["planner", "running"])]
    table: Option<u8>,
    /// Run the groups of this figure of the AutoAct paper: 3 (by number of training trajectories) or 4 (one agent, three, a Tool-Agent for
    /// each tool). They come from `autoact learn --variants`.
    #[arg(long, value_name = "NUMBER", value_parser = figure_number, requires = "run", conflicts_with_all = ["planner", "table", "running"])]
    figure: Option<u8>,
    /// Write the scores as a plot, one HTML file without anything from elsewhere.
    #[arg(long, value_name = "FILE", conflicts_with = "running")]
    plot: Option<PathBuf>,
    /// A directory of `autoact learn`: its adapters in place of `--adapters`, the tools it selected, and with `--table` or `--figure` those
    /// that it trained for comparison, on the trajectories of the round whose adapters are installed.
    #[arg(long, value_name = "DIR", conflicts_with = "running")]
    pub(crate) run: Option<PathBuf>,
    /// Published questions in place of `--set`: `hotpotqa FILE` (each question's own paragraphs are its corpus) or `scienceqa FILE`.
    #[arg(long, num_args = 2, value_names = ["FORMAT", "FILE"], conflicts_with_all = ["set", "counterfactual", "running"])]
    data: Vec<String>,
    /// Worked examples in the prompts of planners that are prompted rather than trained [default: 2 for a model with a chat template, else 0]
    #[arg(long, value_name = "COUNT")]
    shots: Option<usize>,
}

/// The tables of the paper that have scores of planners.
fn table_number(text: &str) -> Result<u8, String> {
    one_of(text, &[1, 2, 5])
}

/// The figures of the paper that can be made anew.
fn figure_number(text: &str) -> Result<u8, String> {
    one_of(text, &[3, 4])
}

fn one_of(text: &str, numbers: &[u8]) -> Result<u8, String> {
    let found = text.parse().ok().filter(|number| numbers.contains(number));
    found.ok_or_else(|| format!("expected {}", numbers.iter().map(|number| format!("`{number}`")).collect::<Vec<_>>().join(" or ")))
}

/// A name for `--planner`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    All,
    One(Kind),
}

impl Choice {
    fn is_trained_for_comparison(&self) -> bool {
        let comparisons = [Kind::OneAgent, Kind::Unfiltered, Kind::FireAct, Kind::ToolSpecified];
        matches!(self, Choice::One(kind) if comparisons.contains(kind) || kind.trained_on().is_some()) || *self == Choice::All
    }
}

impl FromStr for Choice {
    type Err = UnknownPlanner;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        if name == "all" { Ok(Choice::All) } else { name.parse().map(Choice::One) }
    }
}

impl CompareOptions {
    /// Whether anything asks for planners in this process.
    pub(crate) fn asked(&self) -> bool {
        !self.planner.is_empty() || self.table.is_some() || self.figure.is_some() || self.run.is_some() || !self.data.is_empty()
    }

    /// Whether what is compared has to be trained on the same trajectories.
    fn same_data(&self) -> bool {
        self.table.is_some() || self.figure.is_some() || self.planner.iter().any(Choice::is_trained_for_comparison)
    }

    /// The planners, and whether each was asked for by name.
    fn kinds(&self) -> (Vec<Kind>, bool) {
        let listed = match (self.table, self.figure) {
            (Some(1), _) => Some(Kind::TABLE_1.to_vec()),
            (Some(2), _) => Some(Kind::TABLE_2.to_vec()),
            (Some(_), _) => Some(Kind::TABLE_5.to_vec()),
            (None, Some(3)) => Some(Kind::FIGURE_3.to_vec()),
            (None, Some(_)) => Some(Kind::FIGURE_4.to_vec()),
            (None, None) if self.planner.contains(&Choice::All) => {
                Some(Kind::ALL.into_iter().filter(|kind| kind.trained_on().is_none()).collect())
            }
            (None, None) => None,
        };
        if let Some(kinds) = listed {
            return (kinds, false);
        }
        let mut kinds: Vec<Kind> = Vec::new();
        for choice in &self.planner {
            if let Choice::One(kind) = choice
                && !kinds.contains(kind)
            {
                kinds.push(*kind);
            }
        }
        if kinds.is_empty() {
            kinds.push(Kind::AutoAct);
        }
        (kinds, true)
    }

    /// The format and the file of `--data`.
    fn data(&self) -> anyhow::Result<Option<(Format, PathBuf)>> {
        match self.data.as_slice() {
            [format, file] => Ok(Some((format.parse()?, PathBuf::from(file)))),
            _ => Ok(None),
        }
    }
}

/// Everything that a race needs, read before it starts.
struct Prepared {
    stage: Stage,
    problems: Vec<Problem>,
    origin: String,
}

pub(crate) async fn run(options: EvalOptions) -> anyhow::Result<u8> {
    let (kinds, named) = options.compare.kinds();
    let asked = options.clone();
    let Prepared { stage, problems, origin } = tokio::task::spawn_blocking(move || prepare(&asked)).await.context("cannot load")??;
    let (kinds, left_out) = stage.possible(kinds, named)?;
    left_out.iter().for_each(|note| out::note(format_args!("left out: {note}")));
    let race = Race::run(stage, kinds, problems, &options).await?;
    let scores = race.scores(origin, left_out);
    if let Some(path) = &options.output {
        race.write(path)?;
    }
    if let Some(path) = &options.compare.plot {
        std::fs::write(path, plot::page(&scores)).with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    if options.json {
        out::line(scores.json(&options))?;
    } else {
        out::text(table::table(&scores, &options))?;
    }
    Ok(if race.interrupted { exit::INTERRUPTED } else { exit::OK })
}

/// Reads questions, pages, tools, model and adapters. Blocks.
fn prepare(options: &EvalOptions) -> anyhow::Result<Prepared> {
    let scratch = tempfile::tempdir().context("cannot make a temporary directory")?;
    let mut group = options.group.clone();
    let (origin, mut problems) = match options.compare.data()? {
        Some((format, path)) => (format!("{format} `{}`", path.display()), problem::published(format, &path)?),
        None if options.counterfactual => {
            let swapped = super::set::counterfactual(&options.set, options.seed, scratch.path())?;
            group.corpus = swapped.corpus;
            (format!("set {} on swapped facts", options.set), problem::of_set(swapped.questions))
        }
        None => (format!("set {}", options.set), problem::of_set(super::set::load(&options.set)?)),
    };
    problems.truncate(options.limit.unwrap_or(usize::MAX));
    anyhow::ensure!(!problems.is_empty(), "there are no questions in {origin}");
    let stage = Stage::load(&group, options, options.compare.same_data())?;
    Ok(Prepared { stage, problems, origin })
}

/// How planners decode and are prompted with this model.
fn planner_options(options: &EvalOptions, info: &autoact_model::BackendInfo) -> PlannerOptions {
    let mut planner = PlannerOptions::for_model(info);
    planner.sampling.temperature = options.temperature;
    planner.shots = options.compare.shots.unwrap_or(planner.shots);
    planner
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn choices(names: &[&str]) -> CompareOptions {
        CompareOptions { planner: names.iter().map(|name| name.parse().unwrap()).collect(), ..CompareOptions::default() }
    }

    #[test]
    fn planners_are_chosen_by_name_or_table() {
        assert!(!CompareOptions::default().asked());
        assert_eq!(choices(&["react", "cot", "react"]).kinds(), (vec![Kind::React, Kind::Cot], true));
        assert_eq!(choices(&["cot", "all"]).kinds().0.len(), 13);
        let table = |number| CompareOptions { table: Some(number), ..CompareOptions::default() };
        assert_eq!(table(2).kinds(), (Kind::TABLE_2.to_vec(), false));
        let figure = |number| CompareOptions { figure: Some(number), ..CompareOptions::default() };
        assert_eq!((figure(3).kinds().0, figure(4).kinds().0), (Kind::FIGURE_3.to_vec(), Kind::FIGURE_4.to_vec()));
        assert_eq!((table_number("2"), figure_number("4")), (Ok(2), Ok(4)));
        assert!(table_number("4").is_err() && figure_number("x").unwrap_err().contains("`3` or `4`"));
        assert!(figure(4).same_data() && choices(&["react", "fireact"]).same_data() && !choices(&["autoact"]).same_data());
        let run = CompareOptions { run: Some("learnt".into()), ..CompareOptions::default() };
        assert!(run.asked());
        assert_eq!(run.kinds(), (vec![Kind::AutoAct], true));
        assert!("tree".parse::<Choice>().is_err());
    }

    /// `autoact eval` over two questions with a model of random weights.
    async fn eval(extra: &[&str]) -> anyhow::Result<(u8, String)> {
        let model = autoact_speaker::testing::tiny_model("llama3")?;
        let dir = tempfile::tempdir()?;
        let (pages, set, output) = (dir.path().join("pages.jsonl"), dir.path().join("set.jsonl"), dir.path().join("out.jsonl"));
        std::fs::write(&pages, "{\"title\": \"Loire\", \"text\": \"The Loire is a river in France.\"}\n")?;
        let questions = [
            "{\"question\": \"Where is the Loire?\", \"answer\": \"France\"}",
            "{\"question\": \"What is it?\", \"answer\": \"B\", \"options\": [\"a lake\", \"a river\"], \"kind\": \"choice\"}",
        ];
        std::fs::write(&set, questions.join("\n"))?;
        let tools = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpora/atlas/tools.toml");
        let text = |path: &std::path::Path| path.display().to_string();
        let (model, pages, set, output) = (text(model.path()), text(&pages), text(&set), text(&output));
        let fixed = ["autoact", "eval", "--adapters", "none", "--model", &model, "--corpus", &pages, "--tools", tools, "--set", &set];
        let given = ["--output", output.as_str(), "--shots", "0"];
        let args = crate::args::Args::try_parse_from(fixed.iter().chain(&given).chain(extra))?;
        let crate::args::Command::Eval(options) = args.command else { anyhow::bail!("another command") };
        let code = run(options).await?;
        Ok((code, std::fs::read_to_string(output)?))
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn every_planner_answers_every_question_once() {
        let (code, lines) = eval(&["--planner", "cot,chameleon"]).await.unwrap();
        let lines: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let what: Vec<(&str, &str)> =
            lines.iter().map(|line| (line["kind"].as_str().unwrap(), line["planner"].as_str().unwrap())).collect();
        assert_eq!(code, exit::OK);
        assert_eq!(what, [("questions", "cot"), ("questions", "chameleon"), ("choice", "cot"), ("choice", "chameleon")]);
        assert_eq!(lines[2]["question"], "What is it? Options: (A) a lake (B) a river");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_planner_without_its_adapters_is_refused_by_name_and_left_out_of_tables() {
        let error = eval(&["--planner", "autoact"]).await.unwrap_err().to_string();
        assert!(error.contains("`autoact` needs the adapters") && error.contains("--run DIR"), "{error}");
        let (code, lines) = eval(&["--table", "2", "--limit", "1"]).await.unwrap();
        assert_eq!((code, lines.lines().count()), (exit::OK, 1));
        assert!(lines.contains("\"planner\":\"zero-shot\""), "{lines}");
    }

    #[test]
    fn data_has_a_format() {
        let data = |format: &str| CompareOptions { data: vec![format.into(), "file".into()], ..CompareOptions::default() }.data();
        assert_eq!(data("hotpotqa").unwrap(), Some((Format::HotpotQa, "file".into())));
        assert!(data("trivia").unwrap_err().to_string().contains("`trivia`"));
    }
}
