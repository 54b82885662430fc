//! The whole pipeline: the stages one after the other over one run directory.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use crate::crew::Stop;
use crate::differentiate::differentiate;
use crate::error::LearnError;
use crate::evaluate::evaluate;
use crate::instruct::instruct;
use crate::keep::filter;
use crate::reflect::reflect;
use crate::report::{Report, compute, report};
use crate::run::Run;
use crate::select::select;
use crate::stage::Stage;
use crate::synthesize::synthesize;
use crate::task::Task;
use crate::train::{adapters, train};
use crate::view::View;
use crate::workplace::Workplace;

/// What to learn, with what, where to, and how far.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The task file.
    pub task: PathBuf,
    /// The base model, a Hugging Face directory.
    pub model: PathBuf,
    /// The run directory; `None`: `runs/<task>` (`runs/<task>-quick`).
    pub run: Option<PathBuf>,
    /// Small numbers, for CI.
    pub quick: bool,
    /// Also train and evaluate the rows of table 2.
    pub variants: bool,
    /// Only this stage; those before it must be complete.
    pub only: Option<Stage>,
    /// The last stage.
    pub until: Stage,
    /// Delete what this stage and those after it made, and do them anew.
    pub again: Option<Stage>,
}

impl Plan {
    /// Everything with the defaults.
    pub fn new(task: impl Into<PathBuf>, model: impl Into<PathBuf>) -> Plan {
        Plan {
            task: task.into(),
            model: model.into(),
            run: None,
            quick: false,
            variants: false,
            only: None,
            until: Stage::Report,
            again: None,
        }
    }
}

/// Learns: runs the stages that are not complete yet. Returns the report of what is there afterwards.
///
/// # Errors
/// What went wrong, with what to do; everything done before is kept.
pub fn learn(plan: &Plan, view: Arc<dyn View>, stop: Stop) -> Result<Report, LearnError> {
    let mut task = Task::load(&plan.task)?;
    if plan.quick {
        task.settings = task.settings.quick();
    }
    let suffix = if plan.quick { "-quick" } else { "" };
    let dir = plan.run.clone().unwrap_or_else(|| PathBuf::from("runs").join(format!("{}{suffix}", task.name)));
    let mut work = Workplace::open(task, &plan.model, plan.variants, view, stop)?;
    let mut run = Run::open(&dir, &work.task.name, work.origin()?, plan.again)?;
    match plan.only {
        Some(stage) => {
            if let Some(needs) =
                Stage::ALL.into_iter().find(|before| *before < stage && !skippable(*before, stage) && !run.is_complete(*before))
            {
                return Err(LearnError::Order { stage, needs, path: dir });
            }
            perform(stage, &mut work, &mut run)?;
        }
        None => {
            for stage in Stage::ALL.into_iter().filter(|stage| *stage <= plan.until) {
                perform(stage, &mut work, &mut run)?;
            }
        }
    }
    compute(&work, &run)
}

/// A report can be made of whatever is there.
fn skippable(_before: Stage, stage: Stage) -> bool {
    stage == Stage::Report
}

fn perform(stage: Stage, work: &mut Workplace, run: &mut Run) -> Result<(), LearnError> {
    if run.is_complete(stage) && !grows(stage, work, run) {
        return Ok(());
    }
    work.go_on(stage)?;
    let begun = Instant::now();
    let done = match stage {
        Stage::Instruct => instruct(work, run),
        Stage::Select => select(work, run),
        Stage::Synthesize => synthesize(work, run),
        Stage::Filter => filter(work, run),
        Stage::Reflect => reflect(work, run),
        Stage::Differentiate => differentiate(work, run),
        Stage::Train => {
            work.dismiss();
            train(work, run)
        }
        Stage::Evaluate => evaluate(work, run),
        Stage::Report => report(work, run).map(drop),
    };
    run.spent(stage, begun.elapsed().as_secs_f64())?;
    done?;
    run.complete(stage)
}

/// Whether a complete stage has more to do: variants were asked for later, or the report is to tell of new things.
fn grows(stage: Stage, work: &Workplace, run: &Run) -> bool {
    let missing = |name: &str, file: &str| !run.path(&format!("{file}/{name}")).exists();
    match stage {
        Stage::Report => true,
        Stage::Differentiate => work.variants && missing("one.jsonl", "datasets"),
        Stage::Train => adapters(work.variants).iter().any(|name| missing("training.json", &format!("adapters/{name}"))),
        Stage::Evaluate => work.variants,
        _ => false,
    }
}
