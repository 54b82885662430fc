//! Values of enumerations as people and programs read them.

use autoact_wire::v1;

/// The reason's name without its prefix, in lower case.
pub(crate) fn reason_name(reason: v1::FinishReason) -> String {
    reason.as_str_name().trim_start_matches("FINISH_REASON_").to_lowercase().replace('_', " ")
}

/// The verdict's name in lower case; one that this version does not know is `unspecified`.
pub(crate) fn verdict_name(verdict: v1::Verdict) -> String {
    verdict.as_str_name().trim_start_matches("VERDICT_").to_lowercase()
}
