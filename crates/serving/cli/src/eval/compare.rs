//! `autoact eval --planner …`: planners in this process, on the same questions, seeds and model.

pub(super) mod cast;
mod entrant;
pub(crate) mod options;
mod plot;
mod problem;
mod race;
mod scores;
pub(super) mod table;

use std::collections::BTreeSet;

use anyhow::Context as _;
use autoact_datasets::Format;

use crate::args::{EvalOptions, Protocol};
use crate::exit;
use crate::out;
use cast::PlannerSetup;
use problem::Problem;
use race::Race;

/// Questions of each level that the paper draws of HotpotQA.
const HOTPOTQA_OF_EACH: usize = 100;
/// Questions of each level that it draws of ScienceQA.
const SCIENCEQA_OF_EACH: usize = 120;

/// Everything that a race needs, read before it starts.
struct Prepared {
    setup: PlannerSetup,
    problems: Vec<Problem>,
    origin: String,
}

pub(crate) async fn run(options: EvalOptions) -> anyhow::Result<u8> {
    let (kinds, named) = options.compare.kinds();
    let asked = options.clone();
    let Prepared { setup, problems, origin } = tokio::task::spawn_blocking(move || prepare(&asked)).await.context("cannot load")??;
    let (kinds, left_out) = setup.possible(kinds, named)?;
    left_out.iter().for_each(|note| out::note(format_args!("left out: {note}")));
    let race = Race::run(setup, options.compare.entrants(&kinds), problems, &options).await?;
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
    let (origin, problems) = match options.compare.protocol {
        Some(Protocol::Paper) => sampled(origin, problems, options)?,
        None => {
            problems.truncate(options.limit.unwrap_or(usize::MAX));
            (origin, problems)
        }
    };
    anyhow::ensure!(!problems.is_empty(), "there are no questions in {origin}");
    let setup = PlannerSetup::load(&group, options, options.compare.same_data())?;
    Ok(Prepared { setup, problems, origin })
}

/// What the paper's protocol asks: so many questions of each level.
fn sampled(origin: String, problems: Vec<Problem>, options: &EvalOptions) -> anyhow::Result<(String, Vec<Problem>)> {
    let levels = problems.iter().map(|problem| &problem.label).collect::<BTreeSet<_>>().len().max(1);
    let of_each = match (options.limit, options.compare.data()?) {
        (Some(limit), _) => limit.div_ceil(levels),
        (None, Some((Format::HotpotQa, _))) => HOTPOTQA_OF_EACH,
        (None, Some((Format::ScienceQa, _))) => SCIENCEQA_OF_EACH,
        (None, None) => usize::MAX,
    };
    let problems = problem::drawn(problems, of_each, options.seed);
    let drawn = if of_each == usize::MAX { String::new() } else { format!(", at most {of_each} of each level") };
    Ok((format!("{origin}{drawn}, by the paper's protocol"), problems))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

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
        let tools = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../corpora/atlas/tools.toml");
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
}
