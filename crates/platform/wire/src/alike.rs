//! Messages that the API and the stored form have alike: one conversion, written out for both
//! packages.
//!
//! A field that only one of the two has belongs into `event` or `store`.

use std::time::{Duration, SystemTime};

use autoact_trajectory::{
    Citation, InvalidSampling, Limits, RankedTool, Recalled, RecalledItem, RecalledKind, Sampling, Source, Timing, ToolChoice, Usage,
};

use crate::convert::{duration_from_proto, duration_to_proto, known};
use crate::{ConversionError, store_v2, v1};

/// An absent duration is zero.
fn time(duration: Option<prost_types::Duration>) -> Duration {
    duration.map(duration_from_proto).unwrap_or_default()
}

/// A bound that has to be there. The API's message can leave it out, the stored one cannot.
fn bound<T>(value: impl Into<Option<T>>, field: &'static str) -> Result<T, ConversionError> {
    value.into().ok_or(ConversionError::MissingField(field))
}

macro_rules! alike {
    ($package:ident, $sampling:ident) => {
        impl From<&Usage> for $package::Usage {
            fn from(usage: &Usage) -> Self {
                $package::Usage {
                    queue: Some(duration_to_proto(usage.queue)),
                    prefill: Some(duration_to_proto(usage.prefill)),
                    decode: Some(duration_to_proto(usage.decode)),
                    tool: Some(duration_to_proto(usage.tool)),
                    total: Some(duration_to_proto(usage.total)),
                    prompt_tokens: usage.prompt_tokens,
                    cached_prompt_tokens: usage.cached_prompt_tokens,
                    completion_tokens: usage.completion_tokens,
                    model: usage.model.clone(),
                    adapter: usage.adapter.clone(),
                    adapter_digest: usage.adapter_digest.clone(),
                    log_prob: usage.log_prob,
                    scored_tokens: usage.scored_tokens,
                }
            }
        }

        impl From<$package::Usage> for Usage {
            fn from(usage: $package::Usage) -> Self {
                Usage {
                    queue: time(usage.queue),
                    prefill: time(usage.prefill),
                    decode: time(usage.decode),
                    tool: time(usage.tool),
                    total: time(usage.total),
                    prompt_tokens: usage.prompt_tokens,
                    cached_prompt_tokens: usage.cached_prompt_tokens,
                    completion_tokens: usage.completion_tokens,
                    model: usage.model,
                    adapter: usage.adapter,
                    adapter_digest: usage.adapter_digest,
                    log_prob: known(usage.log_prob),
                    scored_tokens: usage.scored_tokens,
                }
            }
        }

        impl From<&Source> for $package::Source {
            fn from(source: &Source) -> Self {
                let Source { collection, file, title, heading, page, start, end, text } = source.clone();
                $package::Source { collection, file, title, heading, page, start, end, text }
            }
        }

        impl From<$package::Source> for Source {
            fn from(source: $package::Source) -> Self {
                let $package::Source { collection, file, title, heading, page, start, end, text } = source;
                Source { collection, file, title, heading, page, start, end, text }
            }
        }

        impl From<&RecalledItem> for $package::RecalledItem {
            fn from(item: &RecalledItem) -> Self {
                let RecalledItem { kind, task_id, question, answer, approved, finished_at, score } = item.clone();
                let kind = match kind {
                    RecalledKind::Turn => $package::RecalledKind::Turn,
                    RecalledKind::Task => $package::RecalledKind::Task,
                    RecalledKind::Other => $package::RecalledKind::Unspecified,
                };
                let finished_at = finished_at.map(Into::into);
                $package::RecalledItem { kind: kind as i32, task_id, question, answer, approved, finished_at, score }
            }
        }

        /// A time that cannot be read is as good as absent.
        impl From<$package::RecalledItem> for RecalledItem {
            fn from(item: $package::RecalledItem) -> Self {
                let kind = match item.kind() {
                    $package::RecalledKind::Turn => RecalledKind::Turn,
                    $package::RecalledKind::Task => RecalledKind::Task,
                    $package::RecalledKind::Unspecified => RecalledKind::Other,
                };
                let $package::RecalledItem { kind: _, task_id, question, answer, approved, finished_at, score } = item;
                let finished_at = finished_at.and_then(|time| SystemTime::try_from(time).ok());
                RecalledItem { kind, task_id, question, answer, approved, finished_at, score: known(Some(score)).unwrap_or_default() }
            }
        }

        impl From<&Recalled> for $package::Recalled {
            fn from(recalled: &Recalled) -> Self {
                let items = recalled.items.iter().map(Into::into).collect();
                $package::Recalled { items, left_out: recalled.left_out, failure: recalled.failure.clone() }
            }
        }

        impl From<$package::Recalled> for Recalled {
            fn from(recalled: $package::Recalled) -> Self {
                let $package::Recalled { items, left_out, failure } = recalled;
                Recalled { items: items.into_iter().map(Into::into).collect(), left_out, failure }
            }
        }

        impl From<&ToolChoice> for $package::ToolChoice {
            fn from(choice: &ToolChoice) -> Self {
                let ranked = choice.ranked.iter().cloned().map(|tool| {
                    let RankedTool { name, score, words, meaning, chosen } = tool;
                    $package::RankedTool { name, score, words, meaning, chosen }
                });
                $package::ToolChoice { among: choice.among, ranked: ranked.collect() }
            }
        }

        impl From<$package::ToolChoice> for ToolChoice {
            fn from(choice: $package::ToolChoice) -> Self {
                let ranked = choice.ranked.into_iter().map(|tool| {
                    let $package::RankedTool { name, score, words, meaning, chosen } = tool;
                    let [score, words] = [score, words].map(|score| known(Some(score)).unwrap_or_default());
                    RankedTool { name, score, words, meaning: known(meaning), chosen }
                });
                ToolChoice { among: choice.among, ranked: ranked.collect() }
            }
        }

        impl From<&Citation> for $package::Citation {
            fn from(citation: &Citation) -> Self {
                let Citation { step, collection, file, title, heading, page, start, end, quote } = citation.clone();
                $package::Citation { step, collection, file, title, heading, page, start, end, quote }
            }
        }

        impl From<$package::Citation> for Citation {
            fn from(citation: $package::Citation) -> Self {
                let $package::Citation { step, collection, file, title, heading, page, start, end, quote } = citation;
                Citation { step, collection, file, title, heading, page, start, end, quote }
            }
        }

        impl From<Timing> for $package::Timing {
            fn from(timing: Timing) -> Self {
                let Timing { own, bus, retry } = timing;
                $package::Timing {
                    own: Some(duration_to_proto(own)),
                    bus: Some(duration_to_proto(bus)),
                    retry: Some(duration_to_proto(retry)),
                }
            }
        }

        impl From<$package::Timing> for Timing {
            fn from(timing: $package::Timing) -> Self {
                Timing { own: time(timing.own), bus: time(timing.bus), retry: time(timing.retry) }
            }
        }

        impl From<Limits> for $package::Limits {
            fn from(limits: Limits) -> Self {
                $package::Limits {
                    max_steps: limits.max_steps.into(),
                    max_reflections: limits.max_reflections.into(),
                    max_tokens: limits.max_tokens.into(),
                    max_time: Some(duration_to_proto(limits.max_time)),
                }
            }
        }

        /// The limits of a task are resolved: every bound is there. See
        /// [`crate::convert::resolve_limits`] for requests.
        impl TryFrom<$package::Limits> for Limits {
            type Error = ConversionError;

            fn try_from(limits: $package::Limits) -> Result<Self, Self::Error> {
                Ok(Limits {
                    max_steps: bound(limits.max_steps, "max_steps")?,
                    max_reflections: bound(limits.max_reflections, "max_reflections")?,
                    max_tokens: bound(limits.max_tokens, "max_tokens")?,
                    max_time: bound(limits.max_time.map(duration_from_proto), "max_time")?,
                })
            }
        }

        impl From<Sampling> for $package::$sampling {
            fn from(sampling: Sampling) -> Self {
                let Sampling { temperature, top_k, top_p, seed } = sampling;
                $package::$sampling { temperature, top_k, top_p, seed }
            }
        }

        impl TryFrom<$package::$sampling> for Sampling {
            type Error = InvalidSampling;

            fn try_from(sampling: $package::$sampling) -> Result<Self, Self::Error> {
                let $package::$sampling { temperature, top_k, top_p, seed } = sampling;
                Sampling { temperature, top_k, top_p, seed }.checked()
            }
        }
    };
}

alike!(v1, SamplingParams);
alike!(store_v2, Sampling);
