//! The settings of a task, each with a default.

use autoact_tools::MOST_SENTENCES;
use autoact_train::{Decay, Linear, LoraConfig, Precision};
use serde::{Deserialize, Serialize};

/// Maximum of `iterate.rounds`; more rounds have not improved results.
const MOST_ROUNDS: usize = 9;
/// Maximum of `synthesize.question_bias`; above it, thoughts only repeat the question's words.
const MOST_BIAS: f32 = 20.0;
/// Maximum of `synthesize.hints`; few questions are answered right by a fourth such try.
const MOST_HINTS: usize = 4;
/// Defaults for a model without a chat template.
const FORMS: f64 = 1.0;
const BIAS: f32 = 6.0;
const HINTS: usize = 3;
/// `synthesize.samples` where questions have known paths, and elsewhere: the paths find more.
const SAMPLES: [usize; 2] = [2, 4];
/// `instruct.questions` for a model without a chat template, and for others. Questions in the form of the
/// examples cost next to nothing.
const QUESTIONS: [usize; 2] = [1000, 600];
/// Default of `reflect.histories`.
const HISTORIES: usize = 800;
/// Default of `train.threshold`.
const THRESHOLD: f64 = 5e-4;
/// Below it, a trajectory may have reached its answer by another relation than the one asked for.
const COVERAGE: f64 = 0.8;
/// What a thought needs is on one sentence or a second one; it is rarely on a fourth.
const SENTENCES: usize = 3;
/// The learning rate of the paper's table 4, for models of width 4096 and more.
pub(crate) const PAPER_LEARNING_RATE: f64 = 1e-4;
/// The trajectories that the paper trains on.
const PAPER_TRAJECTORIES: usize = 200;

/// A section of a task file, with the default of each setting.
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

/// All settings of a task.
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
        /// Number of questions in the database, examples included, at which self-instruct ends. Default:
        /// 1000 for a model without a chat template, 600 for others.
        pub questions: Option<usize> = None,
        /// Maximum number of generations.
        pub attempts: u64 = 6000,
        /// Number of examples in a prompt, drawn for each generation.
        pub shots: usize = 3,
        /// Sampling temperature.
        pub temperature: f32 = 0.8,
        /// Generations of a round. All of them use the database as it was before the round.
        pub round: usize = 32,
        /// Maximum number of tokens of a prompt; examples are left out to keep to it.
        pub prompt_tokens: usize = 560,
        /// Relative frequencies of prompts with one page, two linked pages, three linked pages, or
        /// two pages of one kind.
        pub pages: [f64; 4] = [0.3, 0.3, 0.2, 0.2],
        /// Fraction of the questions that follow the form of an example or one of our own (`What is the …
        /// of …?`), with the names of other pages and words of their sentences, or that a sentence of a
        /// page answers; the others are free, and kept to their share. Default: 1 for a model without a
        /// chat template, which invents words over pages of a new kind, and 0 for others.
        // not serialised if there are none, so that runs made before it existed can continue
        #[serde(skip_serializing_if = "is_free")]
        pub forms: Option<f64> = None,
        /// Two questions are near-duplicates from this Jaccard index of their word bigrams on.
        /// "What is the capital of Peru?" and "What is the capital of Chad?" have 5/9.
        pub similarity: f64 = 0.75,
        /// Whether answers, except yes and no, must occur in the pages shown.
        pub grounded: bool = true,
        /// Fraction of the questions that the pages do not answer, and of the kept trajectories
        /// that say so. They need a tool of kind `not_found` in the library; without one, and in
        /// multiple-choice tasks, there are none.
        pub unanswerable: f64 = 0.1,
    }
}

