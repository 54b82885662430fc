//! The numbers of a task, every one with a default.

use autoact_train::{Decay, Linear, LoraConfig, Precision};
use serde::{Deserialize, Serialize};

/// More rounds have brought nothing more.
const MOST_ROUNDS: usize = 9;

/// All numbers of a task.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Settings {
    /// `[instruct]`
    pub instruct: Instruct,
    /// `[select]`
    pub select: Select,
    /// `[synthesize]`
    pub synthesize: Synthesize,
    /// `[filter]`
    pub filter: Filter,
    /// `[reflect]`
    pub reflect: Reflect,
    /// `[differentiate]`
    pub differentiate: Differentiate,
    /// `[train]`
    pub train: Training,
    /// `[iterate]`
    pub iterate: Iterate,
    /// `[evaluate]`
    pub evaluate: Evaluate,
}

/// `[instruct]`: self-instruct.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Instruct {
    /// Questions in the database, the examples included, at which it is large enough.
    pub questions: usize,
    /// Generations at most.
    pub attempts: u64,
    /// Examples in a prompt, drawn anew for each generation.
    pub shots: usize,
    /// Sampling temperature.
    pub temperature: f32,
    /// Generations of a round: they see the database as it stood before the round.
    pub round: usize,
    /// Tokens of a prompt at most; shots are left out to keep to it.
    pub prompt_tokens: usize,
    /// How often a prompt shows one page, two linked ones, three linked ones, or two of one kind, in proportion.
    pub pages: [f64; 4],
    /// From this share of common word pairs on, two questions are near-duplicates.
    pub similarity: f64,
    /// Answers have to stand in the pages shown (but for yes and no).
    pub grounded: bool,
}

impl Default for Instruct {
    fn default() -> Self {
        Instruct {
            questions: 400,
            attempts: 6000,
            shots: 3,
            temperature: 0.8,
            round: 32,
            prompt_tokens: 560,
            pages: [0.3, 0.3, 0.2, 0.2],
            // "What is the capital of Peru?" and "What is the capital of Chad?" share 5 of 9 pairs
            similarity: 0.75,
            grounded: true,
        }
    }
}

/// `[select]`: which tools the task needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Select {
    /// How often the meta-agent is asked, each time about other questions.
    pub votes: usize,
    /// Questions shown in a vote.
    pub questions: usize,
    /// Sampling temperature.
    pub temperature: f32,
    /// A tool is kept from this share of the votes on.
    pub share: f64,
}

impl Default for Select {
    fn default() -> Self {
        // a tool that one question in ten needs stands in about a third of the votes on three questions
        Select { votes: 24, questions: 3, temperature: 0.5, share: 0.15 }
    }
}

/// `[synthesize]`: trajectories.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Synthesize {
    /// Trajectories of each question.
    pub samples: usize,
    /// Sampling temperature.
    pub temperature: f32,
    /// Planning loops at most.
    pub max_steps: u32,
    /// Seconds of a trajectory at most.
    pub seconds: u64,
}

impl Default for Synthesize {
    fn default() -> Self {
        Synthesize { samples: 4, temperature: 0.7, max_steps: 10, seconds: 60 }
    }
}

/// `[filter]`: which trajectories with reward 1 are kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Filter {
    /// Right answers to a question that can be guessed (yes or no, one of two) count from this part of its trajectories on.
    pub sure: f64,
    /// Right trajectories are dropped whose thoughts take less than this part of their words (the usual ones aside) from what was read
    /// before; 0: none, but the best grounded come first all the same.
    pub grounded: f64,
}

impl Default for Filter {
    fn default() -> Self {
        Filter { sure: 0.75, grounded: 0.0 }
    }
}

/// `[reflect]`: judgements of right and wrong histories.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reflect {
    /// Judgements drawn of a history until one agrees with the reward.
    pub draws: usize,
    /// Sampling temperature.
    pub temperature: f32,
    /// Wrong histories of one question at most.
    pub wrong_per_question: usize,
}

