//! Which planners `autoact eval` compares, and on what.

use std::path::PathBuf;
use std::str::FromStr;

use autoact_datasets::Format;
use autoact_planners::{Kind, UnknownPlanner};
use clap::Args;

use super::entrant::Entrant;
use crate::args::Protocol;

/// What runs planners in this process instead of the services.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CompareOptions {
    /// Run these planners in this process instead of the services, on the same questions and seeds:
    /// `autoact`, `react` and so on, comma-separated, or `all`.
    #[arg(long, value_delimiter = ',', value_name = "NAME", conflicts_with = "running")]
    planner: Vec<Choice>,
    /// Run the planners of this table of the AutoAct paper: 1 (all methods), 2 (without one part
    /// each) or 5 (rounds).
    #[arg(long, value_name = "NUMBER", value_parser = table_number, conflicts_with_all = ["planner", "running"])]
    table: Option<u8>,
    /// Run the groups of this figure of the AutoAct paper: 3 (by number of training trajectories)
    /// or 4 (one agent, three, a Tool-Agent for each tool). They come from
    /// `autoact learn --variants`.
    #[arg(long, value_name = "NUMBER", value_parser = figure_number, requires = "run", conflicts_with_all = ["planner", "table", "running"])]
    figure: Option<u8>,
    /// Write a plot, one HTML file without anything from elsewhere: the planners' scores, or
    /// precision against coverage where no planner is named.
    #[arg(long, value_name = "FILE")]
    pub(in crate::eval) plot: Option<PathBuf>,
    /// A directory of `autoact learn`: its adapters in place of `--adapters`, the tools it
    /// selected, and with `--table` or `--figure` those that it trained for comparison, all on the
    /// first round's trajectories.
    #[arg(long, value_name = "DIR", conflicts_with = "running")]
    pub(crate) run: Option<PathBuf>,
    /// Published questions in place of `--set`: `hotpotqa FILE` (each question's own paragraphs are
    /// its corpus) or `scienceqa FILE`.
    #[arg(long, num_args = 2, value_names = ["FORMAT", "FILE"], conflicts_with_all = ["set", "counterfactual", "running"])]
    data: Vec<String>,
    /// Worked examples in the prompts of planners that are prompted rather than trained [default: 2
    /// for a model with a chat template, else 0]
    #[arg(long, value_name = "COUNT")]
    pub(super) shots: Option<usize>,
    /// The paper's way of testing: ten rounds and two attempts, of which the first one is judged, and
    /// no calibration; 100 questions of each level of HotpotQA, 120 of ScienceQA, drawn by `--seed`.
    /// Below each planner's own row stands the better of two tries; Reflexion is told what is right.
    #[arg(long, value_enum, conflicts_with = "running")]
    pub(super) protocol: Option<Protocol>,
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
        let planners = !self.planner.is_empty() || self.table.is_some() || self.figure.is_some();
        planners || self.run.is_some() || !self.data.is_empty() || self.protocol.is_some()
    }

    /// Whether what is compared has to be trained on the same trajectories.
    pub(super) fn same_data(&self) -> bool {
        self.table.is_some() || self.figure.is_some() || self.planner.iter().any(Choice::is_trained_for_comparison)
    }

    /// The planners, and whether each was asked for by name.
    pub(super) fn kinds(&self) -> (Vec<Kind>, bool) {
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

    /// The rows of these planners.
    pub(super) fn entrants(&self, kinds: &[Kind]) -> Vec<Entrant> {
        match self.protocol {
            None => kinds.iter().copied().map(Entrant::Once).collect(),
            Some(Protocol::Paper) => kinds.iter().flat_map(|kind| [Entrant::Once(*kind), Entrant::paper(*kind)]).collect(),
        }
    }

    /// The format and the file of `--data`.
    pub(super) fn data(&self) -> anyhow::Result<Option<(Format, PathBuf)>> {
        match self.data.as_slice() {
            [format, file] => Ok(Some((format.parse()?, PathBuf::from(file)))),
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn the_papers_rows_stand_below_our_own() {
        let paper = CompareOptions { protocol: Some(Protocol::Paper), ..choices(&["react", "reflexion"]) };
        let names: Vec<String> = paper.entrants(&paper.kinds().0).iter().map(ToString::to_string).collect();
        assert_eq!(names, ["react", "react-best-of-2", "reflexion", "reflexion-told"]);
        let alone = CompareOptions { protocol: Some(Protocol::Paper), ..CompareOptions::default() };
        assert!(alone.asked());
        assert_eq!(choices(&["cot"]).entrants(&[Kind::Cot]), [Entrant::Once(Kind::Cot)]);
    }

    #[test]
    fn data_has_a_format() {
        let data = |format: &str| CompareOptions { data: vec![format.into(), "file".into()], ..CompareOptions::default() }.data();
        assert_eq!(data("hotpotqa").unwrap(), Some((Format::HotpotQa, "file".into())));
        assert!(data("trivia").unwrap_err().to_string().contains("`trivia`"));
    }
}
