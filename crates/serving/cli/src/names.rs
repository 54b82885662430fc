//! Values of enumerations as people and programs read them.

use autoact_wire::v1;

/// The reason's name without its prefix, in lower case.
pub(crate) fn reason_name(reason: v1::FinishReason) -> String {
    reason.as_str_name().trim_start_matches("FINISH_REASON_").to_lowercase().replace('_', " ")
}

/// Where a task stands, in lower case; of one that has ended, why.
pub(crate) fn state_name(task: &v1::Task) -> String {
    match task.state() {
        v1::TaskState::Finished => reason_name(task.reason()),
        v1::TaskState::Unspecified => "unknown".to_owned(),
        state => state.as_str_name().trim_start_matches("TASK_STATE_").to_lowercase().replace('_', " "),
    }
}

/// What a person is asked for.
pub(crate) fn input_name(kind: v1::InputKind) -> &'static str {
    match kind {
        v1::InputKind::Answer => "answer",
        v1::InputKind::Approval => "approval",
        v1::InputKind::Unspecified => "other",
    }
}

/// Which actions wait for approval; of what says nothing, `tools`.
pub(crate) fn policy_name(policy: v1::ApprovalPolicy) -> &'static str {
    match policy {
        v1::ApprovalPolicy::Unspecified | v1::ApprovalPolicy::Tools => "tools",
        v1::ApprovalPolicy::Untrusted => "untrusted",
        v1::ApprovalPolicy::Effects => "effects",
    }
}

/// The verdict's name in lower case; one that this version does not know is `unspecified`.
pub(crate) fn verdict_name(verdict: v1::Verdict) -> String {
    verdict.as_str_name().trim_start_matches("VERDICT_").to_lowercase()
}

/// Whether this is the name of somebody: a door that asks for no token knows nobody.
pub(crate) fn is_named(by: &str) -> bool {
    !by.is_empty() && by != "anonymous"
}
