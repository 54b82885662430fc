//! The scores of a race: per planner, per kind of question, and against the first planner.

use std::collections::BTreeMap;
use std::time::Duration;

use autoact_planners::{Ended, Outcome};
use autoact_score::{Bootstrap, Discrimination, Interval, Metric, Verdicts};
use serde_json::{Value, json};

use super::entrant::Entrant;
use super::problem::{Problem, said};
use crate::args::EvalOptions;

/// One answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scored {
    /// Exactly right.
    pub(crate) right: bool,
    /// F1, or the accuracy of multiple choice.
    pub(crate) reward: f64,
    approved: Option<bool>,
    /// Of each judged answer with a confidence: that, and whether it is right.
    judged: Vec<(f64, bool)>,
    rounds: u32,
    calls: u32,
    tokens: u64,
    seconds: f64,
    failed: Option<String>,
}

impl Scored {
    pub(crate) fn new(problem: &Problem, outcome: &Outcome) -> Scored {
        let (right, reward) = problem.score(said(outcome));
        // that there is no answer needs no confidence
        let answers = outcome.judgements.iter().filter_map(|one| one.answer.as_deref().zip(one.confidence));
        Scored {
            right,
            reward,
            approved: outcome.approved,
            judged: answers.map(|(answer, confidence)| (confidence, problem.score(Some(answer)).0)).collect(),
            rounds: outcome.steps,
            calls: outcome.cost.calls,
            tokens: outcome.cost.completion_tokens,
            seconds: outcome.cost.time.as_secs_f64(),
            failed: match &outcome.ended {
                Ended::Failed(why) => Some(why.clone()),
                _ => None,
            },
        }
    }
}

/// All scores.
pub(crate) struct Scores {
    pub(crate) origin: String,
    pub(crate) model: String,
    /// sha256 (hex) of its weights.
    pub(crate) digest: String,
    pub(crate) left_out: Vec<String>,
    pub(crate) entrants: Vec<Entrant>,
    /// Each question's row.
    pub(crate) labels: Vec<String>,
    pub(crate) metric: Metric,
    /// By question, then by planner; `None`: it did not come to that.
    pub(crate) scored: Vec<Vec<Option<Scored>>>,
    pub(crate) elapsed: Duration,
    pub(crate) interrupted: bool,
}

/// One planner on some questions.
pub(crate) struct Row {
    pub(crate) questions: usize,
    pub(crate) exact: Interval,
    pub(crate) reward: Interval,
    pub(crate) rounds: f64,
    pub(crate) calls: f64,
    pub(crate) tokens: f64,
    pub(crate) seconds: f64,
    /// `None`: the planner has no judge.
    pub(crate) verdicts: Option<Verdicts>,
    /// What its confidences tell of all judged answers; `None`: it has none, or they tell nothing.
    pub(crate) discrimination: Option<Discrimination>,
    /// How many questions it could not go on with, and why the first.
    pub(crate) failed: Option<(usize, String)>,
}

/// One planner against the first, on the questions that both answered.
pub(crate) struct Difference {
    pub(crate) entrant: Entrant,
    pub(crate) questions: usize,
    pub(crate) exact: Interval,
    pub(crate) reward: Interval,
}

/// Resamples like everything that is printed: the same results give the same intervals.
fn bootstrap() -> Bootstrap {
    Bootstrap::default()
}

fn number(right: bool) -> f64 {
    f64::from(u8::from(right))
}

impl Scores {
    /// The kinds of questions, in the order of their names.
    pub(crate) fn rows(&self) -> Vec<&str> {
        let mut labels: Vec<&str> = self.labels.iter().map(String::as_str).collect();
        labels.sort_unstable();
        labels.dedup();
        labels
    }

    /// What the exact and the graded score are called.
    pub(crate) fn score_names(&self) -> (&'static str, &'static str) {
        match self.metric {
            Metric::F1 => ("exact match", "F1"),
            Metric::ExactMatch => ("exact match", "reward"),
            Metric::MultipleChoice => ("accuracy", "reward"),
        }
    }

    fn of(&self, planner: usize, label: Option<&str>) -> Vec<&Scored> {
        let wanted = |question: &usize| label.is_none_or(|label| self.labels.get(*question).is_some_and(|own| own == label));
        let scored = |question: usize| self.scored.get(question)?.get(planner)?.as_ref();
        (0..self.scored.len()).filter(wanted).filter_map(scored).collect()
    }

    /// A planner's row over all questions, or over one kind of them.
    pub(crate) fn row(&self, planner: usize, label: Option<&str>) -> Row {
        let scored = self.of(planner, label);
        // an empty sum of floats is -0
        let mean =
            |value: fn(&Scored) -> f64| scored.iter().map(|one| value(one)).fold(0.0, |sum, one| sum + one) / scored.len().max(1) as f64;
        let values = |value: fn(&Scored) -> f64| scored.iter().map(|one| value(one)).collect::<Vec<f64>>();
        let judged: Verdicts = scored.iter().filter_map(|one| Some((one.approved?, one.right))).collect();
        let confidences: Vec<Vec<(f64, bool)>> = scored.iter().map(|one| one.judged.clone()).collect();
        let failures: Vec<&String> = scored.iter().filter_map(|one| one.failed.as_ref()).collect();
        Row {
            questions: scored.len(),
            exact: bootstrap().mean(&values(|one| number(one.right))),
            reward: bootstrap().mean(&values(|one| one.reward)),
            rounds: mean(|one| f64::from(one.rounds)),
            calls: mean(|one| f64::from(one.calls)),
            tokens: mean(|one| one.tokens as f64),
            seconds: mean(|one| one.seconds),
            verdicts: (judged.total() > 0).then_some(judged),
            discrimination: Discrimination::of(&confidences),
            failed: failures.first().map(|first| (failures.len(), (*first).clone())),
        }
    }

