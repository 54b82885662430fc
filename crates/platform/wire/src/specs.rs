//! Specifications of tools as they are stored: each once, under the digest of its bytes. Events
//! name them by tool and digest.

use std::collections::BTreeMap;

use autoact_trajectory::{Asks, Digest, Effect, ParameterSchema, Submitted, Tenant, Terminal, ToolSpec};
use prost::Message;

use crate::convert::{duration_from_proto, duration_to_proto};
use crate::digest::digest;
use crate::event_error::EventError;
pub use crate::event_error::ToolRef;
use crate::store_v2 as v2;

/// Where specifications are found by their digests.
pub trait ToolSpecs {
    /// The specification of a tenant with this digest; `None`: it is not here.
    fn get(&self, tenant: &Tenant, digest: &Digest) -> Option<ToolSpec>;
}

/// Specifications at hand.
impl ToolSpecs for BTreeMap<Digest, ToolSpec> {
    fn get(&self, _: &Tenant, digest: &Digest) -> Option<ToolSpec> {
        BTreeMap::get(self, digest).cloned()
    }
}

/// A specification in its stored form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSpec {
    /// SHA-256 of the bytes: its name in the store.
    pub digest: Digest,
    /// What is stored.
    pub bytes: Vec<u8>,
}

/// The stored form of the tools that a task begins with.
pub fn stored_specs(submitted: &Submitted) -> impl Iterator<Item = (&ToolSpec, StoredSpec)> {
    submitted.tools.iter().map(|spec| {
        let bytes = tool_to_message(spec).encode_to_vec();
        (spec, StoredSpec { digest: digest(&bytes), bytes })
    })
}

/// The specification that is stored as `bytes`.
///
/// # Errors
/// The bytes are none.
pub fn decode_spec(bytes: &[u8]) -> Result<ToolSpec, EventError> {
    v2::ToolSpec::decode(bytes).map(tool_from_message).map_err(EventError::Malformed)
}

/// The tools as an event names them.
pub(crate) fn refs_to_message(submitted: &Submitted) -> Vec<v2::ToolRef> {
    let named = |(spec, stored): (&ToolSpec, StoredSpec)| v2::ToolRef { name: spec.name.clone(), sha256: stored.digest.0.to_vec() };
    stored_specs(submitted).map(named).collect()
}

/// The tools that an event names. Before they were named by digest, they stood in the event:
/// `inline`.
pub(crate) fn tools_from_message(
    tenant: &Tenant,
    inline: Vec<v2::ToolSpec>,
    refs: Vec<v2::ToolRef>,
    specs: Option<&dyn ToolSpecs>,
) -> Result<Vec<ToolSpec>, EventError> {
    let Some(specs) = specs else { return Ok(Vec::new()) };
    let mut tools: Vec<ToolSpec> = inline.into_iter().map(tool_from_message).collect();
    let mut missing = Vec::new();
    for named in refs {
        let digest = Digest::from_slice(&named.sha256).ok_or(crate::ConversionError::MissingField("sha256"))?;
        match specs.get(tenant, &digest) {
            Some(spec) => tools.push(spec),
            None => missing.push(ToolRef { name: named.name, digest }),
        }
    }
    if missing.is_empty() { Ok(tools) } else { Err(EventError::MissingTools(missing)) }
}

fn tool_to_message(spec: &ToolSpec) -> v2::ToolSpec {
    let effect = match spec.effect {
        Effect::ReadOnly => v2::Effect::ReadOnly,
        Effect::Idempotent => v2::Effect::Idempotent,
        Effect::SideEffect => v2::Effect::SideEffect,
    };
    v2::ToolSpec {
        name: spec.name.clone(),
        definition: spec.definition.clone(),
        usage: spec.usage.clone(),
        effect: effect as i32,
        timeout: Some(duration_to_proto(spec.timeout)),
        max_observation_bytes: u32::try_from(spec.max_observation_bytes).unwrap_or(u32::MAX),
        terminal: spec.is_terminal(),
        no_answer: spec.is_no_answer(),
        schema: spec.schema.as_ref().map(|schema| schema.as_str().to_owned()).unwrap_or_default(),
        examples: spec.examples.clone(),
        multiline: spec.multiline,
        needs_approval: spec.needs_approval(),
        asks_user: spec.asks_user(),
    }
}

fn tool_from_message(spec: v2::ToolSpec) -> ToolSpec {
    // an effect that is not known is taken as the dangerous one
    let effect = match spec.effect() {
        v2::Effect::ReadOnly => Effect::ReadOnly,
        v2::Effect::Idempotent => Effect::Idempotent,
        v2::Effect::SideEffect | v2::Effect::Unspecified => Effect::SideEffect,
    };
    // a schema of a form that is not known is none: the task can be read, and Tool-Agent checks the
    // arguments
    let schema = Some(spec.schema).filter(|text| !text.is_empty()).and_then(|text| ParameterSchema::parse(&text).ok());
    ToolSpec {
        effect,
        timeout: spec.timeout.map(duration_from_proto).unwrap_or_default(),
        max_observation_bytes: spec.max_observation_bytes as usize,
        terminal: Terminal::from_flags(spec.terminal, spec.no_answer),
        name: spec.name,
        definition: spec.definition,
        usage: spec.usage,
        schema,
        examples: spec.examples,
        multiline: spec.multiline,
        asks: Asks::from_flags(spec.needs_approval, spec.asks_user),
    }
}
