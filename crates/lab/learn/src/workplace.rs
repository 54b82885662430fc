//! What all stages use: the task, its corpus and tools, and the model.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use autoact_model::ModelDir;
use autoact_tools::{Corpus, ToolLibrary};
use serde::{Deserialize, Deserializer, Serialize};
use sha2::{Digest, Sha256};

use crate::coverage::Vocabulary;
use crate::error::{LearnError, TaskMistakes};
use crate::learner::LearningPlan;
use crate::pages::Pages;
use crate::pool::{EnginePool, Stop};
use crate::run::Origin;
use crate::stage::Stage;
use crate::task::Task;
use crate::view::View;

/// A question of the evaluation file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct EvaluationQuestion {
    /// The question's text.
    #[serde(alias = "text")]
    pub(crate) question: String,
    /// The gold answer; `null` in the file if there is none.
    #[serde(deserialize_with = "nullable")]
    pub(crate) answer: Option<String>,
    /// The options of a multiple-choice question.
    #[serde(default)]
    pub(crate) options: Vec<String>,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    hops: Option<usize>,
}

impl EvaluationQuestion {
    /// The group of questions in which reports count it.
    pub(crate) fn label(&self) -> String {
        match (self.kind.as_str(), self.hops) {
            ("", _) => "all".to_owned(),
            ("hop", Some(hops)) => format!("{hops}-hop"),
            (kind, _) => kind.replace('_', "-"),
        }
    }
}

/// A field that may be `null`, but not absent.
fn nullable<'de, D: Deserializer<'de>>(field: D) -> Result<Option<String>, D::Error> {
    Option::deserialize(field)
}

/// What all stages use.
pub(crate) struct Workplace {
    /// The task.
    pub(crate) task: Task,
    /// The base model's directory.
    pub(crate) model: PathBuf,
    /// The whole tool library over the task's corpus.
    pub(crate) library: Arc<ToolLibrary>,
    /// The corpus.
    pub(crate) pages: Pages,
    /// The words of the corpus.
    pub(crate) vocabulary: Vocabulary,
    /// The evaluation questions; empty if the task names none.
    pub(crate) evaluation: Vec<EvaluationQuestion>,
    /// The flag for stopping.
    pub(crate) stop: Stop,
    /// Receives the progress.
    pub(crate) view: Arc<dyn View>,
    /// Whether the variants are trained and evaluated too.
    pub(crate) variants: bool,
    digest: String,
    pool: OnceLock<EnginePool>,
}

impl Workplace {
    /// Reads everything that the task names, except the model's weights.
    ///
    /// # Errors
    /// All mistakes in the files that the task names, together; or an invalid model directory.
    pub(crate) fn open(mut task: Task, plan: &LearningPlan, view: Arc<dyn View>, stop: Stop) -> Result<Workplace, LearnError> {
        let (model, variants) = (plan.model.as_path(), plan.variants);
        let mut mistakes = Vec::new();
        let corpus = Corpus::load(&task.corpus).map(Arc::new).map_err(|error| mistakes.push(error.to_string())).ok();
        // mistakes in a tool library do not depend on the corpus
        let pages = corpus.clone().map_or_else(placeholder, Ok);
        let library =
            pages.ok().and_then(|pages| ToolLibrary::load(&task.tools, pages).map_err(|error| mistakes.push(error.to_string())).ok());
        if library.as_ref().is_some_and(|library| !library.specs().iter().any(|spec| spec.is_answer())) {
            mistakes
                .push(format!("the tool library `{}` has no tool of kind `finish`; add one: it gives the answer", task.tools.display()));
        }
        let evaluation = match &task.evaluation {
            Some(path) => questions(path).map_err(|error| mistakes.push(error)).unwrap_or_default(),
            None => Vec::new(),
        };
        let (Some(corpus), Some(library), true) = (corpus, library, mistakes.is_empty()) else {
            return Err(TaskMistakes { path: task.path, mistakes }.into());
        };
        let model_error = |source| LearnError::Model { path: model.to_owned(), source: Box::new(source) };
        let dir = ModelDir::open(model).map_err(model_error)?;
        let template = dir.chat_template().map_err(model_error)?.is_some();
        if plan.quick {
            task.settings = task.settings.quick(template);
        }
        task.settings = task.settings.fitting(template);
        let library = match task.settings.select.sentences.and_then(NonZeroUsize::new) {
            Some(sentences) => library.showing(sentences),
            None => library,
        };
        let digest = dir.digest().map_err(model_error)?.to_owned();
        let pages = Pages::new(corpus).described(&task.info.description);
        Ok(Workplace {
            model: model.to_owned(),
            library: Arc::new(library),
            vocabulary: Vocabulary::of(pages.all().iter().map(|page| (page.title.as_str(), page.text.as_str()))),
            pages,
            evaluation,
            stop,
            view,
            variants,
            digest,
            pool: OnceLock::new(),
            task,
        })
    }

