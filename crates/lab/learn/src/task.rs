//! The task file: a name, a description, a few examples and a tool library. Everything else has a
//! default.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use autoact_score::{Metric, named};
use autoact_trajectory::TaskInfo;
use serde::{Deserialize, Serialize};

use crate::error::{LearnError, TaskMistakes};
use crate::settings::{Differentiate, Evaluate, Filter, Instruct, Iterate, Reflect, Select, Settings, Synthesize, Training};

/// A question with its answer, as the user gives them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// The question.
    pub question: String,
    /// Its answer; for a multiple-choice question, the text of the right option.
    pub answer: String,
    /// The options of a multiple-choice question, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

/// A task file, parsed and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Its file.
    pub path: PathBuf,
    /// The task's name (M in the paper), after which runs and adapters are named, its description
    /// (P), for people and for models with a chat template, and the form of its answers. A served
    /// task can carry the same information in its context.
    pub info: TaskInfo,
    /// The examples (C); at least one.
    pub examples: Vec<Example>,
    /// The pages that the tools work on.
    pub corpus: PathBuf,
    /// The whole tool library.
    pub tools: PathBuf,
    /// Questions for evaluation only.
    pub evaluation: Option<PathBuf>,
    /// How the reward is computed.
    pub metric: Metric,
    /// Seed of all random choices.
    pub seed: u64,
    /// The settings.
    pub settings: Settings,
}

/// The file's content. All fields are optional, so that all mistakes are reported together.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    name: Option<String>,
    description: Option<String>,
    answer_format: Option<String>,
    corpus: Option<PathBuf>,
    tools: Option<PathBuf>,
    evaluation: Option<PathBuf>,
    metric: Option<Metric>,
    seed: u64,
    examples: Vec<RawExample>,
    instruct: Instruct,
    select: Select,
    synthesize: Synthesize,
    filter: Filter,
    reflect: Reflect,
    differentiate: Differentiate,
    train: Training,
    iterate: Iterate,
    evaluate: Evaluate,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawExample {
    question: Option<String>,
    answer: Option<String>,
    options: Vec<String>,
}

impl Task {
    /// Reads and checks a task file. Its paths are relative to the file.
    ///
    /// # Errors
    /// All mistakes together, each with its fix.
    pub fn load(path: &Path) -> Result<Task, LearnError> {
        let told = |mistakes| TaskMistakes { path: path.to_owned(), mistakes };
        let text = std::fs::read_to_string(path).map_err(|error| told(vec![format!("it cannot be read: {error}")]))?;
        Ok(Task::parse(&text, path).map_err(told)?)
    }

