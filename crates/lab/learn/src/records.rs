//! The lines of the run directory's files.

use std::collections::HashSet;

use autoact_tools::ToolLibrary;
use autoact_trajectory::{Reflection, Step, Trajectory, Turn, Verdict};
use serde::{Deserialize, Serialize};

/// `questions.jsonl`: one entry of the database D.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionRecord {
    /// Which generation made it; `None`: an example of the task's.
    pub attempt: Option<u64>,
    /// The question.
    pub question: String,
    /// Its answer, true or not: nobody has checked it.
    pub answer: String,
    /// The options, if it is a multiple-choice question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The titles of the pages it is about.
    pub pages: Vec<String>,
}

/// `rejected.jsonl`: a generation that did not become a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedRecord {
    /// Which generation.
    pub attempt: u64,
    /// Why.
    pub cause: String,
    /// What the model wrote.
    pub text: String,
}

/// `tools.json`: T_s.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Selection {
    /// The selected tools' names, in the library's order.
    pub selected: Vec<String>,
    /// For every tool of the library, the share of the votes it stood in.
    pub votes: Vec<Vote>,
    /// How many votes there were.
    pub asked: usize,
}

/// One tool's votes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Vote {
    /// The tool.
    pub tool: String,
    /// Part of the votes it stood in.
    pub share: f64,
    /// Whether it is selected.
    pub selected: bool,
}

/// One turn of a history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TurnRecord {
    /// A planning loop.
    Step {
        /// τ
        thought: String,
        /// α^m
        tool: String,
        /// α^p, once filled in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<String>,
        /// o, once there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        observation: Option<String>,
    },
    /// A judgement.
    Reflection {
        /// τ^r
        reflection: String,
        /// α^r: `right` or `wrong`.
        verdict: String,
    },
}

/// A verdict's word.
pub(crate) fn verdict_of(word: &str) -> Verdict {
    if word == Verdict::Right.as_str() { Verdict::Right } else { Verdict::Wrong }
}

impl From<&Turn> for TurnRecord {
    fn from(turn: &Turn) -> TurnRecord {
        match turn {
            Turn::Step(Step { thought, tool, params, observation }) => {
                TurnRecord::Step { thought: thought.clone(), tool: tool.clone(), input: params.clone(), observation: observation.clone() }
            }
            Turn::Reflection(Reflection { thought, verdict }) => {
                TurnRecord::Reflection { reflection: thought.clone(), verdict: verdict.as_str().to_owned() }
            }
        }
    }
}

impl From<&TurnRecord> for Turn {
    fn from(turn: &TurnRecord) -> Turn {
        match turn.clone() {
            TurnRecord::Step { thought, tool, input, observation } => Turn::Step(Step { thought, tool, params: input, observation }),
            TurnRecord::Reflection { reflection, verdict } => {
                Turn::Reflection(Reflection { thought: reflection, verdict: verdict_of(&verdict) })
            }
        }
    }
}

/// The history that the agents are given: question, tools and turns. Tools that the library has lost are left out.
pub(crate) fn history(question: &str, tools: &[String], turns: &[TurnRecord], library: &ToolLibrary) -> Trajectory {
    Trajectory {
        question: question.to_owned(),
        tools: tools.iter().filter_map(|name| library.spec(name).cloned()).collect(),
        turns: turns.iter().map(Turn::from).collect(),
        ..Trajectory::default()
    }
}

/// `trajectories.jsonl` and `kept.jsonl`: one try at one question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrajectoryRecord {
    /// The question's line in `questions.jsonl`, from 0.
    pub id: usize,
    /// Which try.
    pub sample: usize,
    /// The question as the agents read it, options included.
    pub question: String,
    /// The answer in the database.
    pub gold: String,
    /// The answer given; empty if none was.
    pub answer: String,
    /// From 0 to 1.
    pub reward: f64,
    /// Why it ended without an answer; empty if it ended with one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failed: String,
    /// T_s
    pub tools: Vec<String>,
    /// H
    pub turns: Vec<TurnRecord>,
    /// Tokens read and written.
    pub tokens: [u64; 2],
    /// How long it took.
    pub millis: u64,
}

