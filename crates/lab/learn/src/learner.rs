//! The whole pipeline: the stages one after the other over one run directory.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use crate::crew::Stop;
use crate::differentiate::differentiate;
use crate::error::LearnError;
use crate::evaluate::evaluate;
use crate::instruct::instruct;
use crate::iterate::{GROUP, install, iterate};
use crate::keep::filter;
use crate::publish::publish;
use crate::reflect::reflect;
use crate::report::{Report, compute};
use crate::report_files::write_report;
use crate::round::Round;
use crate::run::Run;
use crate::select::select;
use crate::stage::Stage;
use crate::synthesize::synthesize;
use crate::task::Task;
use crate::train::train;
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
    /// Also train and evaluate the rows of table 2 and the groups of figures 3 and 4.
    pub variants: bool,
    /// Only this stage; those before it must be complete.
    pub only: Option<Stage>,
    /// The last stage.
    pub until: Stage,
    /// An adapter registry to publish the learned adapters to, once the report is made.
    pub publish: Option<PathBuf>,
    /// Put the published version in service.
    pub promote: bool,
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
            publish: None,
            promote: false,
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
    let report = compute(&work, &run)?;
    let version = match &plan.publish {
        Some(registry) if run.is_complete(Stage::Report) => Some(publish(&work, &run, &report, registry, plan.promote)?.id().to_string()),
        _ => None,
    };
    Ok(Report { version, ..report })
}

/// A report can be made of whatever is there.
fn skippable(_before: Stage, stage: Stage) -> bool {
    stage == Stage::Report
}

fn perform(stage: Stage, work: &mut Workplace, run: &mut Run) -> Result<(), LearnError> {
    if run.is_complete(stage) && !grows(stage, work) {
        return Ok(());
    }
    work.go_on(stage)?;
    let first = Round::new(run, 1);
    let begun = Instant::now();
    let done = match stage {
        Stage::Instruct => instruct(work, run),
        Stage::Select => select(work, run),
        Stage::Synthesize => synthesize(work, run, &first),
        Stage::Filter => filter(work, &first),
        Stage::Reflect => reflect(work, run, &first),
        Stage::Differentiate => differentiate(work, &first),
        Stage::Train => {
            work.dismiss();
            train(work, &first, &GROUP).and_then(|()| install(run, &first))
        }
        Stage::Iterate => iterate(work, run),
        Stage::Evaluate => evaluate(work, run),
        Stage::Report => write_report(work, run),
    };
    run.spent(stage, begun.elapsed().as_secs_f64())?;
    done?;
    run.complete(stage)
}

/// Whether a complete stage has more to do: variants were asked for later, or the report is to tell of new things.
fn grows(stage: Stage, work: &Workplace) -> bool {
    match stage {
        Stage::Report => true,
        Stage::Evaluate => work.variants,
        _ => false,
    }
}