section! {
    /// `[select]`: which tools the task needs.
    pub struct Select {
        /// Number of votes, each about other questions.
        pub votes: usize = 48,
        /// Number of questions in a vote; the first is one of the task's examples.
        pub questions: usize = 3,
        /// Sampling temperature.
        pub temperature: f32 = 0.5,
        /// Minimum fraction of votes for a selected tool. The longer the library, the less often the
        /// bundled base names what few questions need: `Calculate`, for comparisons, in 28% of 300
        /// votes on the atlas with six tools and in 12% with twelve. What no question needs has none.
        pub share: f64 = 0.08,
        /// How many sentences of a page `Retrieve` shows at most: those that tell most of what is looked
        /// for. 0: as the tool library says. What the library says itself is kept. A small model takes
        /// one value of a page for another, and reads the right one where there are few. Default: 3 for a
        /// model without a chat template, 0 for others.
        // not serialised if there are none, so that runs made before it existed can continue
        #[serde(skip_serializing_if = "none_or_0")]
        pub sentences: Option<usize> = None,
    }
}

section! {
    /// `[synthesize]`: generation of trajectories.
    pub struct Synthesize {
        /// Number of trajectories for each question; the first one is greedy. Default: 2 where `hints` is not
        /// 0, else 4.
        pub samples: Option<usize> = None,
        /// Sampling temperature.
        pub temperature: f32 = 0.7,
        /// Logit bias on the question's words in the thoughts of sampled trajectories, halved from
        /// round to round. A filter cannot find what is never generated; trained adapters need the
        /// bias less. Default: 6 for a model without a chat template, which misnames relations that it
        /// has not read of, and 0 for others.
        pub question_bias: Option<f32> = None,
        /// Maximum number of tries on the known path: at each question in the form of an example that no
        /// other try of the round answers right, until one is right. In these a step that does not lead on is
        /// proposed anew, up to 8 times, with a bias on the answer, on the names of the pages that lead to
        /// it and on the question's words that grows with each rejection, up to twice `question_bias`.
        /// What is trained on has no hint. Default: 3 where neither `question_bias` nor `instruct.forms`
        /// is 0, else 0.
        // not serialised if there are none, so that runs made before it existed can continue
        #[serde(skip_serializing_if = "none_or_0")]
        pub hints: Option<usize> = None,
        /// From the second round on: a question that the greedy try answers right gets no others, unless
        /// its answer can be guessed, and one with a known path gets only such as follow it. There is more
        /// to learn from the open ones, and less to train on.
        // not serialised if false, so that runs made before it existed can continue
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        pub until_right: bool = true,
        /// Maximum number of steps.
        pub max_steps: u32 = 10,
        /// Maximum duration of a trajectory in seconds.
        pub seconds: u64 = 60,
    }
}

section! {
    /// `[filter]`: which trajectories with reward 1 are kept.
    pub struct Filter {
        /// For answers that can be guessed (yes, no, or a name in the question): minimum fraction
        /// of right trajectories. Below it, none of the question's trajectories is kept.
        pub sure: f64 = 0.75,
        /// Minimum coverage of a kept trajectory, from 0 to 1. With 0 none is dropped, but higher
        /// coverage is still preferred. Default: 0.8 where `synthesize.question_bias` is not 0, else 0.
        pub coverage: Option<f64> = None,
    }
}

section! {
    /// `[reflect]`: judgements of right and wrong histories.
    pub struct Reflect {
        /// Maximum number of judgements generated for a trajectory until one agrees with the
        /// reward.
        pub draws: usize = 4,
        /// Sampling temperature.
        pub temperature: f32 = 0.7,
        /// Maximum number of wrong trajectories for each question.
        pub wrong_per_question: usize = 2,
        /// Maximum number of histories that are judged, half of them right ones; 0: all. A round of 1000
        /// questions has 1,400, and judging and training take as long as they are many.
        // not serialised if it is the default, so that runs made before it existed can continue
        #[serde(skip_serializing_if = "is_usual_count")]
        pub histories: usize = HISTORIES,
    }
}

