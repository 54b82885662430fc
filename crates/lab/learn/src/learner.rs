//! The pipeline: runs the stages in order over one run directory.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use autoact_train::ModelConfig;

use crate::differentiate::{differentiate, differentiate_judgements};
use crate::encode::Encoder;
use crate::error::LearnError;
use crate::evaluate::evaluate;
use crate::instruct::instruct;
use crate::iterate::{GROUP, install, iterate};
use crate::keep::filter;
use crate::pool::Stop;
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

/// What to learn, from what, and how far.
#[derive(Debug, Clone)]
pub struct LearningPlan {
    /// The task file.
    pub task: PathBuf,
    /// The base model's directory, in Hugging Face's format.
    pub model: PathBuf,
    /// The run directory; `None`: `runs/<task>` (`runs/<task>-paper`, `runs/<task>-quick`).
    pub run: Option<PathBuf>,
    /// Use the paper's settings ([`Settings::paper`](crate::Settings::paper)) in place of the task's.
    pub paper: bool,
    /// Use small settings, for a first look ([`Settings::quick`](crate::Settings::quick)).
    pub quick: bool,
    /// Also train and evaluate the variants of table 2 and figures 3 and 4 of the paper.
    pub variants: bool,
    /// Run only this stage; the earlier ones must be complete.
    pub only: Option<Stage>,
    /// The last stage to run.
    pub until: Stage,
    /// An adapter registry to which the learned adapters are published after the report.
    pub publish: Option<PathBuf>,
    /// Make the published version the one in service.
    pub promote: bool,
    /// Delete the results of this stage and all later ones, and run them again.
    pub again: Option<Stage>,
}

impl LearningPlan {
    /// All stages with default options.
    pub fn new(task: impl Into<PathBuf>, model: impl Into<PathBuf>) -> LearningPlan {
        LearningPlan {
            task: task.into(),
            model: model.into(),
            run: None,
            paper: false,
            quick: false,
            variants: false,
            only: None,
            until: Stage::Report,
            publish: None,
            promote: false,
            again: None,
        }
    }

    fn trains(&self) -> bool {
        self.only.map_or(self.until >= Stage::Train, |only| only == Stage::Train)
    }
}

/// Runs the stages that are not complete yet. Returns the report of the run directory.
///
/// # Errors
/// The first failure, with what to do. All completed work is kept.
pub fn learn(plan: &LearningPlan, view: Arc<dyn View>, stop: Stop) -> Result<Report, LearnError> {
    let mut task = Task::load(&plan.task)?;
    let mut name = task.info.name.clone();
    if plan.paper {
        task.settings = task.settings.paper();
        name.push_str("-paper");
    }
    if plan.quick {
        name.push_str("-quick");
    }
    let dir = plan.run.clone().unwrap_or_else(|| PathBuf::from("runs").join(name));
    let mut work = Workplace::open(task, plan, view, stop)?;
    if plan.trains() {
        // said now, and not after hours of questions and trajectories
        ModelConfig::load(&plan.model).map_err(|source| LearnError::Untrainable { path: plan.model.clone(), source: Box::new(source) })?;
        Encoder::open(&plan.model)?.try_prompts()?;
    }
    let mut run = Run::open(&dir, &work.task.info.name, work.origin()?, plan.again)?;
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

/// Stages that can run although earlier ones are not complete: only the report.
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
        Stage::Differentiate => differentiate(work, &first).and_then(|()| differentiate_judgements(work, run, &first)),
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

/// Whether a complete stage has to run again: variants were requested later, or the report has to
/// include new results.
fn grows(stage: Stage, work: &Workplace) -> bool {
    match stage {
        Stage::Report => true,
        Stage::Evaluate => work.variants,
        _ => false,
    }
}
