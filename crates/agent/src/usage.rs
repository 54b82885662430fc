//! What a reply cost, as it travels.

use std::time::Duration;

use autoact_model::Generated;
use autoact_proto::v1;

/// The costs of a reply.
pub fn usage(generated: &Generated) -> v1::Usage {
    let (adapter, adapter_digest) =
        generated.adapter.as_ref().map(|adapter| (adapter.name.clone(), adapter.digest.clone())).unwrap_or_default();
    v1::Usage {
        queue: Some(duration(generated.queue)),
        prefill: Some(duration(generated.prefill)),
        decode: Some(duration(generated.decode)),
        tool: None,
        total: None,
        prompt_tokens: count(generated.prompt_tokens),
        cached_prompt_tokens: count(generated.cached_prompt_tokens),
        completion_tokens: count(generated.completion_tokens),
        model: generated.model.clone(),
        adapter,
        adapter_digest,
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn duration(duration: Duration) -> prost_types::Duration {
    prost_types::Duration { seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX), nanos: duration.subsec_nanos().cast_signed() }
}
