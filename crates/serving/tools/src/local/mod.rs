//! Kinds that need neither the group's knowledge nor a network: each is a preset and a function
//! that makes its tool. They can be used wherever a library is read.

mod calendar;
mod code_interpreter;
mod database;
mod dates;
mod holidays;
mod image_to_text;
mod knowledge_graph;
mod settings;
mod solar_terms;
mod sun;
mod table_verbalizer;
mod time_delta;

use std::path::Path;
use std::sync::Arc;

use autoact_trajectory::ToolSpec;

use crate::preset::Preset;
use crate::tool::Tool;

/// Makes the tool of an entry, or says all its mistakes. `run` has no `kind`, and only keys of the
/// preset. Relative paths start from the library's directory.
type Make = fn(run: toml::Table, spec: ToolSpec, base: Option<&Path>) -> Result<Arc<dyn Tool>, Vec<String>>;

/// One kind.
pub(crate) struct LocalKind {
    pub(crate) preset: &'static Preset,
    pub(crate) make: Make,
}

/// All of them, in the order in which people are shown them.
pub(crate) const LOCAL: &[LocalKind] = &[
    LocalKind { preset: &time_delta::PRESET, make: time_delta::make },
    LocalKind { preset: &calendar::PRESET, make: calendar::make },
    LocalKind { preset: &solar_terms::PRESET, make: solar_terms::make },
    LocalKind { preset: &holidays::PRESET, make: holidays::make },
    LocalKind { preset: &sun::PRESET, make: sun::make },
    LocalKind { preset: &database::PRESET, make: database::make },
    LocalKind { preset: &knowledge_graph::PRESET, make: knowledge_graph::make },
    LocalKind { preset: &table_verbalizer::PRESET, make: table_verbalizer::make },
    LocalKind { preset: &code_interpreter::PRESET, make: code_interpreter::make },
    LocalKind { preset: &image_to_text::PRESET, make: image_to_text::make },
];

/// The presets of the kinds that need no other crate.
pub fn local_presets() -> impl Iterator<Item = &'static Preset> {
    LOCAL.iter().map(|kind| kind.preset)
}

pub(crate) fn local(kind: &str) -> Option<&'static LocalKind> {
    LOCAL.iter().find(|local| local.preset.kind == kind)
}
