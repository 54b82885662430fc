//! The model with its adapters, and the tools: what planners stand on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use autoact_local::Voices;
use autoact_model::{Backend, Engine, EngineOptions, ModelDir};
use autoact_planners::{Cast, Kind, PlannerOptions, Toolbox, build};
use autoact_prompt::Role;
use autoact_tools::{Corpus, ToolLibrary};
use serde::Deserialize;

use super::planner_options;
use crate::args::{EvalOptions, GroupOptions};

/// Weights up to this size are loaded once for each core, so that each core computes a question of its own.
const SMALL_MODEL: u64 = 200 << 20;
/// Names of the unfiltered adapters in the engine and in a run's directory.
const UNFILTERED: &str = "unfiltered";
/// Name of the adapter that was trained on all roles.
const ONE: &str = "one";

/// Engines with the same adapters, who may speak, and everybody's tools.
pub(crate) struct Stage {
    pub(crate) backends: Vec<Arc<dyn Backend>>,
    pub(crate) cast: Cast,
    pub(crate) tools: Toolbox,
    pub(crate) options: PlannerOptions,
    /// Where adapters were looked for.
    origin: PathBuf,
}

/// What is needed of a run's `tools.json`.
#[derive(Deserialize)]
struct Selection {
    selected: Vec<String>,
}

impl Stage {
    /// Loads the model, its adapters and the tools.
    pub(crate) fn load(group: &GroupOptions, options: &EvalOptions) -> anyhow::Result<Stage> {
        let corpus = Arc::new(Corpus::load(&group.corpus)?);
        let library = Arc::new(ToolLibrary::load(&group.tools, corpus)?);
        let tools = match &options.compare.run {
            Some(run) => selected(library, run)?,
            None => Toolbox::all(library),
        };
        let engines = engines(&group.model, options.concurrency)?;
        let origin = options.compare.run.as_ref().map_or_else(|| group.adapters.clone(), |run| run.join("adapters"));
        let cast = if origin == Path::new("none") { Cast::default() } else { cast(&engines, &origin, options.compare.run.is_some())? };
        let backends: Vec<Arc<dyn Backend>> = engines.into_iter().map(|engine| Arc::new(engine) as Arc<dyn Backend>).collect();
        let first = backends.first().context("there is no engine")?;
        let options = planner_options(options, first.info());
        Ok(Stage { backends, cast, tools, options, origin })
    }

    /// The planners that can run, and why the others cannot. One that was asked for by name has to.
    pub(crate) fn possible(&self, kinds: Vec<Kind>, named: bool) -> anyhow::Result<(Vec<Kind>, Vec<String>)> {
        let (mut possible, mut left_out) = (Vec::new(), Vec::new());
        for kind in kinds {
            let backend = self.backends.first().context("there is no engine")?;
            match build(kind, backend, &self.cast, &self.options) {
                Ok(_) => possible.push(kind),
                Err(error) if named => {
                    anyhow::bail!(
                        "{error}, which `{}` does not have; fix: `--run DIR` with a directory of `autoact learn --variants`",
                        self.origin.display()
                    )
                }
                Err(error) => left_out.push(format!("{error}, which `{}` does not have", self.origin.display())),
            }
        }
        anyhow::ensure!(!possible.is_empty(), "none of the planners can run: {}", left_out.join("; "));
        Ok((possible, left_out))
    }
}

/// The tools that a run selected; all, if it has not come that far.
fn selected(library: Arc<ToolLibrary>, run: &Path) -> anyhow::Result<Toolbox> {
    anyhow::ensure!(run.is_dir(), "there is no directory `{}`; fix: `--run` takes the directory that `autoact learn` wrote", run.display());
    let path = run.join("tools.json");
    if !path.exists() {
        return Ok(Toolbox::all(library));
    }
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let selection: Selection = serde_json::from_str(&text).with_context(|| format!("`{}` has no list `selected`", path.display()))?;
    Toolbox::select(library, &selection.selected)
        .with_context(|| format!("`{}` selects from another tool library; fix: name the task's with `--tools`", path.display()))
}

/// One engine, or one for each core while the model is small.
fn engines(model: &Path, concurrency: usize) -> anyhow::Result<Vec<Engine>> {
    let dir = ModelDir::open(model)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let bytes: u64 = dir.shards().iter().filter_map(|shard| shard.metadata().ok()).map(|file| file.len()).sum();
    let count = if bytes <= SMALL_MODEL { cores.min(concurrency).max(1) } else { 1 };
    let options = EngineOptions { threads: (cores / count).max(1), ..EngineOptions::default() };
    (0..count).map(|_| Ok(Engine::start(&dir, options.clone())?)).collect()
}

/// Loads the adapters there are. The group's three have to be there; what a run trained for comparison may be.
fn cast(engines: &[Engine], adapters: &Path, run: bool) -> anyhow::Result<Cast> {
    let load = |name: &str, path: &Path| -> anyhow::Result<()> {
        for engine in engines {
            engine.load_adapter(name, path).with_context(|| format!("cannot load the adapter `{}`", path.display()))?;
        }
        Ok(())
    };
    for role in Role::ALL {
        load(role.as_str(), &adapters.join(role.as_str()))?;
    }
    let mut cast = Cast { group: Some(Voices::by_role()), ..Cast::default() };
    if !run {
        return Ok(cast);
    }
    let variants = adapters.with_file_name("variants");
    if let Some(path) = first(&[adapters.join(ONE), variants.join(ONE)]) {
        load(ONE, &path)?;
        cast.one = Some(ONE.to_owned());
    }
    let name = |role: Role| format!("{UNFILTERED}-{}", role.as_str());
    let path = |role: Role| first(&[adapters.join(name(role)), variants.join(UNFILTERED).join(role.as_str())]);
    if let (Some(plan), Some(tool), Some(reflect)) = (path(Role::Plan), path(Role::Tool), path(Role::Reflect)) {
        for (role, path) in [(Role::Plan, plan), (Role::Tool, tool), (Role::Reflect, reflect)] {
            load(&name(role), &path)?;
        }
        cast.unfiltered = Some(Voices { plan: Some(name(Role::Plan)), tool: Some(name(Role::Tool)), reflect: Some(name(Role::Reflect)) });
    }
    Ok(cast)
}

/// The first of these that is a PEFT adapter.
fn first(paths: &[PathBuf]) -> Option<PathBuf> {
    paths.iter().find(|path| path.join("adapter_config.json").is_file()).cloned()
}