impl TrajectoryRecord {
    /// Whether the reward is full.
    pub fn is_right(&self) -> bool {
        self.reward >= 1.0
    }

    /// Whether it does the same thing twice: its answer may be right, its way is no example.
    pub fn repeats(&self) -> bool {
        let mut done = HashSet::new();
        self.turns.iter().any(|turn| match turn {
            TurnRecord::Step { tool, input: Some(input), .. } => !done.insert((tool, input)),
            _ => false,
        })
    }

    /// Whether it ends with an answer.
    pub fn has_answer(&self) -> bool {
        self.failed.is_empty()
    }
}

/// `reflections.jsonl`: the meta-agent's judgements of a history, drawn until one agrees with the reward.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReflectionRecord {
    /// The history: question and try.
    pub id: usize,
    /// Of the history.
    pub sample: usize,
    /// Whether its answer has reward 1.
    pub right: bool,
    /// The judgements in the order they were drawn; only the last can agree.
    pub draws: Vec<Judgement>,
}

/// (τ^r, α^r)
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// Why.
    pub thought: String,
    /// `right` or `wrong`.
    pub verdict: String,
}

impl ReflectionRecord {
    /// The judgement that agrees with the reward, if one was drawn.
    pub fn agreed(&self) -> Option<&Judgement> {
        self.draws.last().filter(|judgement| self.agrees(judgement))
    }

    /// Whether the meta-agent was right at once: what it is worth as a judge.
    pub fn first_agrees(&self) -> bool {
        self.draws.first().is_some_and(|judgement| self.agrees(judgement))
    }

    fn agrees(&self, judgement: &Judgement) -> bool {
        (verdict_of(&judgement.verdict) == Verdict::Right) == self.right
    }
}

/// `datasets/*.jsonl`: one document of an agent's training.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentRecord {
    /// Where it comes from.
    pub id: usize,
    /// Which try.
    pub sample: usize,
    /// Kept from training, to validate on.
    pub validation: bool,
    /// The role whose words are learned: `plan`, `tool`, `reflect`.
    pub role: String,
    /// The only tool whose parameters are learned; empty: every one's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tool: String,
    /// The question as the agents read it.
    pub question: String,
    /// T_s
    pub tools: Vec<String>,
    /// H
    pub turns: Vec<TurnRecord>,
    /// The words that are learned, as appendix I of the paper lists them: everything before each is its input.
    pub outputs: Vec<String>,
}

/// `training/*/curve.jsonl`: one step, or one look at the validation data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// The step.
    pub step: u64,
    /// Steps in all, if none stops early.
    pub total: u64,
    /// Mean loss of the step's targets, in nats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Mean loss of the validation documents' targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<f64>,
    /// Learning rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lr: Option<f64>,
    /// Tokens a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
}

/// `evaluation.jsonl`: one question answered by one row of the table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnswerRecord {
    /// Which group: `autoact`, `base`, …
    pub row: String,
    /// The question's line in the evaluation file, from 0.
    pub at: usize,
    /// Its kind, as the evaluation file calls it.
    pub kind: String,
    /// The question.
    pub question: String,
    /// The gold answer.
    pub gold: String,
    /// What was answered.
    pub answer: String,
    /// Exact match, or the right option.
    pub exact: bool,
    /// F1 over words.
    pub f1: f64,
    /// Whether Reflect-Agent approved of it.
    pub approved: bool,
    /// Planning loops.
    pub steps: u32,
    /// How long it took.
    pub millis: u64,
}

/// `held-out-judgements.jsonl`: a held-out history judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgementRecord {
    /// Who judges.
    pub row: String,
    /// The history.
    pub id: usize,
    /// Of the history.
    pub sample: usize,
    /// Whether its answer has reward 1.
    pub right: bool,
    /// Whether the judge says so.
    pub approved: bool,
}
