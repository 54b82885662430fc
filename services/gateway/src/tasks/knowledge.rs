//! Whether the knowledge that a task names is there.

use std::time::Duration;

use autoact_trajectory::Tenant;

use crate::tasks::{Application, SubmitError};

/// How long a submission waits for the list of collections.
const LIMIT: Duration = Duration::from_secs(1);
/// Names that are told.
const MOST_TOLD: usize = 16;

impl Application {
    /// Whether each name is the group's own corpus or a collection. What cannot be looked up now is
    /// taken as there: the task's tools will tell.
    ///
    /// # Errors
    /// A name that is neither.
    pub(super) async fn check_knowledge(&self, tenant: &Tenant, names: &[String]) -> Result<(), SubmitError> {
        if names.is_empty() {
            return Ok(());
        }
        let (Ok(library), Some(shelves)) = (self.catalog.tools().await, &self.shelves) else { return Ok(()) };
        // a tool-agent of an earlier release does not say what its corpus is called
        let Some(own) = &library.corpus else { return Ok(()) };
        if names.iter().all(|name| name == own) {
            return Ok(());
        }
        match shelves.collections(tenant, LIMIT).await {
            Ok(collections) => unknown(names, own, &collections).map_or(Ok(()), Err),
            Err(failure) => {
                tracing::debug!(failure = failure.chain(), "whether the collections are there is not known");
                Ok(())
            }
        }
    }
}

/// The first name that is none.
fn unknown(names: &[String], own: &str, collections: &[String]) -> Option<SubmitError> {
    let name = names.iter().find(|name| *name != own && !collections.contains(name))?.clone();
    let own = Some(own.to_owned()).filter(|own| !own.is_empty());
    let mut known: Vec<String> = own.into_iter().chain(collections.iter().cloned()).collect();
    known.truncate(MOST_TOLD);
    Some(SubmitError::Knowledge { name, known })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_corpus_or_a_collection() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let found = |asked: &[&str], own: &str| match unknown(&names(asked), own, &names(&["handbook", "laws"])) {
            Some(SubmitError::Knowledge { name, known }) => Some((name, known)),
            _ => None,
        };
        assert_eq!(found(&["laws", "atlas"], "atlas"), None);
        assert_eq!(found(&["laws", "atlsa"], "atlas"), Some(("atlsa".into(), names(&["atlas", "handbook", "laws"]))));
        // without a corpus of its own
        assert_eq!(found(&["atlas"], ""), Some(("atlas".into(), names(&["handbook", "laws"]))));
    }
}
