//! Sets of questions to evaluate on.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use autoact_score::{Metric, with_options};
use autoact_synthetic_kb::{Atlas, Question};
use serde::Deserialize;

/// The bundled atlas.
const ATLAS: &str = "corpora/atlas";

/// A question with its answer. A user's own file needs only these two fields. The answer `null`
/// means that the pages do not say: the right reply is that there is none.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct EvalQuestion {
    #[serde(default)]
    pub(crate) id: String,
    #[serde(alias = "text")]
    pub(crate) question: String,
    #[serde(deserialize_with = "present")]
    pub(crate) answer: Option<String>,
    #[serde(default)]
    kind: String,
    /// How it is worded, in sets that say so: the family of wordings of generated ones.
    #[serde(default, alias = "family")]
    pub(crate) form: String,
    #[serde(default)]
    hops: usize,
    /// What there is to choose from; it stands in the question's text once the question is loaded.
    #[serde(default)]
    options: Vec<String>,
}

impl EvalQuestion {
    /// The row it counts in.
    pub(crate) fn label(&self) -> String {
        match self.kind.as_str() {
            "" => "questions".to_owned(),
            "hop" => format!("{}-hop", self.hops),
            other => other.replace('_', "-"),
        }
    }

    /// How its answers are scored.
    pub(crate) fn metric(&self) -> Metric {
        if self.options.is_empty() { Metric::F1 } else { Metric::MultipleChoice }
    }

    /// Whether this is the right reply, and its reward; `None`: that there is no answer.
    pub(crate) fn score(&self, reply: Option<&str>) -> (bool, f64) {
        self.metric().score(&self.question, reply, self.answer.as_deref())
    }
}

/// A field that has to be there, and may be `null`.
fn present<'de, D: serde::Deserializer<'de>>(field: D) -> Result<Option<String>, D::Error> {
    Option::deserialize(field)
}

impl From<&Question> for EvalQuestion {
    fn from(question: &Question) -> Self {
        EvalQuestion {
            id: question.id.clone(),
            question: question.text.clone(),
            answer: question.is_answerable().then(|| question.answer.clone()),
            kind: question.label(),
            form: question.family.clone().unwrap_or_default(),
            hops: question.hops,
            options: Vec::new(),
        }
    }
}

/// `held-out`, `dev`, `phrasings`, `plain`, `hand` and `typed` are the atlas's; anything else is a JSONL file.
pub(crate) fn load(set: &str) -> anyhow::Result<Vec<EvalQuestion>> {
    let path = path_of(set);
    let text = std::fs::read_to_string(&path).with_context(|| {
        format!(
            "cannot read the questions `{}`; fix: run in the project's root, or name `held-out`, `dev`, `phrasings`, `plain`, `hand`, `typed` or a JSONL file",
            path.display()
        )
    })?;
    let questions = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(|(at, line)| {
        serde_json::from_str(line)
            .with_context(|| format!("`{}`, line {}: not a question with `question` and `answer`", path.display(), at + 1))
    });
    let asked = |question: EvalQuestion| EvalQuestion { question: with_options(&question.question, &question.options), ..question };
    questions.map(|question| question.map(asked)).collect()
}

pub(crate) fn path_of(set: &str) -> PathBuf {
    match set {
        "held-out" | "dev" | "phrasings" | "plain" | "hand" | "typed" => Path::new(ATLAS).join(format!("questions/{set}.jsonl")),
        file => PathBuf::from(file),
    }
}

/// A corpus with swapped facts and the questions whose answers changed with them.
pub(crate) struct Swapped {
    pub(crate) corpus: PathBuf,
    pub(crate) questions: Vec<EvalQuestion>,
}

/// Swaps the atlas's facts, writes its pages into `dir`, and answers the set's questions anew.
pub(crate) fn counterfactual(set: &str, seed: u64, dir: &Path) -> anyhow::Result<Swapped> {
    anyhow::ensure!(
        matches!(set, "held-out" | "dev" | "phrasings" | "typed"),
        "`--counterfactual` swaps the atlas's facts; fix: `--set held-out`, `--set dev`, `--set phrasings` or `--set typed`"
    );
    let swapped = Atlas::load(Path::new(ATLAS))?.counterfactual(seed);
    // these are no fixed questions: they are drawn from the swapped facts
    let changed: Vec<EvalQuestion> = match set {
        "typed" => swapped.typed().iter().map(EvalQuestion::from).collect(),
        _ => swapped.reanswer(&own_questions(set)?).iter().map(EvalQuestion::from).collect(),
    };
    let corpus = dir.join("pages.jsonl");
    let mut pages = String::new();
    for (id, (title, text)) in swapped.pages().into_iter().enumerate() {
        pages.push_str(&serde_json::json!({ "title": title, "text": text, "aliases": swapped.aliases(id) }).to_string());
        pages.push('\n');
    }
    std::fs::write(&corpus, pages).with_context(|| format!("cannot write `{}`", corpus.display()))?;
    Ok(Swapped { corpus, questions: changed })
}

/// The questions of a set of the atlas's, with the facts that they are about.
fn own_questions(set: &str) -> anyhow::Result<Vec<Question>> {
    let text = std::fs::read_to_string(path_of(set)).with_context(|| format!("cannot read the set `{set}`"))?;
    text.lines().map(serde_json::from_str).collect::<Result<_, _>>().context("the set is not the atlas's own")
}
