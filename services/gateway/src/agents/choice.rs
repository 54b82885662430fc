//! Chooses the tools of tasks from a library that is too large for a prompt: by words, and by meaning
//! as soon as the memory service's embedder has made the tools' vectors.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use autoact_planning::Failure;
use autoact_tool_choice::{ChoiceOptions, ToolIndex};
use autoact_trajectory::{ToolBackground, ToolChoice, ToolSpec, cut};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::config::ToolChoiceConfig;

/// So many tools are compared on a thread that may wait: with vectors, thousands take milliseconds.
const MANY: usize = 128;
/// Texts of one request: a model in the service's process needs a second for them.
const BATCH: usize = 32;
/// The most that a request may have of one text.
const MAX_TEXT_BYTES: usize = 8 * 1024;
/// How long a batch may take.
const BATCH_LIMIT: Duration = Duration::from_secs(60);
/// How long after a failure vectors are asked for again.
const PAUSE: Duration = Duration::from_secs(30);

/// The tools of the group, and which of them tasks can do without.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Listed {
    pub(crate) tools: Vec<ToolSpec>,
    /// By name: what else is known of those.
    pub(crate) optional: HashMap<String, ToolBackground>,
    /// What tasks call the group's own corpus; empty: there is none. `None`: nobody said.
    pub(crate) corpus: Option<String>,
}

impl Listed {
    fn optional(&self) -> impl Iterator<Item = (&ToolSpec, &ToolBackground)> {
        self.tools.iter().filter_map(|tool| Some((tool, self.optional.get(&tool.name)?)))
    }
}

/// Vectors, and the model that made them.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Embedded {
    pub(crate) embedder: String,
    pub(crate) vectors: Vec<Vec<f32>>,
}

/// What makes vectors of texts.
#[async_trait]
pub(crate) trait Embeddings: Send + Sync {
    /// A vector for each text, in order.
    async fn embed(&self, texts: Vec<String>, limit: Duration) -> Result<Embedded, Failure>;
}

/// Chooses tools.
pub(crate) struct Chooser {
    embeddings: Option<Arc<dyn Embeddings>>,
    options: ChoiceOptions,
    /// So many tools, or fewer, are all given.
    above: usize,
    /// How long a question waits for its vector.
    timeout: Duration,
    /// How long after a failure vectors are asked for again.
    pause: Duration,
    current: Arc<RwLock<Option<Indexed>>>,
}

/// A library, ready to be chosen from.
struct Indexed {
    library: Arc<Listed>,
    index: Arc<ToolIndex>,
    made: Made,
    making: Option<AbortHandle>,
}

/// Vectors by the texts that they are of: a library that changes a little keeps most.
#[derive(Default)]
struct Made {
    /// What made them; empty while there are none.
    embedder: String,
    vectors: HashMap<String, Vec<f32>>,
}

impl Drop for Indexed {
    fn drop(&mut self) {
        if let Some(making) = &self.making {
            making.abort();
        }
    }
}

impl Chooser {
    pub(crate) fn new(embeddings: Option<Arc<dyn Embeddings>>, config: &ToolChoiceConfig) -> Chooser {
        let ToolChoiceConfig { limit, above, least, least_by_words, timeout } = *config;
        let options = ChoiceOptions { limit, least, least_by_words, ..ChoiceOptions::default() };
        Chooser { embeddings, options, above, timeout, pause: PAUSE, current: Arc::default() }
    }

    /// How the tools of a task with this question are chosen. `None`: there is nothing to choose, the
    /// task has all.
    pub(crate) async fn choose(&self, library: &Arc<Listed>, question: &str) -> Option<ToolChoice> {
        let among = library.optional.len();
        if among <= self.above {
            return None;
        }
        let began = Instant::now();
        let (index, embedder) = self.index(library).await;
        let vector = if index.has_vectors() { self.vector(question, &embedder).await } else { None };
        let by = if vector.is_some() { "meaning" } else { "words" };
        let ranked = match index.len() < MANY {
            true => index.choose(question, vector.as_deref(), &self.options),
            false => {
                let (question, options) = (question.to_owned(), self.options);
                let ranked = tokio::task::spawn_blocking(move || index.choose(&question, vector.as_deref(), &options)).await;
                ranked.unwrap_or_else(|error| {
                    // a task without the tools that could have been chosen is better than none
                    tracing::error!(%error, "ranking the tools failed: none is chosen for a task");
                    Vec::new()
                })
            }
        };
        let choice = ToolChoice::new(among, ranked);
        let outcome = if choice.chosen().next().is_some() { "chosen" } else { "none" };
        metrics::counter!("autoact_tool_choices_total", "outcome" => outcome, "by" => by).increment(1);
        metrics::histogram!("autoact_tool_choice_seconds").record(began.elapsed().as_secs_f64());
        Some(choice)
    }

