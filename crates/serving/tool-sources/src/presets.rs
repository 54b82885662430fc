//! The ready-made tools.

use autoact_tools::{Preset, local_presets};

/// The presets of all kinds that a library can have, in the order in which people are shown them.
pub fn presets() -> impl Iterator<Item = &'static Preset> {
    local_presets().chain(autoact_web_tools::presets())
}
