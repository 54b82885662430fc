//! Publishing of learned adapters as a version of an adapter registry.

use std::collections::BTreeMap;
use std::path::Path;

use autoact_registry::{DataRecord, NewVersion, Registry, RegistryError, Version, sha256_file};

use crate::error::LearnError;
use crate::iterate::{GROUP, Iterated};
use crate::report::Report;
use crate::round::Round;
use crate::run::Run;
use crate::store::read_json;
use crate::workplace::Workplace;

/// Publishes the adapters of a run. With `promote`, services that follow the registry switch to
/// them.
///
/// # Errors
/// The registry refuses the adapters, or a file cannot be read.
pub(crate) fn publish(work: &Workplace, run: &Run, report: &Report, registry: &Path, promote: bool) -> Result<Version, LearnError> {
    let failed = |source: RegistryError| LearnError::Registry { path: registry.to_owned(), source: Box::new(source) };
    let registry_dir = Registry::open(registry).map_err(failed)?;
    let chosen = read_json::<Iterated>(&run.path("iterate.json"))?.map_or(1, |iterated| iterated.chosen);
    let round = Round::new(run, chosen);
    let mut data = BTreeMap::new();
    for name in GROUP {
        let sha256 = sha256_file(&round.path(&format!("datasets/{name}.jsonl"))).map_err(failed)?;
        let count = report.training.iter().find(|one| one.adapter == name && one.round == chosen).map_or(0, |one| one.documents as u64);
        data.insert(name.to_owned(), DataRecord { sha256, count });
    }
    let parent = registry_dir.pointer().map_err(failed)?.current().cloned();
    let settings = serde_json::to_value(&work.task.settings.train).unwrap_or_default();
    let metrics = serde_json::json!({ "evaluation": report.evaluation, "gain": report.gain, "judges": report.judges, "round": chosen });
    let version = registry_dir
        .publish(NewVersion {
            task: work.task.info.name.clone(),
            base: work.model.display().to_string(),
            base_sha256: work.base_digest().to_owned(),
            adapters: run.path("adapters"),
            parent,
            data,
            settings,
            metrics,
        })
        .map_err(failed)?;
    if promote {
        registry_dir.promote(version.id()).map_err(failed)?;
    }
    Ok(version)
}
