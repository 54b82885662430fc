//! `autoact model probe`: the three agents in one process over the atlas's questions. It leaves out
//! services, bus and limits, so it is quick to start and shows what the weights can do;
//! `autoact eval` is the real thing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use autoact_in_process::{LocalGroup, RunOptions, Voices};
use autoact_model::{Engine, EngineOptions, Format, KvFormat, ModelDir};
use autoact_prompt::{Role, transcript};
use autoact_tools::{Corpus, ToolLibrary};
use autoact_trajectory::FinishReason;
use clap::Args;

use crate::eval::set;
use crate::exit;
use crate::out;

/// The model that is tried in this process.
#[derive(Debug, Args)]
pub(super) struct ModelFiles {
    /// The base model.
    #[arg(long, default_value = "models/stem")]
    model: PathBuf,
    /// Directory with the adapters; `none` for the base alone.
    #[arg(long, default_value = "models/stem/adapters")]
    adapters: PathBuf,
    /// What the weights are computed in: `f32`, `bf16` or `q8_0`; default: as in the file.
    #[arg(long)]
    weights: Option<Format>,
    /// What keys and values are kept in: `bf16` or `f32`; default: `f32` for weights in `f32`, else
    /// `bf16`.
    #[arg(long)]
    kv: Option<KvFormat>,
}

impl ModelFiles {
    /// The group over the model, with the adapters or without.
    pub(super) fn group(&self, library: Arc<ToolLibrary>) -> anyhow::Result<LocalGroup> {
        let options = EngineOptions { weights: self.weights, kv: self.kv, ..EngineOptions::default() };
        let engine = Engine::start(&ModelDir::open(&self.model)?, options)?;
        let voices = if self.adapters == Path::new("none") { Voices::base() } else { Voices::by_role() };
        for role in Role::ALL {
            if let Some(name) = voices.of(role) {
                engine.load_adapter(name, self.adapters.join(role.as_str()))?;
            }
        }
        Ok(LocalGroup::new(Arc::new(engine), library, voices))
    }
}

/// `autoact model probe`
#[derive(Debug, Args)]
pub(crate) struct ProbeOptions {
    #[command(flatten)]
    model: ModelFiles,
    /// `held-out`, `dev`, `phrasings`, `plain`, `hand`, `typed`, or a JSONL file.
    #[arg(long, default_value = "dev")]
    set: String,
    /// The pages.
    #[arg(long, default_value = "corpora/atlas/pages.jsonl")]
    corpus: PathBuf,
    /// Only the first so many questions.
    #[arg(long)]
    limit: Option<usize>,
    /// Print the transcripts of wrong answers.
    #[arg(long)]
    wrong: bool,
}

pub(crate) fn run(options: &ProbeOptions) -> anyhow::Result<u8> {
    let group = options.model.group(Arc::new(ToolLibrary::bundled(Arc::new(Corpus::load(&options.corpus)?))?))?;
    let run = RunOptions::default();
    let mut questions = set::load(&options.set)?;
    questions.truncate(options.limit.unwrap_or(usize::MAX));
    let mut rows: BTreeMap<String, [usize; 4]> = BTreeMap::new();
    let begun = std::time::Instant::now();
    for question in &questions {
        let task = group.run(&question.question, group.library().specs(), &run)?;
        let approved = task.finished().is_some_and(|finished| finished.approved);
        let no_answer = task.finished().is_some_and(|finished| finished.reason == FinishReason::NoAnswer);
        let (right, _) = question.score((!no_answer).then(|| task.best_answer()));
        for label in [question.label(), "all".to_owned()] {
            let row = rows.entry(label).or_default();
            row[0] += 1;
            row[1] += usize::from(right);
            row[2] += usize::from(approved);
            row[3] += usize::from(approved && right);
        }
        if options.wrong && !right {
            let expected = question.answer.as_deref().unwrap_or("(no answer)");
            out::line(format_args!("{}expected: {expected}\n", transcript(task.trajectory())))?;
        }
    }
    out::line(format_args!("{:<12}{:>10}{:>14}{:>11}{:>22}", "kind", "questions", "exact match", "approved", "approved and right"))?;
    for (label, [count, right, approved, both]) in rows {
        let part = |n: usize| 100.0 * n as f64 / count as f64;
        out::line(format_args!("{label:<12}{count:>10}{:>13.1}%{:>10.1}%{:>21.1}%", part(right), part(approved), part(both)))?;
    }
    out::line(format_args!("{:.0} ms a question", begun.elapsed().as_secs_f64() * 1e3 / questions.len().max(1) as f64))?;
    Ok(exit::OK)
}