    /// The engines, which the first call loads.
    ///
    /// # Errors
    /// The model cannot be loaded.
    pub(crate) fn pool(&self) -> Result<&EnginePool, LearnError> {
        if let Some(pool) = self.pool.get() {
            return Ok(pool);
        }
        let pool = EnginePool::start(&self.model)?;
        Ok(self.pool.get_or_init(|| pool))
    }

    /// Unloads the engines, because training needs the memory.
    pub(crate) fn dismiss(&mut self) {
        self.pool = OnceLock::new();
    }

    /// SHA-256 digest (hex) of the base's weights.
    pub(crate) fn base_digest(&self) -> &str {
        &self.digest
    }

    /// Fails if a stop was requested.
    ///
    /// # Errors
    /// [`LearnError::Stopped`].
    pub(crate) fn go_on(&self, stage: Stage) -> Result<(), LearnError> {
        if self.stop.is_raised() { Err(LearnError::Stopped { stage }) } else { Ok(()) }
    }

    /// The inputs of each stage, for [`crate::Run::open`].
    ///
    /// # Errors
    /// A file cannot be read.
    pub(crate) fn origin(&self) -> Result<Origin, LearnError> {
        let task = &self.task;
        let settings = &task.settings;
        let mut origin = Origin::new();
        let mut note = |stage: Stage, name: &str, value: String| {
            origin.entry(stage).or_default().insert(name.to_owned(), value);
        };
        note(Stage::Instruct, "model", short(&self.digest));
        note(Stage::Instruct, "corpus", file_digest(&task.corpus)?);
        note(Stage::Instruct, "examples", json_digest(&task.examples));
        note(Stage::Instruct, "seed", task.seed.to_string());
        note(Stage::Instruct, "`instruct` settings", json_digest(&settings.instruct));
        if let Some(path) = &task.evaluation {
            note(Stage::Instruct, "evaluation questions", file_digest(path)?);
        }
        note(Stage::Select, "tools", file_digest(&task.tools)?);
        note(Stage::Select, "`select` settings", json_digest(&settings.select));
        note(Stage::Synthesize, "`synthesize` settings", json_digest(&settings.synthesize));
        note(Stage::Synthesize, "metric", json_digest(&task.metric));
        note(Stage::Filter, "`filter` settings", json_digest(&settings.filter));
        note(Stage::Filter, "trajectories per question", settings.differentiate.per_question.to_string());
        note(Stage::Reflect, "`reflect` settings", json_digest(&settings.reflect));
        note(Stage::Differentiate, "`differentiate` settings", json_digest(&settings.differentiate));
        note(Stage::Train, "`train` settings", json_digest(&settings.train));
        note(Stage::Iterate, "`iterate` settings", json_digest(&settings.iterate));
        note(Stage::Evaluate, "`evaluate` settings", json_digest(&settings.evaluate));
        Ok(origin)
    }
}

fn placeholder() -> Result<Arc<Corpus>, autoact_tools::CorpusError> {
    let page = autoact_tools::Page { title: "Nothing".to_owned(), text: "Nothing is known.".to_owned() };
    Corpus::from_pages(vec![page]).map(Arc::new)
}

/// Parses JSON lines with at least `question` (or `text`) and `answer`.
fn questions(path: &Path) -> Result<Vec<EvaluationQuestion>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let parse = |(at, line): (usize, &str)| {
        serde_json::from_str(line)
            .map_err(|error| format!("`{}`, line {}: not a question with `question` and `answer`: {error}", path.display(), at + 1))
    };
    lines.map(parse).collect()
}

/// The first 12 digits of a digest, enough to distinguish two.
fn short(digest: &str) -> String {
    digest.chars().take(12).collect()
}

fn file_digest(path: &Path) -> Result<String, LearnError> {
    let bytes = std::fs::read(path).map_err(LearnError::io("read", path))?;
    Ok(short(&format!("{:x}", Sha256::digest(bytes))))
}

fn json_digest(value: &impl Serialize) -> String {
    // plain data can always be serialised
    let text = serde_json::to_string(value).unwrap_or_default();
    short(&format!("{:x}", Sha256::digest(text)))
}