    /// The index of a library, and what made its vectors. One that is new has words at first.
    async fn index(&self, library: &Arc<Listed>) -> (Arc<ToolIndex>, String) {
        let known = |current: &Option<Indexed>| {
            let current = current.as_ref().filter(|current| Arc::ptr_eq(&current.library, library))?;
            Some((current.index.clone(), current.made.embedder.clone()))
        };
        if let Some(known) = known(&self.current.read().unwrap_or_else(PoisonError::into_inner)) {
            return known;
        }
        let of = library.clone();
        // hundreds of tools take milliseconds
        let made = tokio::task::spawn_blocking(move || ToolIndex::new(of.optional())).await;
        let index = Arc::new(made.unwrap_or_else(|_| ToolIndex::new([])));
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known(&current) {
            return known;
        }
        let made = current.as_mut().map(|before| std::mem::take(&mut before.made)).unwrap_or_default();
        let making = self.embeddings.clone().map(|embeddings| {
            let (current, library, index) = (self.current.clone(), library.clone(), index.clone());
            tokio::spawn(make_vectors(embeddings, current, library, index, made, self.pause)).abort_handle()
        });
        *current = Some(Indexed { library: library.clone(), index: index.clone(), made: Made::default(), making });
        (index, String::new())
    }

    /// The question's vector, if it is to be had in time and compares with those of `embedder`.
    async fn vector(&self, question: &str, embedder: &str) -> Option<Vec<f32>> {
        let embeddings = self.embeddings.as_ref()?;
        let (question, _) = cut(question.to_owned(), MAX_TEXT_BYTES);
        match tokio::time::timeout(self.timeout, embeddings.embed(vec![question], self.timeout)).await {
            Ok(Ok(mut embedded)) if embedded.embedder == embedder => embedded.vectors.pop(),
            Ok(Ok(embedded)) => {
                tracing::info!(before = embedder, now = embedded.embedder, "another embedder: the tools' vectors are made again");
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = None;
                None
            }
            Ok(Err(failure)) => {
                tracing::debug!(failure = failure.chain(), "a question has no vector; its tools are chosen by words");
                None
            }
            Err(_) => None,
        }
    }
}