impl Default for Reflect {
    fn default() -> Self {
        Reflect { draws: 4, temperature: 0.7, wrong_per_question: 2 }
    }
}

/// `[differentiate]`: the data sets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Differentiate {
    /// Part of the questions whose trajectories are kept from training, to validate on.
    pub validation: f64,
    /// Different right trajectories of one question at most.
    pub per_question: usize,
    /// Right trajectories at most; 0: all. The paper trains on 200.
    pub trajectories: usize,
}

impl Default for Differentiate {
    fn default() -> Self {
        Differentiate { validation: 0.1, per_question: 2, trajectories: 0 }
    }
}

/// `[train]`: the LoRA trainings; the defaults are table 4's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Training {
    /// Passes over the data.
    pub epochs: u64,
    /// Peak learning rate. If it is not given: the paper's 1e-4 for a model 4096 wide, more for narrower ones in proportion.
    pub learning_rate: Option<f64>,
    /// Rows of `sequence` tokens in a batch; a row holds several short trajectories.
    pub batch: usize,
    /// Batches summed into one step.
    pub accumulation: usize,
    /// Tokens in a row, and of a trajectory at most.
    pub sequence: usize,
    /// Part of the steps that warms the learning rate up.
    pub warmup_ratio: f64,
    /// How the learning rate falls.
    pub decay: Decay,
    /// Decoupled weight decay.
    pub weight_decay: f64,
    /// Largest global gradient norm; 0: no clipping.
    pub clip: f64,
    /// Epochs without a better validation loss after which a training stops; 0: never.
    pub patience: u64,
    /// The number format of matrix products.
    pub precision: Precision,
    /// The adapters.
    pub lora: Lora,
}

impl Default for Training {
    fn default() -> Self {
        Training {
            epochs: 5,
            learning_rate: None,
            batch: 4,
            accumulation: 1,
            sequence: 640,
            warmup_ratio: 0.03,
            decay: Decay::Cosine,
            weight_decay: 0.0,
            clip: 1.0,
            patience: 2,
            precision: Precision::F32,
            lora: Lora::default(),
        }
    }
}

/// `[train.lora]`: table 4.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Lora {
    /// Rank.
    pub r: usize,
    /// Scale: alpha / r.
    pub alpha: f64,
    /// Chance of dropping an input element.
    pub dropout: f64,
    /// Which linear layers get an adapter.
    pub target_modules: Vec<Linear>,
}

impl Default for Lora {
    fn default() -> Self {
        Lora { r: 8, alpha: 16.0, dropout: 0.05, target_modules: vec![Linear::Q, Linear::V] }
    }
}

impl Lora {
    /// The trainer's settings.
    pub fn config(&self, base: &str) -> LoraConfig {
        LoraConfig {
            r: self.r,
            alpha: self.alpha,
            dropout: self.dropout,
            target_modules: self.target_modules.clone(),
            base_model: Some(base.to_owned()),
        }
    }
}

/// `[iterate]`: beyond the paper, the differentiated group goes on from where the meta-agent began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Iterate {
    /// Rounds of synthesis and training at most, the meta-agent's own included; at most 9.
    pub rounds: usize,
}

impl Default for Iterate {
    fn default() -> Self {
        Iterate { rounds: 2 }
    }
}

/// `[evaluate]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Evaluate {
    /// Questions of the evaluation file that are asked, drawn evenly over it; 0: all.
    pub questions: usize,
}

impl Default for Evaluate {
    fn default() -> Self {
        Evaluate { questions: 160 }
    }
}