section! {
    /// `[differentiate]`: the data sets.
    pub struct Differentiate {
        /// Fraction of the questions whose trajectories are used for validation only.
        pub validation: f64 = 0.15,
        /// Maximum number of different right trajectories for each question.
        pub per_question: usize = 2,
        /// Maximum number of right trajectories, with those of `retried`; 0: all. The paper trains on
        /// 200.
        pub trajectories: usize = 0,
        /// Also learn from what follows a rejection: a right trajectory after a rejected one. It is no
        /// part of the paper's method, and of use only to a group whose attempts continue.
        pub retried: bool = false,
    }
}

section! {
    /// `[train]`: the LoRA training runs. The paper's table 4 is `autoact learn --protocol paper`.
    pub struct Training {
        /// Maximum number of epochs.
        pub epochs: u64 = 5,
        /// Peak learning rate. Default: the paper's 1e-4 × 4096 / hidden size.
        pub learning_rate: Option<f64> = None,
        /// Rows in a batch, of `sequence` tokens each; a row holds several short trajectories.
        pub batch: usize = 8,
        /// Number of batches whose gradients are summed for one step.
        pub accumulation: usize = 1,
        /// Tokens in a row, and maximum number of tokens of a trajectory.
        pub sequence: usize = 640,
        /// Fraction of the steps with a rising learning rate.
        pub warmup_ratio: f64 = 0.03,
        /// The decay of the learning rate after the warm-up.
        pub decay: Decay = Decay::Cosine,
        /// Decoupled weight decay.
        pub weight_decay: f64 = 0.0,
        /// Maximum of the global gradient norm; 0: no clipping.
        pub clip: f64 = 1.0,
        /// Early stopping: number of epochs without a better validation loss; 0: no early stopping.
        pub patience: u64 = 2,
        /// Early stopping: by how much a validation loss must be lower than all before it, in nats per
        /// token, to be better. Tool-Agent mostly copies, and has learned all of it after an epoch or two.
        // not serialised if it is the default, so that runs made before it existed can continue
        #[serde(skip_serializing_if = "is_usual_threshold")]
        pub threshold: f64 = THRESHOLD,
        /// The number format of matrix products: `bf16` (where the processor has them, else f32) or
        /// `f32`.
        pub precision: Precision = Precision::Bf16,
        /// The adapters' shape.
        pub lora: Lora = Lora::default(),
    }
}

section! {
    /// `[train.lora]`: the adapters' shape. The paper's rank 8 on `q_proj` and `v_proj` is made for models
    /// of 7 billion parameters; small ones learn next to nothing with it.
    pub struct Lora {
        /// Rank.
        pub r: usize = 16,
        /// The adapter's output is scaled by alpha / r.
        pub alpha: f64 = 32.0,
        /// Probability of dropping an input element.
        pub dropout: f64 = 0.05,
        /// The linear layers with an adapter.
        pub target_modules: Vec<Linear> = Linear::ALL.to_vec(),
        /// Activated LoRA: the adapter acts only from the agent's cue on, so that the three agents
        /// share the keys and values of the history, and learn faster. Other servers may not know such
        /// adapters. Default: true for a model without a chat template.
        // not serialised unless true, so that runs made before it existed can continue
        #[serde(skip_serializing_if = "always_acts")]
        pub activated: Option<bool> = None,
    }
}

impl Lora {
    /// The settings for the trainer.
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
    /// `[iterate]`: further rounds by the trained group, beyond the paper.
    pub struct Iterate {
        /// Maximum number of rounds of synthesis and training, including the first; at most 9. What a third
        /// one brings is in `docs/learning.md`.
        pub rounds: usize = 2,
        /// Number of successive rounds, clearly worse than the best on the validation questions, that are
        /// tolerated. There are few such questions, and a round without improvement often leads to
        /// a better one.
        pub patience: usize = 1,
    }
}

section! {
    /// `[evaluate]`
    pub struct Evaluate {
        /// Number of questions of the evaluation file, evenly spread over it; 0: all.
        pub questions: usize = 160,
        /// The share of approved answers that is to be right: approval needs a confidence, whose
        /// threshold is chosen on the validation questions. A server that gives no
        /// log-probabilities has no confidence; then verdicts alone decide.
        // not serialised if it is the default, so that runs made before it existed can continue
        #[serde(skip_serializing_if = "is_usual_precision")]
        pub precision: f64 = 0.9,
    }
}

