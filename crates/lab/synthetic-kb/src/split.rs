//! The held-out split: chains of relations that never occur in training. A hash of the chain
//! decides, so the split is the same on every machine and in every version.

use autoact_base::random::stable_hash;

/// One chain in this many is held out.
const HELD_OUT_ONE_IN: u64 = 4;

/// Which chains of relations may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Split {
    /// Chains that adapters may be trained on.
    Train,
    /// Chains kept for evaluation.
    HeldOut,
    /// No distinction: for the base model, whose knowledge bases have other relations.
    Any,
}

impl Split {
    /// Whether a question form with this key belongs to the split.
    pub fn allows(self, key: &str) -> bool {
        match self {
            Split::Any => true,
            Split::Train => !held_out(key),
            Split::HeldOut => held_out(key),
        }
    }
}

/// Whether the chain `river.country>country.capital` (or another form's key) is held out.
pub fn held_out(key: &str) -> bool {
    stable_hash(key).is_multiple_of(HELD_OUT_ONE_IN)
}
