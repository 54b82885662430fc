//! The model with its adapters, and the tools: what planners stand on.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use autoact_in_process::{Voices, engines};
use autoact_learn::installed_round;
use autoact_model::{Backend, Engine, ModelDir};
use autoact_planners::{Cast, Kind, PlannerOptions, Toolbox, build};
use autoact_prompt::Role;
use autoact_tools::{Corpus, ToolLibrary};
use autoact_trajectory::Calibration;
use serde::Deserialize;

use crate::args::{EvalOptions, GroupOptions};

/// Names of the unfiltered adapters in the engine and in a run's directory.
const UNFILTERED: &str = "unfiltered";
/// Name of the adapter that was trained on all roles.
const ONE: &str = "one";

/// Engines with the same adapters, who may speak, and everybody's tools.
pub(crate) struct PlannerSetup {
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
    #[serde(default)]
    sentences: usize,
}

impl PlannerSetup {
    /// Loads the model, its adapters and the tools.
    pub(crate) fn load(group: &GroupOptions, options: &EvalOptions, same_data: bool) -> anyhow::Result<PlannerSetup> {
        ensure!(
            group.model.backend.is_none(),
            "planners run the model in this process; fix: leave out `--backend`, or leave out `--planner` to ask the group"
        );
        let corpus = Arc::new(Corpus::load(&group.corpus)?);
        let library = Arc::new(ToolLibrary::load(&group.tools, corpus)?);
        let tools = match &options.compare.run {
            Some(run) => selected(library, run)?,
            None => Toolbox::all(library),
        };
        let engines = engines(&ModelDir::open(&group.model.model)?, options.concurrency)?;
        let origin = match &options.compare.run {
            // beside the installed ones lies what was trained on the same trajectories
            Some(run) if same_data => run.join(format!("rounds/{}/adapters", installed_round(run)?)),
            Some(run) => run.join("adapters"),
            None => group.model.adapters_dir(),
        };
        let compared = same_data && options.compare.run.is_some();
        let cast = if origin == Path::new("none") {
            Cast::default()
        } else {
            // a run's calibration is beside the adapters that it installed, not in a round
            let installed = options.compare.run.as_ref().map_or_else(|| origin.clone(), |run| run.join("adapters"));
            // the paper's group has none
            let calibration = if options.compare.protocol.is_some() { None } else { calibration(&installed)? };
            Cast { calibration, ..cast(&engines, &origin, compared, &tools)? }
        };
        let backends: Vec<Arc<dyn Backend>> = engines.into_iter().map(|engine| Arc::new(engine) as Arc<dyn Backend>).collect();
        let first = backends.first().context("there is no engine")?;
        let options = planner_options(options, first.info());
        Ok(PlannerSetup { backends, cast, tools, options, origin })
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

/// The tools that a run selected, showing pages as they did there; all, if it has not come that far.
fn selected(library: Arc<ToolLibrary>, run: &Path) -> anyhow::Result<Toolbox> {
    anyhow::ensure!(run.is_dir(), "there is no directory `{}`; fix: `--run` takes the directory that `autoact learn` wrote", run.display());
    let path = run.join("tools.json");
    if !path.exists() {
        return Ok(Toolbox::all(library));
    }
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let selection: Selection = serde_json::from_str(&text).with_context(|| format!("`{}` has no list `selected`", path.display()))?;
    let library = NonZeroUsize::new(selection.sentences).map_or(library.clone(), |most| Arc::new(library.showing(most)));
    Toolbox::select(library, &selection.selected)
        .with_context(|| format!("`{}` selects from another tool library; fix: name the task's with `--tools`", path.display()))
}

/// Loads the adapters there are. The group's three have to be there; what a run trained for
/// comparison may be.
fn cast(engines: &[Engine], adapters: &Path, compared: bool, tools: &Toolbox) -> anyhow::Result<Cast> {
    let load = |name: &str| -> anyhow::Result<()> {
        let path = adapters.join(name);
        for engine in engines {
            engine.load_adapter(name, &path).with_context(|| format!("cannot load the adapter `{}`", path.display()))?;
        }
        Ok(())
    };
    // complete ones only: a training that was stopped has left no such file
    let there = |name: &str| adapters.join(name).join("training.json").is_file();
    let three = |voices: Voices| -> anyhow::Result<Option<Voices>> {
        let names: Vec<&String> = [&voices.plan, &voices.tool, &voices.reflect].into_iter().flatten().collect();
        if !names.iter().all(|name| there(name)) {
            return Ok(None);
        }
        names.into_iter().try_for_each(|name| load(name))?;
        Ok(Some(voices))
    };
    for role in Role::ALL {
        load(role.as_str())?;
    }
    let mut cast = Cast { group: Some(Voices::by_role()), ..Cast::default() };
    if !compared {
        return Ok(cast);
    }
    if there(ONE) {
        load(ONE)?;
        cast.one = Some(ONE.to_owned());
    }
    cast.unfiltered = three(Voices::named(|role| format!("{UNFILTERED}-{}", role.as_str())))?;
    for count in Kind::FIGURE_3.into_iter().filter_map(Kind::trained_on) {
        let voices = three(Voices::named(|role| format!("{count}-{}", role.as_str())))?;
        cast.trained_on.extend(voices.map(|voices| (count, voices)));
    }
    let mut specialists = BTreeMap::new();
    for tool in tools.specs() {
        let name = format!("tool-{}", tool.name);
        if there(&name) {
            load(&name)?;
            specialists.insert(tool.name.clone(), name);
        }
    }
    // a tool that no trajectory used has no agent: the base speaks for it
    cast.specified = (!specialists.is_empty()).then(|| Voices { tool: None, specialists, ..Voices::by_role() });
    Ok(cast)
}

/// What lies beside Reflect-Agent's adapter.
pub(in crate::eval) fn calibration(adapters: &Path) -> anyhow::Result<Option<Calibration>> {
    let reflect = adapters.join(Role::Reflect.as_str());
    let Some(bytes) = autoact_registry::calibration(&reflect)? else { return Ok(None) };
    let read = Calibration::parse(&String::from_utf8_lossy(&bytes));
    Ok(Some(read.with_context(|| format!("cannot use the calibration in `{}`", reflect.display()))?))
}

/// How planners decode and are prompted with this model.
fn planner_options(options: &EvalOptions, info: &autoact_model::BackendInfo) -> PlannerOptions {
    let mut planner = PlannerOptions::for_model(info);
    planner.sampling.temperature = options.temperature;
    planner.next_attempt = options.next_attempt.map(Into::into);
    planner.shots = options.compare.shots.unwrap_or(planner.shots);
    if options.compare.protocol.is_some() { planner.paper() } else { planner }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Args, Command};

    /// `autoact eval --run DIR` with further arguments, of whose group the model is the bundled one.
    fn load(run: &Path, extra: &[&str]) -> anyhow::Result<PlannerSetup> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let path = |file: &str| root.join(file).display().to_string();
        let (model, corpus, tools) = (path("models/stem"), path("corpora/atlas/pages.jsonl"), path("corpora/atlas/tools.toml"));
        let run = run.display().to_string();
        let fixed = ["autoact", "eval", "--model", &model, "--corpus", &corpus, "--tools", &tools, "--run", &run, "--concurrency", "1"];
        let Command::Eval(options) = Args::try_parse_from(fixed.iter().chain(extra))?.command else { anyhow::bail!("not `eval`") };
        PlannerSetup::load(&options.group, &options, options.compare.same_data())
    }

