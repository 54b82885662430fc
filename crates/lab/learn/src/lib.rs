//! AutoAct's pipeline (section 2 of the paper): from a few examples to three adapters. The base
//! model generates its own training data.
//!
//! ```text
//! task file ── instruct ── select ── synthesize ── filter ── reflect ── differentiate ── train ── iterate ── evaluate ── report
//!              questions   tools     trajectories  kept      judgements datasets         adapters  better ones
//! ```
//!
//! [`learn`] runs the [`Stage`]s over a [`Run`] directory. Every stage appends whole lines to its
//! files and continues where they end. So a run that was interrupted in any way is continued by
//! starting it again. A [`View`] receives progress.

mod calibrate;
mod compared;
mod coverage;
mod decide;
mod differentiate;
mod encode;
mod error;
mod evaluate;
mod filter;
mod form;
mod frame;
mod instruct;
mod iterate;
mod keep;
mod kinds;
mod known_path;
mod learner;
mod memory;
mod misnamed;
mod options;
mod pages;
mod pool;
mod prompt;
mod publish;
mod records;
mod reflect;
mod relation_words;
mod report;
mod report_figures;
mod report_files;
mod report_html;
mod reward;
mod round;
mod row;
mod run;
mod select;
mod settings;
mod stage;
mod stated;
mod statement;
mod store;
mod synthesize;
mod task;
mod train;
mod unanswerable;
mod variants;
mod view;
mod workplace;

pub use calibrate::{CalibrationReport, Lower};
pub use error::{LearnError, TaskMistakes};
pub use iterate::{Iterated, RoundReport, installed_round};
pub use keep::Kept;
pub use learner::{LearningPlan, learn};
pub use pool::Stop;
pub use records::{
    AnswerRecord, CurvePoint, DocumentRecord, Judgement, JudgementRecord, QuestionRecord, ReflectionRecord, RejectedRecord, Selection,
    StatedRecord, TrajectoryRecord, TurnRecord, Vote,
};
pub use report::{InstructReport, JudgeReport, ReflectReport, Report, RowReport, SynthesisReport};
pub use row::{AUTOACT, BASE, ONE_ROUND};
pub use run::{Origin, Run};
pub use settings::Settings;
pub use stage::{Stage, UnknownStage};
pub use task::{Example, Task};
pub use train::Trained;
pub use variants::TOOL_SPECIFIED;
pub use view::{NoView, View};
