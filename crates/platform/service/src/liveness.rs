//! What makes a process that still answers as good as dead: only a new one helps.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

type Works = Box<dyn Fn() -> bool + Send + Sync>;

/// The parts of a process that can be stuck for good; cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Liveness {
    parts: Arc<RwLock<Vec<(&'static str, Works)>>>,
}

impl fmt::Debug for Liveness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Liveness").field("stuck", &self.stuck()).finish_non_exhaustive()
    }
}

impl Liveness {
    pub(crate) fn add(&self, name: &'static str, works: impl Fn() -> bool + Send + Sync + 'static) {
        self.parts.write().unwrap_or_else(PoisonError::into_inner).push((name, Box::new(works)));
    }

    /// The parts that are stuck.
    pub(crate) fn stuck(&self) -> Vec<String> {
        let parts = self.parts.read().unwrap_or_else(PoisonError::into_inner);
        parts.iter().filter(|(_, works)| !works()).map(|(name, _)| (*name).to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_part_is_named_as_long_as_it_is_stuck() {
        let (liveness, works) = (Liveness::default(), Arc::new(AtomicBool::new(true)));
        let told = Arc::clone(&works);
        liveness.add("model", move || told.load(Ordering::Relaxed));
        liveness.add("disk", || true);
        assert!(liveness.stuck().is_empty());
        works.store(false, Ordering::Relaxed);
        assert_eq!(liveness.stuck(), ["model"]);
    }
}