    /// Every other planner against the first.
    pub(crate) fn differences(&self) -> Vec<Difference> {
        let against = |(planner, entrant): (usize, &Entrant)| {
            let pair = |row: &Vec<Option<Scored>>| Some((row.get(planner)?.clone()?, row.first()?.clone()?));
            let pairs: Vec<(Scored, Scored)> = self.scored.iter().filter_map(pair).collect();
            let paired = |value: fn(&Scored) -> f64| {
                let (own, first): (Vec<f64>, Vec<f64>) = pairs.iter().map(|(own, first)| (value(own), value(first))).unzip();
                bootstrap().paired(&own, &first).unwrap_or(Interval { mean: 0.0, low: 0.0, high: 0.0 })
            };
            Difference {
                entrant: *entrant,
                questions: pairs.len(),
                exact: paired(|one| number(one.right)),
                reward: paired(|one| one.reward),
            }
        };
        self.entrants.iter().enumerate().skip(1).map(against).collect()
    }

    /// For programs.
    pub(crate) fn json(&self, options: &EvalOptions) -> Value {
        let planners: Vec<Value> = self
            .entrants
            .iter()
            .enumerate()
            .map(|(planner, entrant)| {
                let kinds: BTreeMap<&str, Value> =
                    self.rows().into_iter().map(|label| (label, row_json(&self.row(planner, Some(label))))).collect();
                json!({ "planner": entrant.to_string(), "title": entrant.title(), "all": row_json(&self.row(planner, None)), "kinds": kinds })
            })
            .collect();
        let differences: Vec<Value> = self
            .differences()
            .iter()
            .map(|one| json!({ "planner": one.entrant.to_string(), "questions": one.questions, "exact_match": one.exact, "reward": one.reward }))
            .collect();
        json!({
            "questions_from": self.origin, "model": self.model, "model_digest": self.digest, "metric": self.metric, "questions": self.labels.len(), "seed": options.seed,
            "temperature": options.temperature, "concurrency": options.concurrency, "seconds": self.elapsed.as_secs_f64(),
            "interrupted": self.interrupted, "interval_level": bootstrap().level, "resamples": bootstrap().resamples,
            "planners": planners, "difference_from": self.entrants.first().map(ToString::to_string), "differences": differences,
            "left_out": self.left_out,
        })
    }
}

fn row_json(row: &Row) -> Value {
    json!({
        "questions": row.questions, "exact_match": row.exact, "reward": row.reward, "rounds": row.rounds, "calls": row.calls,
        "completion_tokens": row.tokens, "seconds": row.seconds, "failed": row.failed.as_ref().map_or(0, |(count, _)| *count),
        "approved": row.verdicts.map(|verdicts| verdicts.approved() as f64 / verdicts.total().max(1) as f64),
        "precision_of_approval": row.verdicts.and_then(|verdicts| verdicts.precision()),
        "recall_of_approval": row.verdicts.and_then(|verdicts| verdicts.recall()),
        "verdicts": row.verdicts,
        "discrimination": row.discrimination,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use autoact_planners::Kind;

    use super::*;

    fn scored(right: bool, approved: Option<bool>, rounds: u32) -> Option<Scored> {
        let failed = (rounds == 0).then(|| "the prompt is too long".to_owned());
        let judged = approved.iter().flat_map(|_| [(0.5 + 0.1 * f64::from(rounds), right), (0.1, false)]).collect();
        Some(Scored { right, reward: number(right), approved, judged, rounds, calls: rounds * 2, tokens: 10, seconds: 0.5, failed })
    }

    /// Two planners over four questions of two kinds; the second planner did not get to the last
    /// one.
    pub(crate) fn scores() -> Scores {
        Scores {
            origin: "set test".into(),
            model: "scripted".into(),
            digest: "0123456789abcdef".into(),
            left_out: Vec::new(),
            entrants: vec![Entrant::Once(Kind::AutoAct), Entrant::Once(Kind::React)],
            labels: ["1-hop", "2-hop", "1-hop", "2-hop"].map(str::to_owned).to_vec(),
            metric: Metric::F1,
            scored: vec![
                vec![scored(true, Some(true), 2), scored(true, None, 3)],
                vec![scored(true, Some(false), 4), scored(false, None, 5)],
                vec![scored(true, Some(true), 2), scored(false, None, 0)],
                vec![scored(false, Some(true), 4), None],
            ],
            elapsed: Duration::from_secs(1),
            interrupted: true,
        }
    }

    #[test]
    fn rows_count_what_was_answered() {
        let scores = scores();
        let row = scores.row(0, None);
        assert_eq!((row.questions, row.exact.mean, row.rounds), (4, 0.75, 3.0));
        assert_eq!(row.verdicts, Some(Verdicts { approved_right: 2, approved_wrong: 1, rejected_right: 1, rejected_wrong: 0 }));
        assert_eq!(scores.row(0, Some("1-hop")).exact, Interval { mean: 1.0, low: 1.0, high: 1.0 });
        let other = scores.row(1, None);
        assert_eq!((other.questions, other.verdicts), (3, None));
        assert_eq!(other.failed, Some((1, "the prompt is too long".into())));
        assert_eq!(scores.rows(), ["1-hop", "2-hop"]);
    }

    #[test]
    fn differences_are_over_common_questions() {
        let differences = scores().differences();
        assert_eq!((differences.len(), differences[0].entrant, differences[0].questions), (1, Entrant::Once(Kind::React), 3));
        assert!((differences[0].exact.mean + 2.0 / 3.0).abs() < 1e-9);
        assert!(differences[0].exact.low < differences[0].exact.high);
    }
}
