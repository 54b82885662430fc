//! The records in the run directory's JSON-lines files.

use std::collections::HashSet;

use autoact_tools::ToolLibrary;
use autoact_trajectory::{Reflection, Step, Trajectory, Turn, Verdict};
use serde::{Deserialize, Serialize};

/// `questions.jsonl`: one entry of the question database (D in the paper).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct QuestionRecord {
    /// The generation that produced it; `None` for an example of the task.
    pub attempt: Option<u64>,
    /// The question.
    pub question: String,
    /// Its answer; `None` if the pages have none. It may be wrong, because nobody has checked it.
    pub answer: Option<String>,
    /// The options, if it is a multiple-choice question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The titles of the pages it is about.
    pub pages: Vec<String>,
    /// Whether it is in the form of an example: then its pages lead from the first, which it names, to
    /// the one that has the answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub formed: bool,
    /// What its pages state that decides the answer, by page, where the answer could be guessed (yes
    /// or no, one of two names) and is certain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stated: Vec<StatedRecord>,
}

/// A value that a page states.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StatedRecord {
    /// The value.
    pub value: String,
    /// The words of its sentence that may name the relation (`born`, `credits`); empty: there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
}

/// `rejected.jsonl`: a rejected generation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedRecord {
    /// The generation's number.
    pub attempt: u64,
    /// The cause of the rejection.
    pub cause: String,
    /// The model's reply.
    pub text: String,
}

/// `tools.json`: the selected tools (T_s in the paper).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Selection {
    /// The selected tools' names, in the library's order.
    pub selected: Vec<String>,
    /// The votes for every tool of the library.
    pub votes: Vec<Vote>,
    /// Number of votes in all.
    pub asked: usize,
    /// How many sentences of a page the tools show at most (`select.sentences`); 0: as the library says.
    #[serde(default)]
    pub sentences: usize,
}

/// The votes for one tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Vote {
    /// The tool.
    pub tool: String,
    /// Fraction of the votes that named the tool.
    pub share: f64,
    /// Whether it is selected.
    pub selected: bool,
}

/// One turn of a history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TurnRecord {
    /// A step.
    Step {
        /// The thought, τ.
        thought: String,
        /// The tool's name, α^m.
        tool: String,
        /// The parameters, α^p; absent until they are filled in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<String>,
        /// The observation, o; absent until the tool has run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        observation: Option<String>,
    },
    /// A reflection.
    Reflection {
        /// The reflection's text, τ^r.
        reflection: String,
        /// The verdict, α^r: `right` or `wrong`.
        verdict: String,
    },
}

/// Parses a verdict; anything but `right` is wrong.
pub(crate) fn verdict_of(word: &str) -> Verdict {
    if word == Verdict::Right.as_str() { Verdict::Right } else { Verdict::Wrong }
}

impl From<&Turn> for TurnRecord {
    fn from(turn: &Turn) -> TurnRecord {
        match turn {
            Turn::Step(Step { thought, tool, params, observation, artifacts: _, sources: _ }) => {
                TurnRecord::Step { thought: thought.clone(), tool: tool.clone(), input: params.clone(), observation: observation.clone() }
            }
            Turn::Reflection(Reflection { thought, verdict, .. }) => {
                TurnRecord::Reflection { reflection: thought.clone(), verdict: verdict.as_str().to_owned() }
            }
        }
    }
}

impl From<&TurnRecord> for Turn {
    fn from(turn: &TurnRecord) -> Turn {
        match turn.clone() {
            TurnRecord::Step { thought, tool, input, observation } => {
                Turn::Step(Step { thought, tool, params: input, observation, ..Step::default() })
            }
            TurnRecord::Reflection { reflection, verdict } => Turn::Reflection(Reflection::new(reflection, verdict_of(&verdict))),
        }
    }
}