    /// A run that chose its second round.
    fn run(calibration: Option<&[u8]>) -> anyhow::Result<tempfile::TempDir> {
        let dir = tempfile::tempdir()?;
        let bundled = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../models/stem/adapters");
        for (adapters, role) in ["adapters", "rounds/2/adapters"].into_iter().flat_map(|at| Role::ALL.map(|role| (at, role))) {
            let (from, to) = (bundled.join(role.as_str()), dir.path().join(adapters).join(role.as_str()));
            std::fs::create_dir_all(&to)?;
            for file in ["adapter_config.json", "adapter_model.safetensors"] {
                std::fs::copy(from.join(file), to.join(file))?;
            }
        }
        if let Some(calibration) = calibration {
            std::fs::write(dir.path().join("adapters/reflect/calibration.json"), calibration)?;
        }
        std::fs::write(dir.path().join("iterate.json"), r#"{"rounds": [], "chosen": 2}"#)?;
        Ok(dir)
    }

    #[test]
    fn a_run_is_judged_by_the_calibration_that_it_installed() -> anyhow::Result<()> {
        let bundled = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../models/stem/adapters/reflect/calibration.json");
        let bytes = std::fs::read(bundled)?;
        let threshold = Calibration::parse(&String::from_utf8_lossy(&bytes))?.threshold;
        let calibrated = run(Some(&bytes))?;
        // a table's planners stand on a round's adapters, which have no calibration of their own
        for extra in [&["--planner", "autoact"][..], &["--table", "2"]] {
            let found = load(calibrated.path(), extra)?.cast.calibration.map(|calibration| calibration.threshold);
            assert_eq!(found, Some(threshold), "{extra:?}");
        }
        assert!(load(run(None)?.path(), &["--table", "2"])?.cast.calibration.is_none());
        Ok(())
    }
}