impl Settings {
    /// Small numbers that run every stage in a few minutes, for CI. What comes out is not worth much.
    #[must_use]
    pub fn quick(mut self) -> Settings {
        self.instruct.questions = self.instruct.questions.min(48);
        self.instruct.attempts = self.instruct.attempts.min(400);
        self.select.votes = self.select.votes.min(8);
        self.synthesize.samples = self.synthesize.samples.min(2);
        self.reflect.draws = self.reflect.draws.min(2);
        self.train.epochs = self.train.epochs.min(2);
        self.iterate.rounds = self.iterate.rounds.min(2);
        self.evaluate.questions = 24;
        self
    }

    /// Adds what is out of range to `mistakes`.
    pub(crate) fn check(&self, mistakes: &mut Vec<String>) {
        let mut rule = |ok: bool, key: &str, found: String, expected: &str| {
            if !ok {
                mistakes.push(format!("`{key}` is `{found}`; expected {expected}"));
            }
        };
        let counts = [
            ("instruct.questions", self.instruct.questions),
            ("instruct.attempts", usize::try_from(self.instruct.attempts).unwrap_or(usize::MAX)),
            ("instruct.shots", self.instruct.shots),
            ("instruct.round", self.instruct.round),
            ("instruct.prompt_tokens", self.instruct.prompt_tokens),
            ("select.votes", self.select.votes),
            ("select.questions", self.select.questions),
            ("synthesize.samples", self.synthesize.samples),
            ("synthesize.max_steps", self.synthesize.max_steps as usize),
            ("synthesize.seconds", usize::try_from(self.synthesize.seconds).unwrap_or(usize::MAX)),
            ("reflect.draws", self.reflect.draws),
            ("differentiate.per_question", self.differentiate.per_question),
            ("iterate.rounds", self.iterate.rounds),
            ("train.epochs", usize::try_from(self.train.epochs).unwrap_or(usize::MAX)),
            ("train.batch", self.train.batch),
            ("train.accumulation", self.train.accumulation),
            ("train.sequence", self.train.sequence),
            ("train.lora.r", self.train.lora.r),
            ("train.lora.target_modules", self.train.lora.target_modules.len()),
        ];
        for (key, value) in counts {
            rule(value > 0, key, value.to_string(), "1 or more");
        }
        let temperatures = [
            ("instruct.temperature", self.instruct.temperature),
            ("select.temperature", self.select.temperature),
            ("synthesize.temperature", self.synthesize.temperature),
            ("reflect.temperature", self.reflect.temperature),
        ];
        for (key, value) in temperatures {
            rule((0.0..=10.0).contains(&value), key, value.to_string(), "0 to 10");
        }
        let parts = [
            ("instruct.similarity", self.instruct.similarity),
            ("select.share", self.select.share),
            ("filter.sure", self.filter.sure),
            ("filter.grounded", self.filter.grounded),
            ("differentiate.validation", self.differentiate.validation),
            ("train.warmup_ratio", self.train.warmup_ratio),
        ];
        for (key, value) in parts {
            rule((0.0..=1.0).contains(&value), key, value.to_string(), "0 to 1");
        }
        rule(self.differentiate.validation <= 0.5, "differentiate.validation", self.differentiate.validation.to_string(), "at most 0.5");
        rule((0.0..1.0).contains(&self.train.lora.dropout), "train.lora.dropout", self.train.lora.dropout.to_string(), "0 to below 1");
        let positive = |value: f64| value.is_finite() && value > 0.0;
        rule(positive(self.train.lora.alpha), "train.lora.alpha", self.train.lora.alpha.to_string(), "a number above 0");
        let rate = self.train.learning_rate;
        rule(rate.is_none_or(positive), "train.learning_rate", rate.unwrap_or_default().to_string(), "a number above 0");
        rule(self.iterate.rounds <= MOST_ROUNDS, "iterate.rounds", self.iterate.rounds.to_string(), "at most 9");
        let pages = self.instruct.pages;
        let fine = pages.iter().all(|weight| weight.is_finite() && *weight >= 0.0) && pages.iter().sum::<f64>() > 0.0;
        rule(fine, "instruct.pages", format!("{pages:?}"), "four numbers from 0, not all of them 0");
    }
}