/// The history that agents get: question, tools and turns. Tools that are no longer in the library
/// are left out.
pub(crate) fn history(question: &str, tools: &[String], turns: &[TurnRecord], library: &ToolLibrary) -> Trajectory {
    Trajectory {
        question: question.to_owned(),
        tools: tools.iter().filter_map(|name| library.spec(name).cloned()).collect(),
        turns: turns.iter().map(Turn::from).collect(),
        ..Trajectory::default()
    }
}

/// `trajectories.jsonl` and `kept.jsonl`: one try at one question.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TrajectoryRecord {
    /// The question's line in `questions.jsonl`, counted from 0.
    pub id: usize,
    /// The number of the try, from 0.
    pub sample: usize,
    /// The question as agents read it, with its options.
    pub question: String,
    /// The answer in the database; `None` if the question has none.
    pub gold: Option<String>,
    /// What decides an answer that could be guessed ([`QuestionRecord::stated`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stated: Vec<StatedRecord>,
    /// The answer given; empty if there is none.
    pub answer: String,
    /// Whether it ends by saying that there is no answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_answer: bool,
    /// Whether it follows the known path to the answer (`synthesize.hints`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hinted: bool,
    /// The reward, from 0 to 1.
    pub reward: f64,
    /// Why it came to no end; empty if it did.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failed: String,
    /// The names of the tools, T_s.
    pub tools: Vec<String>,
    /// The turns, H.
    pub turns: Vec<TurnRecord>,
    /// Numbers of prompt tokens and of generated tokens.
    pub tokens: [u64; 2],
    /// Duration in milliseconds.
    pub millis: u64,
}

impl TrajectoryRecord {
    /// Whether the reward is 1.
    pub fn is_right(&self) -> bool {
        self.reward >= 1.0
    }

    /// Whether it has the same action twice. Such a trajectory is no good example, even if its
    /// answer is right.
    pub fn repeats(&self) -> bool {
        let mut done = HashSet::new();
        self.turns.iter().any(|turn| match turn {
            TurnRecord::Step { tool, input: Some(input), .. } => !done.insert((tool, input)),
            _ => false,
        })
    }

    /// What could follow where this trajectory was rejected: its turns with the judgement, and the
    /// steps of `next` from where they differ. The number counts the turns up to the judgement.
    ///
    /// Tries begin with the same steps more often than not, and their observations are in the history
    /// already. The last step is always kept: `next` may be the same trajectory, whose rejection was a
    /// mistake.
    pub(crate) fn rejected(&self, judgement: &Judgement, next: &TrajectoryRecord) -> (TrajectoryRecord, usize) {
        let action = |turn: &TurnRecord| match turn {
            TurnRecord::Step { tool, input, .. } => Some((tool.clone(), input.clone())),
            TurnRecord::Reflection { .. } => None,
        };
        let same = self.turns.iter().zip(&next.turns).take_while(|(mine, its)| action(mine) == action(its)).count();
        let new = &next.turns[same.min(next.turns.len().saturating_sub(1))..];
        let mut turns = self.turns.clone();
        turns.push(TurnRecord::Reflection { reflection: judgement.thought.clone(), verdict: judgement.verdict.clone() });
        let rejected = turns.len();
        turns.extend_from_slice(new);
        (TrajectoryRecord { turns, ..next.clone() }, rejected)
    }

    /// What Plan-Agent thought, step by step.
    pub fn thoughts(&self) -> impl Iterator<Item = &str> {
        self.turns.iter().filter_map(|turn| match turn {
            TurnRecord::Step { thought, .. } => Some(thought.as_str()),
            TurnRecord::Reflection { .. } => None,
        })
    }

    /// Whether it ends with an answer, or with there being none.
    pub fn has_answer(&self) -> bool {
        self.failed.is_empty()
    }
}

