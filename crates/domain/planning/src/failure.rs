//! What can go wrong with a call, by what may follow.

use std::error::Error;
use std::time::Duration;

use autoact_base::error::chain;
use autoact_trajectory::PromptSize;

/// What is known of a call that gave no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureClass {
    /// Nobody received it: nobody listens there, or the receiver says that it did not begin.
    NotSent,
    /// It was sent, and the connection broke before the reply was complete.
    MayHaveRun,
    /// The receiver asks to come back later. It did not begin.
    Busy,
    /// The time for it ran out, here or there. It may have run.
    TimedOut,
    /// The receiver will not do it: the same call fails again.
    Refused,
    /// The receiver failed while it worked, or its reply does not keep the contract.
    Broken,
    /// A newer holder has taken the task over: this one starts nothing any more.
    Fenced,
}

impl FailureClass {
    /// All classes.
    pub const ALL: [FailureClass; 7] = [
        FailureClass::NotSent,
        FailureClass::MayHaveRun,
        FailureClass::Busy,
        FailureClass::TimedOut,
        FailureClass::Refused,
        FailureClass::Broken,
        FailureClass::Fenced,
    ];

    /// The class's name for metrics and spans.
    pub fn as_str(self) -> &'static str {
        match self {
            FailureClass::NotSent => "not_sent",
            FailureClass::MayHaveRun => "may_have_run",
            FailureClass::Busy => "busy",
            FailureClass::TimedOut => "timed_out",
            FailureClass::Refused => "refused",
            FailureClass::Broken => "broken",
            FailureClass::Fenced => "fenced",
        }
    }

    /// Whether the receiver may have begun: a side effect may have happened.
    pub fn may_have_run(self) -> bool {
        match self {
            FailureClass::NotSent | FailureClass::Busy | FailureClass::Refused | FailureClass::Fenced => false,
            FailureClass::MayHaveRun | FailureClass::TimedOut | FailureClass::Broken => true,
        }
    }

    /// Whether it passes by itself: the receiver is away, busy or slow, and the same call may
    /// succeed later, be it that of another holder.
    pub fn passes(self) -> bool {
        match self {
            FailureClass::NotSent | FailureClass::MayHaveRun | FailureClass::Busy | FailureClass::TimedOut | FailureClass::Fenced => true,
            FailureClass::Refused | FailureClass::Broken => false,
        }
    }
}

/// A call that gave no answer.
#[derive(Debug, thiserror::Error)]
#[error("{who} gave no answer")]
pub struct Failure {
    /// What may follow.
    pub class: FailureClass,
    /// Who was asked, for people: a name and, for a service elsewhere, its address.
    pub who: String,
    /// When the receiver asks to be called again.
    pub retry_after: Option<Duration>,
    /// The prompt was too long for the model: less of the history may fit.
    pub too_long: Option<PromptSize>,
    /// What went wrong.
    pub source: Box<dyn Error + Send + Sync>,
}

impl Failure {
    /// A failure without a wish for the time of the next call.
    pub fn new(class: FailureClass, who: impl Into<String>, source: impl Into<Box<dyn Error + Send + Sync>>) -> Failure {
        Failure { class, who: who.into(), retry_after: None, too_long: None, source: source.into() }
    }

    /// What went wrong, without who was asked: what the group may read. Addresses are no business
    /// of a model's.
    pub fn message(&self) -> String {
        self.source.to_string()
    }

    /// The whole story on one line: who, what, and its causes.
    pub fn chain(&self) -> String {
        format!("{}: {}", self.who, chain(self.source.as_ref()))
    }
}