/// Whether no question follows a form (`instruct.forms`).
#[expect(clippy::ref_option, reason = "serde's signature")]
fn is_free(forms: &Option<f64>) -> bool {
    forms.is_none_or(|share| share <= 0.0)
}

/// Whether adapters always act (`train.lora.activated`).
#[expect(clippy::ref_option, reason = "serde's signature")]
fn always_acts(activated: &Option<bool>) -> bool {
    *activated != Some(true)
}

/// Whether it is the default of `reflect.histories`.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_usual_count(histories: &usize) -> bool {
    *histories == HISTORIES
}

/// Whether it is the default of `train.threshold`.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_usual_threshold(threshold: &f64) -> bool {
    (*threshold - THRESHOLD).abs() < f64::EPSILON
}

/// Whether a number is left out, or that of nothing.
#[expect(clippy::ref_option, reason = "serde's signature")]
fn none_or_0(number: &Option<usize>) -> bool {
    number.is_none_or(|number| number == 0)
}

/// Whether it is the default of `evaluate.precision`.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_usual_precision(precision: &f64) -> bool {
    (*precision - 0.9).abs() < f64::EPSILON
}

impl Settings {
    /// Small settings that learn something in a few minutes, in one round. The results are poor.
    /// `template`: whether the model has a chat template; such a model is larger, and has less time.
    #[must_use]
    pub fn quick(mut self, template: bool) -> Settings {
        let (questions, epochs) = if template { (48, 2) } else { (200, 5) };
        self.instruct.questions = Some(self.instruct.questions.unwrap_or(questions).min(questions));
        self.instruct.attempts = self.instruct.attempts.min(400);
        self.select.votes = self.select.votes.min(8);
        self.synthesize.samples = Some(self.synthesize.samples.unwrap_or(2).min(2));
        // with so few trajectories nothing may be dropped for low coverage
        self.filter.coverage = Some(0.0);
        self.reflect.histories = match self.reflect.histories {
            0 => 100, // all
            some => some.min(100),
        };
        self.reflect.draws = self.reflect.draws.min(2);
        self.train.epochs = self.train.epochs.min(epochs);
        self.iterate.rounds = 1;
        self.evaluate.questions = 40;
        self
    }

    /// Sets what the task leaves to the model. `template`: whether the model has a chat template.
    #[must_use]
    pub(crate) fn fitting(mut self, template: bool) -> Settings {
        let small = |value: f64| if template { 0.0 } else { value };
        let forms = *self.instruct.forms.get_or_insert(small(FORMS));
        let bias = *self.synthesize.question_bias.get_or_insert(if template { 0.0 } else { BIAS });
        let hints = *self.synthesize.hints.get_or_insert(if bias > 0.0 && forms > 0.0 { HINTS } else { 0 });
        self.synthesize.samples.get_or_insert(SAMPLES[usize::from(hints == 0)]);
        self.instruct.questions.get_or_insert(QUESTIONS[usize::from(template)]);
        self.filter.coverage.get_or_insert(if bias > 0.0 { COVERAGE } else { 0.0 });
        self.select.sentences.get_or_insert(if template { 0 } else { SENTENCES });
        // a chat template has to end with the cue's tokens, which not all do
        self.train.lora.activated.get_or_insert(!template);
        self
    }

    /// The paper's settings in place of the task's: its table 4 to the letter, also the learning
    /// rate; 200 trajectories of one round; no question bias, and no filter but the reward.
    /// Self-instruct, the selection of tools and the judgements stay the task's.
    #[must_use]
    pub fn paper(mut self) -> Settings {
        // table 4 has no early stopping
        let lora = Lora { r: 8, alpha: 16.0, target_modules: vec![Linear::Q, Linear::V], activated: Some(false), ..Lora::default() };
        self.train = Training { learning_rate: Some(PAPER_LEARNING_RATE), batch: 4, patience: 0, lora, ..Training::default() };
        self.iterate.rounds = 1;
        self.select.sentences = Some(0);
        self.synthesize.question_bias = Some(0.0);
        self.synthesize.hints = Some(0);
        self.filter = Filter { sure: 0.0, coverage: Some(0.0) };
        self.differentiate.trajectories = PAPER_TRAJECTORIES;
        self.differentiate.retried = false;
        self
    }