/// `reflections.jsonl`: judgements of a trajectory, generated until one agrees with the reward.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReflectionRecord {
    /// The trajectory's question.
    pub id: usize,
    /// The number of the trajectory's try.
    pub sample: usize,
    /// Whether the trajectory's answer has reward 1.
    pub right: bool,
    /// The judgements in order; only the last one can both agree with the reward and cover the
    /// question.
    pub draws: Vec<Judgement>,
    /// Whether the last one does not cover the question (`filter.coverage`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub off_topic: bool,
}

/// A judgement (τ^r, α^r).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// The reason.
    pub thought: String,
    /// `right` or `wrong`.
    pub verdict: String,
}

impl ReflectionRecord {
    /// The judgement that agrees with the reward and covers the question, if there is one.
    pub fn agreed(&self) -> Option<&Judgement> {
        self.draws.last().filter(|judgement| self.agrees(judgement) && !self.off_topic)
    }

    /// The first judgement that rejects the answer, with or without reason.
    pub(crate) fn rejection(&self) -> Option<&Judgement> {
        self.draws.iter().find(|judgement| verdict_of(&judgement.verdict) == Verdict::Wrong)
    }

    /// Whether the first judgement agrees with the reward. It measures the model as a judge.
    pub fn first_agrees(&self) -> bool {
        self.draws.first().is_some_and(|judgement| self.agrees(judgement))
    }

    /// Whether a judgement agrees with the reward.
    pub(crate) fn agrees(&self, judgement: &Judgement) -> bool {
        (verdict_of(&judgement.verdict) == Verdict::Right) == self.right
    }
}

/// `datasets/*.jsonl`: one training document of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentRecord {
    /// The trajectory's question.
    pub id: usize,
    /// The number of the trajectory's try.
    pub sample: usize,
    /// Whether it is for validation only.
    pub validation: bool,
    /// The role whose text is the target: `plan`, `tool` or `reflect`.
    pub role: String,
    /// The only tool whose parameters are targets; empty for all tools.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tool: String,
    /// The question as agents read it, with its options.
    pub question: String,
    /// The names of the tools, T_s.
    pub tools: Vec<String>,
    /// The turns, H.
    pub turns: Vec<TurnRecord>,
    /// The first of them that are a rejected attempt. No text of these is a target.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rejected: usize,
    /// The target texts, as in appendix I of the paper. The input of each is everything before it.
    pub outputs: Vec<String>,
}

// serde passes a reference
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// `training/*/curve.jsonl`: one training step, or one validation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// The step.
    pub step: u64,
    /// Number of steps without an early stop.
    pub total: u64,
    /// Mean loss over the step's targets, in nats per token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Mean loss over the validation documents' targets, in nats per token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<f64>,
    /// The step's learning rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lr: Option<f64>,
    /// Tokens per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
}

/// `evaluation.jsonl`: one question answered by one row of the results table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnswerRecord {
    /// The row: `autoact`, `base`, …
    pub row: String,
    /// The question's line in the evaluation file, counted from 0.
    pub at: usize,
    /// Its kind, from the evaluation file.
    pub kind: String,
    /// The question.
    pub question: String,
    /// The gold answer; `None` if the question has none.
    pub gold: Option<String>,
    /// The answer given.
    pub answer: String,
    /// Whether the group said that there is no answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_answer: bool,
    /// Whether it matches exactly, or is the right option.
    pub exact: bool,
    /// F1 over words, from 0 to 1.
    pub f1: f64,
    /// Whether Reflect-Agent approved it.
    pub approved: bool,
    /// Number of steps.
    pub steps: u32,
    /// Duration in milliseconds.
    pub millis: u64,
}

/// `held-out-judgements.jsonl`: the judgement of a validation trajectory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgementRecord {
    /// The row whose Reflect-Agent judged.
    pub row: String,
    /// The trajectory's question.
    pub id: usize,
    /// The number of the trajectory's try.
    pub sample: usize,
    /// Whether the trajectory's answer has reward 1.
    pub right: bool,
    /// Whether the judge approved it.
    pub approved: bool,
}