/// Makes the vectors of a library's tools, and puts them into its index. Where there is no embedder
/// it is asked again: one may come.
async fn make_vectors(
    embeddings: Arc<dyn Embeddings>,
    current: Arc<RwLock<Option<Indexed>>>,
    library: Arc<Listed>,
    index: Arc<ToolIndex>,
    mut made: Made,
    pause: Duration,
) {
    let texts = index.texts();
    let began = Instant::now();
    loop {
        let missing: Vec<String> =
            texts.iter().filter(|text| !made.vectors.contains_key(**text)).take(BATCH).map(|text| (*text).to_owned()).collect();
        // also where none is missing: another model may be there by now
        let batch = if missing.is_empty() { texts.iter().take(1).map(|text| (*text).to_owned()).collect() } else { missing };
        match embeddings.embed(batch.clone(), BATCH_LIMIT).await {
            Ok(embedded) if embedded.vectors.len() == batch.len() => {
                if made.embedder != embedded.embedder {
                    // vectors of two models cannot be compared
                    made = Made { embedder: embedded.embedder, vectors: HashMap::new() };
                }
                made.vectors.extend(batch.into_iter().zip(embedded.vectors));
            }
            Ok(_) => {
                tracing::warn!("the embedder did not return a vector for each text; tools are chosen by words");
                tokio::time::sleep(pause).await;
            }
            Err(failure) => {
                tracing::debug!(failure = failure.chain(), retry_in = ?pause, "no vectors of tools; they are chosen by words");
                tokio::time::sleep(pause).await;
            }
        }
        if texts.iter().all(|text| made.vectors.contains_key(*text)) {
            break;
        }
    }
    made.vectors.retain(|text, _| texts.contains(text.as_str()));
    let index = Arc::new(ToolIndex::clone(&index).with_vectors(&made.vectors));
    tracing::info!(tools = index.len(), embedder = made.embedder, took = ?began.elapsed(), "tools are chosen by meaning too");
    let mut current = current.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(current) = current.as_mut().filter(|current| Arc::ptr_eq(&current.library, &library)) {
        (current.index, current.made, current.making) = (index, made, None);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use autoact_planning::FailureClass;

    use super::*;

    /// Vectors of two directions: what has the model's word in it, and all else.
    #[derive(Default)]
    struct Scripted {
        model: Mutex<&'static str>,
        asked: Mutex<Vec<String>>,
    }

    #[async_trait]
    impl Embeddings for Scripted {
        async fn embed(&self, texts: Vec<String>, _: Duration) -> Result<Embedded, Failure> {
            let model = *self.model.lock().unwrap_or_else(PoisonError::into_inner);
            if model.is_empty() {
                return Err(Failure::new(FailureClass::Refused, "memory", "there is no embedder"));
            }
            let vectors = texts.iter().map(|text| if text.contains(model) { vec![1.0, 0.0] } else { vec![0.0, 1.0] }).collect();
            self.asked.lock().unwrap_or_else(PoisonError::into_inner).extend(texts);
            Ok(Embedded { embedder: model.to_owned(), vectors })
        }
    }

    impl Scripted {
        fn model(&self, model: &'static str) {
            *self.model.lock().unwrap_or_else(PoisonError::into_inner) = model;
        }

        fn asked(&self) -> usize {
            std::mem::take(&mut *self.asked.lock().unwrap_or_else(PoisonError::into_inner)).len()
        }
    }

    fn library(count: usize) -> Arc<Listed> {
        let tool = |number: usize| ToolSpec {
            definition: format!("Does {}.", if number.is_multiple_of(2) { "evenly" } else { "oddly" }),
            usage: format!("T{number}[x]"),
            timeout: Duration::from_secs(1),
            max_observation_bytes: 100,
            ..ToolSpec::new(format!("T{number}"))
        };
        let tools: Vec<ToolSpec> = (0..count).map(tool).collect();
        let optional = tools.iter().map(|tool| (tool.name.clone(), ToolBackground::default())).collect();
        Arc::new(Listed { tools, optional, corpus: None })
    }

    fn chooser(embeddings: &Arc<Scripted>) -> Chooser {
        let config = ToolChoiceConfig { limit: 3, above: 3, ..ToolChoiceConfig::default() };
        let chooser = Chooser::new(Some(embeddings.clone() as Arc<dyn Embeddings>), &config);
        Chooser { pause: Duration::from_millis(1), ..chooser }
    }

    /// The best tool, as soon as it was found by meaning.
    async fn by_meaning(chooser: &Chooser, library: &Arc<Listed>, question: &str) -> String {
        loop {
            let choice = chooser.choose(library, question).await.map(|choice| choice.ranked).unwrap_or_default();
            if let Some(best) = choice.into_iter().next().filter(|best| best.meaning.is_some()) {
                return best.name;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test]
    async fn vectors_come_when_there_is_an_embedder() {
        let embeddings = Arc::new(Scripted::default());
        let (chooser, tools) = (chooser(&embeddings), library(40));
        // without one, by words
        let choice = chooser.choose(&tools, "evenly").await.unwrap_or_default();
        assert_eq!((choice.among, choice.chosen().count(), choice.ranked[0].meaning), (40, 3, None));
        embeddings.model("oddly");
        assert_eq!(by_meaning(&chooser, &tools, "oddly").await, "T1");
        embeddings.asked();
        // a library that changes a little keeps the vectors of what stays
        let more = library(41);
        by_meaning(&chooser, &more, "oddly").await;
        assert!(embeddings.asked() < 5, "one new tool, and questions");
        // another model: its vectors are compared with no others
        embeddings.model("evenly");
        assert_eq!(by_meaning(&chooser, &more, "evenly").await, "T0");
        assert!(embeddings.asked() >= 41);
    }

    #[tokio::test]
    async fn a_small_library_needs_no_choice() {
        let embeddings = Arc::new(Scripted::default());
        let chooser = chooser(&embeddings);
        assert_eq!(chooser.choose(&library(3), "evenly").await, None);
        assert_eq!(chooser.choose(&library(4), "evenly").await.map(|choice| choice.chosen().count()), Some(2));
        // a large one is compared elsewhere, and comes to the same
        let of = async |count: usize| chooser.choose(&library(count), "evenly").await.unwrap_or_default();
        let (less, many) = (of(MANY - 1).await, of(MANY).await);
        assert_eq!((less.chosen().count(), many.chosen().count()), (3, 3));
        assert!(less.chosen().eq(many.chosen()));
    }
}
