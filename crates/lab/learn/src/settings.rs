//! The numbers of a task, every one with a default.

use autoact_train::{Decay, Linear, LoraConfig, Precision};
use serde::{Deserialize, Serialize};

/// More rounds have brought nothing more.
const MOST_ROUNDS: usize = 9;
/// With more, a thought is nothing but the question's words.
const MOST_BIAS: f32 = 20.0;

/// A section of a task file: each number beside its default.
macro_rules! section {
    ($(#[$of:meta])* pub struct $name:ident { $($(#[$about:meta])* pub $field:ident: $kind:ty = $default:expr,)+ }) => {
        $(#[$of])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $($(#[$about])* pub $field: $kind,)+
        }

        impl Default for $name {
            fn default() -> Self {
                $name { $($field: $default,)+ }
            }
        }
    };
}

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

section! {
    /// `[instruct]`: self-instruct.
    pub struct Instruct {
        /// Questions in the database, the examples included, at which it is large enough.
        pub questions: usize = 400,
        /// Generations at most.
        pub attempts: u64 = 6000,
        /// Examples in a prompt, drawn anew for each generation.
        pub shots: usize = 3,
        /// Sampling temperature.
        pub temperature: f32 = 0.8,
        /// Generations of a round: they see the database as it stood before the round.
        pub round: usize = 32,
        /// Tokens of a prompt at most; shots are left out to keep to it.
        pub prompt_tokens: usize = 560,
        /// How often a prompt shows one page, two linked ones, three linked ones, or two of one kind, in proportion.
        pub pages: [f64; 4] = [0.3, 0.3, 0.2, 0.2],
        /// From this share of common word pairs on, two questions are near-duplicates. "What is the capital of Peru?" and "What is the
        /// capital of Chad?" share 5 of 9.
        pub similarity: f64 = 0.75,
        /// Answers have to stand in the pages shown (but for yes and no).
        pub grounded: bool = true,
    }
}

section! {
    /// `[select]`: which tools the task needs.
    pub struct Select {
        /// How often the meta-agent is asked, each time about other questions.
        pub votes: usize = 24,
        /// Questions shown in a vote.
        pub questions: usize = 3,
        /// Sampling temperature.
        pub temperature: f32 = 0.5,
        /// A tool is kept from this share of the votes on. One that one question in ten needs stands in about a third of the votes on three
        /// questions.
        pub share: f64 = 0.15,
    }
}

section! {
    /// `[synthesize]`: trajectories.
    pub struct Synthesize {
        /// Trajectories of each question.
        pub samples: usize = 4,
        /// Sampling temperature.
        pub temperature: f32 = 0.7,
        /// Logit bias of the question's words in the thoughts of sampled tries, halved from round to round. What a base never says by itself, no filter finds; what a group has learned to say, it says without being led.
        pub question_bias: f32 = 0.0,
        /// Planning loops at most.
        pub max_steps: u32 = 10,
        /// Seconds of a trajectory at most.
        pub seconds: u64 = 60,
    }
}

section! {
    /// `[filter]`: which trajectories with reward 1 are kept.
    pub struct Filter {
        /// Right answers to a question that can be guessed (yes or no, one of two) count from this part of its trajectories on.
        pub sure: f64 = 0.75,
        /// Right trajectories are dropped whose thoughts take up less than this part of the question's words (those that pages use, each by
        /// how often right trajectories take it up); 0: none, but those that take up most come first all the same.
        pub coverage: f64 = 0.0,
    }
}

section! {
    /// `[reflect]`: judgements of right and wrong histories.
    pub struct Reflect {
        /// Judgements drawn of a history until one agrees with the reward.
        pub draws: usize = 4,
        /// Sampling temperature.
        pub temperature: f32 = 0.7,
        /// Wrong histories of one question at most.
        pub wrong_per_question: usize = 2,
    }
}

section! {
    /// `[differentiate]`: the data sets.
    pub struct Differentiate {
        /// Part of the questions whose trajectories are kept from training, to validate on.
        pub validation: f64 = 0.1,
        /// Different right trajectories of one question at most.
        pub per_question: usize = 2,
        /// Right trajectories at most; 0: all. The paper trains on 200.
        pub trajectories: usize = 0,
    }
}

section! {
    /// `[train]`: the LoRA trainings; the defaults are table 4's.
    pub struct Training {
        /// Passes over the data.
        pub epochs: u64 = 5,
        /// Peak learning rate. If it is not given: the paper's 1e-4 for a model 4096 wide, more for narrower ones in proportion.
        pub learning_rate: Option<f64> = None,
        /// Rows of `sequence` tokens in a batch; a row holds several short trajectories.
        pub batch: usize = 4,
        /// Batches summed into one step.
        pub accumulation: usize = 1,
        /// Tokens in a row, and of a trajectory at most.
        pub sequence: usize = 640,
        /// Part of the steps that warms the learning rate up.
        pub warmup_ratio: f64 = 0.03,
        /// How the learning rate falls.
        pub decay: Decay = Decay::Cosine,
        /// Decoupled weight decay.
        pub weight_decay: f64 = 0.0,
        /// Largest global gradient norm; 0: no clipping.
        pub clip: f64 = 1.0,
        /// Epochs without a better validation loss after which a training stops; 0: never.
        pub patience: u64 = 2,
        /// The number format of matrix products.
        pub precision: Precision = Precision::F32,
        /// The adapters.
        pub lora: Lora = Lora::default(),
    }
}

section! {
    /// `[train.lora]`: table 4.
    pub struct Lora {
        /// Rank.
        pub r: usize = 8,
        /// Scale: alpha / r.
        pub alpha: f64 = 16.0,
        /// Chance of dropping an input element.
        pub dropout: f64 = 0.05,
        /// Which linear layers get an adapter.
        pub target_modules: Vec<Linear> = vec![Linear::Q, Linear::V],
        /// Activated LoRA: the adapter acts from the agent's cue on only, so that the three agents share the history's keys and values.
        // unwritten where it is off, so that runs made before it existed go on
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        pub activated: bool = false,
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
            alora_invocation_tokens: None,
        }
    }
}

section! {
    /// `[iterate]`: beyond the paper, the differentiated group goes on from where the meta-agent began.
    pub struct Iterate {
        /// Rounds of synthesis and training at most, the meta-agent's own included; at most 9.
        pub rounds: usize = 2,
        /// Rounds in a row that may answer no more of the validation questions than the best before them: there are few of them, and a
        /// round that does as well often leads to a better one.
        pub patience: usize = 1,
    }
}

section! {
    /// `[evaluate]`
    pub struct Evaluate {
        /// Questions of the evaluation file that are asked, drawn evenly over it; 0: all.
        pub questions: usize = 160,
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
        // of so few there is nothing to choose
        self.filter.coverage = 0.0;
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
            ("filter.coverage", self.filter.coverage),
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
        let bias = self.synthesize.question_bias;
        rule((0.0..=MOST_BIAS).contains(&bias), "synthesize.question_bias", bias.to_string(), "0 to 20");
        let pages = self.instruct.pages;
        let fine = pages.iter().all(|weight| weight.is_finite() && *weight >= 0.0) && pages.iter().sum::<f64>() > 0.0;
        rule(fine, "instruct.pages", format!("{pages:?}"), "four numbers from 0, not all of them 0");
    }
}
