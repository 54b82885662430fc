//! The domain of autoact: what a tool, a step and a trajectory are, the events a task is folded
//! from, and what comes next. Plain data and plain synchronous decisions; no I/O and no clock here.
//!
//! The names follow AutoAct section 2; `docs/architecture.md` has the table of the paper's symbols
//! and ours.

mod answer;
mod artifact;
mod bounds;
mod call;
mod check;
mod citation;
mod confidence;
mod context;
mod control;
mod decide;
mod digest;
mod event;
mod fit;
mod fold_error;
mod history;
mod id;
mod invalid_context;
mod judged;
mod limits;
mod next_attempt;
mod parameters;
mod recalled;
mod receipt;
mod retry;
mod shortening;
mod source;
mod task;
mod tenant;
mod time;
mod time_zone;
mod tool;
mod tool_choice;
mod usage;

pub use artifact::{Artifact, InvalidArtifacts, NewArtifact, artifact_name, check_artifacts};
pub use bounds::{
    CUT_MARK, MAX_ARTIFACT_BYTES, MAX_ARTIFACT_NAME_BYTES, MAX_ARTIFACT_TEXT_BYTES, MAX_ARTIFACTS, MAX_CITATIONS, MAX_DETAIL_BYTES,
    MAX_NAME_BYTES, MAX_OBSERVATION_BYTES, MAX_OBSERVED_BYTES, MAX_PARAMS_BYTES, MAX_QUOTES_BYTES, MAX_RECALLED_BYTES,
    MAX_SOURCE_HEADING_BYTES, MAX_SOURCE_PATH_BYTES, MAX_SOURCE_TEXT_BYTES, MAX_SOURCES, MAX_SOURCES_BYTES, MAX_THOUGHT_BYTES, cut,
};
pub use call::{CallId, CallKind, InvalidCallId, Role};
pub use check::TooLong;
pub use citation::{Citation, citations};
pub use confidence::{CALIBRATION_FORMAT, Calibration, Evidence, InvalidCalibration, Likelihood, Term};
pub use context::{Profile, TaskContext, TaskInfo};
pub use control::{ApprovalPolicy, InputGiven, InputKind, InputRequested, MAX_BY_BYTES, MAX_INPUT_BYTES, Origin, Paused, Resumed};
pub use decide::{Decision, REFUSED, UNKNOWN_OUTCOME, decide};
pub use digest::Digest;
pub use event::{
    Event, EventBody, FinishReason, Finished, Observation, ReleaseReason, Released, Shortened, Started, Submitted, Thought, Unknown,
};
pub use fit::{Fit, fit};
pub use fold_error::FoldError;
pub use history::{Action, Judgement, Reflection, Step, Trajectory, Turn, Verdict};
pub use id::{InvalidTaskId, TaskId};
pub use invalid_context::InvalidContext;
pub use judged::{JudgedAnswer, JudgedAnswers};
pub use limits::{InvalidSampling, Limits, Sampling};
pub use next_attempt::NextAttempt;
pub use parameters::{Arguments, InvalidArguments, InvalidSchema, MAX_SCHEMA_BYTES, ParameterSchema, arguments_line};
pub use recalled::{Recalled, RecalledItem, RecalledKind, bytes_of as recalled_bytes};
pub use receipt::{Claim, Outcome, Receipt, Receipts, Standing};
pub use retry::{NotShared, Shared, shared, words_alone};
pub use shortening::{Cut, Shortening, shorten};
pub use source::{InvalidSources, Source, bound_sources, check_sources};
pub use task::{Phase, REPEATED_NOTE, Task};
pub use tenant::{InvalidTenant, TaskKey, Tenant};
pub use time::rfc3339;
pub use time_zone::TimeZone;
pub use tool::{ASK_USER, Asks, Effect, FINISH, MAX_LIBRARY_TOOLS, MAX_TOOLS, NOT_FOUND, Terminal, ToolSpec};
pub use tool_choice::{RankedTool, ToolBackground, ToolChoice};
pub use usage::{PromptSize, Timing, Usage};