    /// Adds settings that are out of range to `mistakes`.
    pub(crate) fn check(&self, mistakes: &mut Vec<String>) {
        let mut rule = |ok: bool, key: &str, found: String, expected: &str| {
            if !ok {
                mistakes.push(format!("`{key}` is `{found}`; expected {expected}"));
            }
        };
        let counts = [
            ("instruct.questions", self.instruct.questions.unwrap_or(1)),
            ("instruct.attempts", usize::try_from(self.instruct.attempts).unwrap_or(usize::MAX)),
            ("instruct.shots", self.instruct.shots),
            ("instruct.round", self.instruct.round),
            ("instruct.prompt_tokens", self.instruct.prompt_tokens),
            ("select.votes", self.select.votes),
            ("select.questions", self.select.questions),
            ("synthesize.samples", self.synthesize.samples.unwrap_or(1)),
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
            ("instruct.unanswerable", self.instruct.unanswerable),
            ("select.share", self.select.share),
            ("filter.sure", self.filter.sure),
            ("filter.coverage", self.filter.coverage.unwrap_or_default()),
            ("instruct.forms", self.instruct.forms.unwrap_or_default()),
            ("differentiate.validation", self.differentiate.validation),
            ("train.warmup_ratio", self.train.warmup_ratio),
        ];
        for (key, value) in parts {
            rule((0.0..=1.0).contains(&value), key, value.to_string(), "0 to 1");
        }
        let sentences = self.select.sentences.unwrap_or_default();
        rule(sentences <= MOST_SENTENCES, "select.sentences", sentences.to_string(), &format!("at most {MOST_SENTENCES}"));
        let precision = self.evaluate.precision;
        rule(precision > 0.0 && precision < 1.0, "evaluate.precision", precision.to_string(), "more than 0 and less than 1");
        rule(self.instruct.unanswerable <= 0.5, "instruct.unanswerable", self.instruct.unanswerable.to_string(), "at most 0.5");
        rule(self.differentiate.validation <= 0.5, "differentiate.validation", self.differentiate.validation.to_string(), "at most 0.5");
        rule((0.0..1.0).contains(&self.train.lora.dropout), "train.lora.dropout", self.train.lora.dropout.to_string(), "0 to below 1");
        let positive = |value: f64| value.is_finite() && value > 0.0;
        rule(positive(self.train.lora.alpha), "train.lora.alpha", self.train.lora.alpha.to_string(), "a number above 0");
        let rate = self.train.learning_rate;
        rule(rate.is_none_or(positive), "train.learning_rate", rate.unwrap_or_default().to_string(), "a number above 0");
        rule(self.iterate.rounds <= MOST_ROUNDS, "iterate.rounds", self.iterate.rounds.to_string(), "at most 9");
        let bias = self.synthesize.question_bias.unwrap_or_default();
        rule((0.0..=MOST_BIAS).contains(&bias), "synthesize.question_bias", bias.to_string(), "0 to 20");
        let hints = self.synthesize.hints.unwrap_or_default();
        rule(hints <= MOST_HINTS, "synthesize.hints", hints.to_string(), "at most 4");
        let threshold = self.train.threshold;
        rule(threshold.is_finite() && threshold >= 0.0, "train.threshold", threshold.to_string(), "a number from 0");
        let pages = self.instruct.pages;
        let fine = pages.iter().all(|weight| weight.is_finite() && *weight >= 0.0) && pages.iter().sum::<f64>() > 0.0;
        rule(fine, "instruct.pages", format!("{pages:?}"), "four numbers from 0, not all of them 0");
    }
}