    /// [`Task::load`] for the content `text` of the file `path`.
    fn parse(text: &str, path: &Path) -> Result<Task, Vec<String>> {
        let file: File = toml::from_str(text).map_err(|error| vec![error.to_string().trim_end().to_owned()])?;
        let mut mistakes = Vec::new();
        let name = file.name.unwrap_or_default().trim().to_owned();
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() {
            mistakes
                .push("it has no `name`; give it one word, such as `name = \"atlas\"`: the run and the adapters are called so".to_owned());
        } else if !name.chars().all(plain) {
            mistakes.push(format!("`name` is `{name}`; use letters, digits, `-` and `_` only: directories are called so"));
        }
        let description = file.description.unwrap_or_default().trim().to_owned();
        if description.is_empty() {
            mistakes.push("it has no `description`; say in a sentence or two what is asked and where answers are found".to_owned());
        }
        let answer_format = file.answer_format.map(|text| one_line(&text)).unwrap_or_default();
        let info = TaskInfo { name, description, answer_format };
        let examples = examples(file.examples, &mut mistakes);
        let beside = path.parent().unwrap_or(Path::new("."));
        let mut file_of = |key: &str, given: Option<PathBuf>, what: &str| match given {
            None => {
                mistakes.push(format!("it has no `{key}`; name {what}, relative to the task file"));
                PathBuf::new()
            }
            Some(given) => {
                let full = beside.join(given);
                if !full.is_file() {
                    mistakes.push(format!("`{key}` names `{}`, which is no file; paths are relative to the task file", full.display()));
                }
                full
            }
        };
        let corpus = file_of("corpus", file.corpus, "the pages (JSON lines with `title` and `text`)");
        let tools = file_of("tools", file.tools, "the tool library (`tools.toml`)");
        let evaluation = file.evaluation.map(|given| file_of("evaluation", Some(given), "questions to evaluate on"));
        let settings = Settings {
            instruct: file.instruct,
            select: file.select,
            synthesize: file.synthesize,
            filter: file.filter,
            reflect: file.reflect,
            differentiate: file.differentiate,
            train: file.train,
            iterate: file.iterate,
            evaluate: file.evaluate,
        };
        settings.check(&mut mistakes);
        let choice = examples.iter().any(|example| !example.options.is_empty());
        let metric = file.metric.unwrap_or(if choice { Metric::MultipleChoice } else { Metric::ExactMatch });
        if metric == Metric::MultipleChoice && !choice && !examples.is_empty() {
            mistakes.push(
                "`metric` is `multiple_choice` and no example has `options`; give them, or use `metric = \"exact_match\"`".to_owned(),
            );
        }
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        Ok(Task { path: path.to_owned(), info, examples, corpus, tools, evaluation, metric, seed: file.seed, settings })
    }

    /// Whether its questions are multiple-choice.
    pub fn has_options(&self) -> bool {
        self.examples.iter().any(|example| !example.options.is_empty())
    }
}

fn examples(raw: Vec<RawExample>, mistakes: &mut Vec<String>) -> Vec<Example> {
    if raw.is_empty() {
        mistakes
            .push("it has no examples; add a few `[[examples]]` with `question` and `answer`: new questions are made like them".to_owned());
    }
    let mut seen = HashSet::new();
    let mut examples = Vec::new();
    let with_options = raw.iter().filter(|example| !example.options.is_empty()).count();
    if with_options > 0 && with_options < raw.len() {
        mistakes.push(format!("{with_options} of {} examples have `options`; give them to all or to none", raw.len()));
    }
    for (at, example) in raw.into_iter().enumerate() {
        let number = at + 1;
        let text = |field: Option<String>| field.map(|text| one_line(&text)).filter(|text| !text.is_empty());
        let question = text(example.question);
        let answer = text(example.answer);
        let told = question.as_deref().map(|question| format!(" (`{question}`)")).unwrap_or_default();
        if question.is_none() {
            mistakes.push(format!("example {number} has no `question`; write it, or delete the example"));
        }
        if answer.is_none() {
            mistakes.push(format!("example {number}{told} has no `answer`; write it, or delete the example"));
        }
        let (Some(question), Some(answer)) = (question, answer) else { continue };
        if !seen.insert(question.to_lowercase()) {
            mistakes.push(format!("example {number}{told} is there twice; delete one"));
        }
        let options: Vec<String> = example.options.iter().map(|option| one_line(option)).collect();
        check_options(number, &answer, &options, mistakes);
        examples.push(Example { question, answer, options });
    }
    examples
}

fn check_options(number: usize, answer: &str, options: &[String], mistakes: &mut Vec<String>) {
    if options.is_empty() {
        return;
    }
    let distinct: HashSet<String> = options.iter().map(|option| option.to_lowercase()).collect();
    if options.len() < 2 || options.len() > 26 || distinct.len() < options.len() || options.iter().any(String::is_empty) {
        mistakes.push(format!("example {number} has {} options; give 2 to 26 different ones", options.len()));
    } else if named(answer, options).is_none() {
        mistakes.push(format!("the answer `{answer}` of example {number} is none of its options; write the option's text or its letter"));
    }
}

/// Replaces each sequence of white space with one space.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
#[path = "task_tests.rs"]
mod tests;
