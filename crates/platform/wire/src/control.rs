//! Run control as messages: what a person does to a task, and what it asks of a person.

use autoact_trajectory::{ApprovalPolicy, Digest, InputGiven, InputKind, InputRequested, NextAttempt, Origin, Paused, Resumed};

use crate::event_error::EventError;
use crate::store_v2 as v2;
use crate::v1;

impl From<ApprovalPolicy> for v1::ApprovalPolicy {
    fn from(policy: ApprovalPolicy) -> Self {
        match policy {
            ApprovalPolicy::Tools => v1::ApprovalPolicy::Tools,
            ApprovalPolicy::Untrusted => v1::ApprovalPolicy::Untrusted,
            ApprovalPolicy::Effects => v1::ApprovalPolicy::Effects,
        }
    }
}

impl From<v1::ApprovalPolicy> for ApprovalPolicy {
    fn from(policy: v1::ApprovalPolicy) -> Self {
        match policy {
            v1::ApprovalPolicy::Unspecified | v1::ApprovalPolicy::Tools => ApprovalPolicy::Tools,
            v1::ApprovalPolicy::Untrusted => ApprovalPolicy::Untrusted,
            v1::ApprovalPolicy::Effects => ApprovalPolicy::Effects,
        }
    }
}

/// What the next attempt is given. The messages of both packages have the same numbers.
pub fn next_attempt_to_proto(next: Option<NextAttempt>) -> i32 {
    next.map_or(v1::NextAttempt::Unspecified, |next| match next {
        NextAttempt::Continues => v1::NextAttempt::Continues,
        NextAttempt::Anew => v1::NextAttempt::Anew,
    }) as i32
}

/// What the next attempt is given; `None`: the message does not say, or says what a later program
/// knows.
pub fn next_attempt(number: i32) -> Option<NextAttempt> {
    match v1::NextAttempt::try_from(number) {
        Ok(v1::NextAttempt::Continues) => Some(NextAttempt::Continues),
        Ok(v1::NextAttempt::Anew) => Some(NextAttempt::Anew),
        Ok(v1::NextAttempt::Unspecified) | Err(_) => None,
    }
}

/// A policy as it is stored; the default one as nothing, so that events stay as short as they were.
pub(crate) fn stored_policy(policy: ApprovalPolicy) -> v2::ApprovalPolicy {
    match policy {
        ApprovalPolicy::Tools => v2::ApprovalPolicy::Unspecified,
        ApprovalPolicy::Untrusted => v2::ApprovalPolicy::Untrusted,
        ApprovalPolicy::Effects => v2::ApprovalPolicy::Effects,
    }
}

/// A stored policy. One that is not known is taken as the one that asks most.
pub(crate) fn policy_from_store(policy: i32) -> ApprovalPolicy {
    match v2::ApprovalPolicy::try_from(policy) {
        Ok(v2::ApprovalPolicy::Unspecified | v2::ApprovalPolicy::Tools) => ApprovalPolicy::Tools,
        Ok(v2::ApprovalPolicy::Untrusted) => ApprovalPolicy::Untrusted,
        Ok(v2::ApprovalPolicy::Effects) | Err(_) => ApprovalPolicy::Effects,
    }
}

/// The two enumerations have the same numbers.
fn kind_to_proto(kind: InputKind) -> i32 {
    (match kind {
        InputKind::Answer => v1::InputKind::Answer,
        InputKind::Approval => v1::InputKind::Approval,
        InputKind::Other => v1::InputKind::Unspecified,
    }) as i32
}

fn kind_from_proto(kind: i32) -> InputKind {
    match v1::InputKind::try_from(kind) {
        Ok(v1::InputKind::Answer) => InputKind::Answer,
        Ok(v1::InputKind::Approval) => InputKind::Approval,
        Ok(v1::InputKind::Unspecified) | Err(_) => InputKind::Other,
    }
}

impl From<&Origin> for v1::Origin {
    fn from(origin: &Origin) -> Self {
        v1::Origin { task_id: origin.task.to_string(), steps: origin.steps }
    }
}

impl TryFrom<v1::Origin> for Origin {
    type Error = EventError;

    fn try_from(origin: v1::Origin) -> Result<Self, Self::Error> {
        let v1::Origin { task_id, steps } = origin;
        Ok(Origin { task: task_id.try_into()?, steps, events: 0, last: None })
    }
}

impl From<&Origin> for v2::Origin {
    fn from(origin: &Origin) -> Self {
        let Origin { task, steps, events, last } = origin;
        let last = last.map(|digest| digest.as_bytes().to_vec()).unwrap_or_default();
        v2::Origin { task_id: task.to_string(), steps: *steps, events: *events, last }
    }
}

impl TryFrom<v2::Origin> for Origin {
    type Error = EventError;

    fn try_from(origin: v2::Origin) -> Result<Self, Self::Error> {
        let v2::Origin { task_id, steps, events, last } = origin;
        Ok(Origin { task: task_id.try_into()?, steps, events, last: Digest::from_slice(&last) })
    }
}

/// The messages of both packages have the same fields.
macro_rules! both {
    ($package:ident) => {
        impl From<&Paused> for $package::Paused {
            fn from(paused: &Paused) -> Self {
                $package::Paused { by: paused.by.clone(), reason: paused.reason.clone() }
            }
        }

        impl From<$package::Paused> for Paused {
            fn from($package::Paused { by, reason }: $package::Paused) -> Self {
                Paused { by, reason }
            }
        }

        impl From<&Resumed> for $package::Resumed {
            fn from(resumed: &Resumed) -> Self {
                $package::Resumed { by: resumed.by.clone() }
            }
        }

        impl From<$package::Resumed> for Resumed {
            fn from($package::Resumed { by }: $package::Resumed) -> Self {
                Resumed { by }
            }
        }

        impl From<&InputRequested> for $package::InputRequested {
            fn from(asked: &InputRequested) -> Self {
                let InputRequested { step, kind, tool, prompt } = asked.clone();
                $package::InputRequested { step, kind: kind_to_proto(kind), tool, prompt }
            }
        }

        impl From<$package::InputRequested> for InputRequested {
            fn from($package::InputRequested { step, kind, tool, prompt }: $package::InputRequested) -> Self {
                InputRequested { step, kind: kind_from_proto(kind), tool, prompt }
            }
        }

        impl From<&InputGiven> for $package::InputGiven {
            fn from(given: &InputGiven) -> Self {
                let InputGiven { step, kind, text, approved, for_task, by } = given.clone();
                $package::InputGiven { step, kind: kind_to_proto(kind), text, approved, for_task, by }
            }
        }

        impl From<$package::InputGiven> for InputGiven {
            fn from($package::InputGiven { step, kind, text, approved, for_task, by }: $package::InputGiven) -> Self {
                InputGiven { step, kind: kind_from_proto(kind), text, approved, for_task, by }
            }
        }
    };
}

both!(v1);
both!(v2);
