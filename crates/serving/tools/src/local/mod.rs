//! Kinds that need neither the group's knowledge nor a network: each is a preset and a function
//! that makes its tool. They can be used wherever a library is read.

mod code_interpreter;
mod database;
mod image_to_text;
mod knowledge_graph;
mod settings;
mod table_verbalizer;

use std::path::Path;
use std::sync::Arc;

use autoact_trajectory::ToolSpec;

use crate::preset::Preset;
use crate::tool::Tool;

/// One kind.
pub(crate) struct LocalKind {
    pub(crate) preset: &'static Preset,
    /// The tool of an entry. `run` has no `kind`, and only keys of the preset. Relative paths start
    /// from the library's directory.
    pub(crate) make: fn(run: toml::Table, spec: ToolSpec, base: Option<&Path>) -> Result<Arc<dyn Tool>, Vec<String>>,
}

/// All of them, in the order in which people are shown them.
pub(crate) const LOCAL: &[LocalKind] = &[
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
