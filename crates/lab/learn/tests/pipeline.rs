//! The whole pipeline over the bundled model, with settings small enough to take seconds.
#![allow(clippy::unwrap_used, clippy::expect_used)] // tests

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use autoact_learn::{LearnError, LearningPlan, NoView, QuestionRecord, Report, Stage, Stop, TOOL_SPECIFIED, TrajectoryRecord, View, learn};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().unwrap()
}

const EXAMPLES: &str = r#"
[[examples]]
question = "Which planet does Europa circle?"
answer = "Jupiter"
[[examples]]
question = "In which city was the inventor of Dynamite born?"
answer = "Stockholm"
[[examples]]
question = "Which is larger, Jupiter or Saturn?"
answer = "Jupiter"
"#;

const NUMBERS: &str = r#"
[instruct]
questions = 32
round = 8
[select]
votes = 4
[synthesize]
samples = 2
[filter]
sure = 0.0
coverage = 0.0
[reflect]
draws = 4
[differentiate]
validation = 0.2
[train]
epochs = 1
batch = 4
[train.lora]
r = 8
alpha = 16.0
target_modules = ["q_proj", "v_proj"]
[iterate]
rounds = 2
[evaluate]
questions = 2
"#;

/// Writes a task over a few hundred pages into a directory.
fn task(dir: &Path, examples: &str, numbers: &str) -> LearningPlan {
    let root = root();
    let text = format!(
        "name = \"small\"\ndescription = \"Questions about elements, planets, moons and inventions.\"\ncorpus = {:?}\ntools = {:?}\nevaluation = {:?}\n{examples}{numbers}",
        root.join("tasks/science/pages.jsonl"),
        root.join("corpora/atlas/tools.toml"),
        root.join("tasks/science/evaluation.jsonl")
    );
    let path = dir.join("task.toml");
    std::fs::write(&path, text).unwrap();
    LearningPlan { run: Some(dir.join("run")), ..LearningPlan::new(path, root.join("models/stem")) }
}

fn all(plan: &LearningPlan) -> Result<Report, LearnError> {
    learn(plan, Arc::new(NoView), Stop::default())
}

/// The complete lines of a file. Readers skip an incomplete one; only the next writer removes it.
fn lines<T: serde::de::DeserializeOwned>(path: &Path) -> Vec<T> {
    let text = std::fs::read_to_string(path).unwrap();
    text.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The bundled model with a chat template.
fn chat_model(dir: &Path) -> PathBuf {
    let (stem, model) = (root().join("models/stem"), dir.join("model"));
    std::fs::create_dir(&model).unwrap();
    for file in ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"] {
        std::os::unix::fs::symlink(stem.join(file), model.join(file)).unwrap();
    }
    std::fs::write(model.join("chat_template.jinja"), "{{ messages[-1].content }}").unwrap();
    model
}

/// Requests a stop after a number of progress reports.
struct StopAfter {
    left: AtomicUsize,
    stop: Stop,
}

impl View for StopAfter {
    fn begin(&self, _: Stage, _: &str, _: u64, _: u64) {}
    fn advance(&self, _: u64, _: &str) {
        if self.left.fetch_sub(1, Ordering::SeqCst) <= 1 {
            self.stop.raise();
        }
    }
    fn end(&self, _: &str) {}
}

/// Appends incomplete lines, as a process that was killed while writing leaves them.
fn tear(run: &Path) {
    for name in ["questions.jsonl", "rejected.jsonl", "trajectories.jsonl", "reflections.jsonl", "evaluation.jsonl"] {
        let path = run.join(name);
        if path.exists() {
            OpenOptions::new().append(true).open(path).unwrap().write_all(b"{\"attempt\":9,\"ques").unwrap();
        }
    }
}

#[test]
fn a_run_that_is_stopped_repeatedly_completes() {
    let dir = tempfile::tempdir().unwrap();
    let plan = task(dir.path(), EXAMPLES, NUMBERS);
    let run = dir.path().join("run");
    let mut stops = 0;
    let report = loop {
        let stop = Stop::default();
        let view = StopAfter { left: AtomicUsize::new(45), stop: stop.clone() };
        match learn(&plan, Arc::new(view), stop) {
            Ok(report) => break report,
            Err(LearnError::Stopped { .. }) => stops += 1,
            Err(error) => panic!("{error}"),
        }
        assert!(stops < 100);
        tear(&run);
    };
    assert!(stops > 2, "stopped {stops} times");
    let questions: Vec<QuestionRecord> = lines(&run.join("questions.jsonl"));
    let unanswerable = questions.iter().filter(|question| question.answer.is_none()).count();
    assert_eq!((questions.len() - unanswerable, unanswerable), (32, 4));
    let tries: Vec<TrajectoryRecord> = lines(&run.join("trajectories.jsonl"));
    let mut keys: Vec<_> = tries.iter().map(|one| (one.id, one.sample)).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), tries.len(), "no try twice");
    let greedy = keys.iter().filter(|(_, sample)| *sample == 0).count();
    assert_eq!(greedy, 36, "every question has a greedy try");
    for role in ["plan", "tool", "reflect"] {
        assert!(run.join("adapters").join(role).join("adapter_model.safetensors").is_file());
    }
    assert!(report.evaluation.iter().all(|row| row.questions == 2));
    // so few questions approve nothing, and the report says why
    let calibration = report.calibration.unwrap();
    assert!(calibration.questions > 0 && calibration.threshold.is_none() && !calibration.why.is_empty(), "{calibration:?}");
    assert_eq!(run.join("adapters/reflect/calibration.json").exists(), calibration.answers > 0);
    assert!(std::fs::read_to_string(run.join("report.html")).unwrap().contains("</html>"));

    // variants can be requested later
    let compared = all(&LearningPlan { variants: true, ..plan.clone() }).unwrap();
    let rows: Vec<&str> = compared.evaluation.iter().map(|row| row.row.as_str()).collect();
    for row in ["autoact", "base", "no-reflection", "one", "unfiltered", TOOL_SPECIFIED] {
        assert!(rows.contains(&row), "{row} is not among {rows:?}");
    }
    let chosen = compared.iterated.unwrap().chosen;
    assert!(run.join(format!("rounds/{chosen}/adapters/tool-Retrieve/training.json")).is_file());
    // a judge is trained for the first round and for the one that is installed
    let judge = |number: usize| run.join(format!("rounds/{number}/adapters/reflect/training.json")).is_file();
    assert_eq!([1, 2].map(judge), [true, chosen == 2]);

    // learned adapters can be published as a version of a registry
    let registry = dir.path().join("registry");
    let version = all(&LearningPlan { publish: Some(registry.clone()), promote: true, ..plan.clone() }).unwrap().version.unwrap();
    assert!(version.starts_with("small-"));
    assert!(registry.join("versions").join(&version).join("manifest.json").is_file());
    assert!(std::fs::read_to_string(registry.join("current.json")).unwrap().contains(&version));

    // a stage is repeated: the same seed gives bit-identical adapters
    let weights = |run: &Path| std::fs::read(run.join("rounds/1/adapters/plan/adapter_model.safetensors")).unwrap();
    let before = weights(&run);
    all(&LearningPlan { until: Stage::Train, again: Some(Stage::Train), ..plan.clone() }).unwrap();
    assert!(before == weights(&run));
    assert!(!run.join("evaluation.jsonl").exists() && !run.join("calibrated.json").exists());

    // results of other settings are not mixed with existing ones
    let text = std::fs::read_to_string(&plan.task).unwrap().replace("samples = 2", "samples = 3");
    std::fs::write(&plan.task, text).unwrap();
    assert!(matches!(all(&plan), Err(LearnError::OtherRun { again: Stage::Synthesize, .. })));
}

#[test]
fn questions_are_the_same_however_often_self_instruct_is_stopped() {
    let whole = tempfile::tempdir().unwrap();
    let plan = LearningPlan { until: Stage::Instruct, ..task(whole.path(), EXAMPLES, NUMBERS) };
    all(&plan).unwrap();
    let pieces = tempfile::tempdir().unwrap();
    let plan = LearningPlan { until: Stage::Instruct, ..task(pieces.path(), EXAMPLES, NUMBERS) };
    loop {
        let stop = Stop::default();
        let view = StopAfter { left: AtomicUsize::new(3), stop: stop.clone() };
        match learn(&plan, Arc::new(view), stop) {
            Ok(_) => break,
            Err(LearnError::Stopped { .. }) => tear(&pieces.path().join("run")),
            Err(error) => panic!("{error}"),
        }
    }
    let of = |dir: &Path| -> Vec<QuestionRecord> { lines(&dir.join("run/questions.jsonl")) };
    assert_eq!(of(whole.path()), of(pieces.path()));
}

#[test]
fn a_stage_says_which_one_it_needs() {
    let dir = tempfile::tempdir().unwrap();
    let plan = task(dir.path(), EXAMPLES, NUMBERS);
    let ended = all(&LearningPlan { only: Some(Stage::Train), ..plan.clone() });
    assert!(matches!(ended, Err(LearnError::Order { stage: Stage::Train, needs: Stage::Instruct, .. })));
    // a report can be made of an empty run
    assert!(all(&LearningPlan { only: Some(Stage::Report), ..plan }).is_ok());
}

#[test]
fn mistakes_in_the_task_and_the_files_it_names_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let plan = task(dir.path(), "", NUMBERS);
    assert!(matches!(all(&plan), Err(LearnError::Task(mistakes)) if mistakes.to_string().contains("no examples")));

    let plan = task(dir.path(), EXAMPLES, NUMBERS);
    let tools = std::fs::read_to_string(root().join("corpora/atlas/tools.toml")).unwrap();
    let twice = format!(
        "{tools}\n[[tool]]\nname = \"Search\"\ndefinition = \"d\"\nusage = \"Search[x]\"\neffect = \"read_only\"\nrun = {{ kind = \"search\" }}\n"
    );
    std::fs::write(dir.path().join("tools.toml"), twice).unwrap();
    std::fs::write(dir.path().join("pages.jsonl"), "{\"title\":\"x\"}\n").unwrap();
    let text = std::fs::read_to_string(&plan.task).unwrap();
    let text: String = text
        .lines()
        .map(|line| match line.split(' ').next() {
            Some("corpus") => "corpus = \"pages.jsonl\"\n".to_owned(),
            Some("tools") => "tools = \"tools.toml\"\n".to_owned(),
            _ => format!("{line}\n"),
        })
        .collect();
    std::fs::write(&plan.task, text).unwrap();
    let Err(LearnError::Task(told)) = all(&plan) else { panic!("learned from broken files") };
    let told = told.to_string();
    assert!(told.contains("pages.jsonl") && told.contains("Search"), "{told}");
    assert!(!dir.path().join("run").exists());
}

#[test]
fn a_run_directory_is_locked() {
    let dir = tempfile::tempdir().unwrap();
    let plan = task(dir.path(), EXAMPLES, NUMBERS);
    std::fs::create_dir_all(dir.path().join("run")).unwrap();
    let lock = std::fs::File::create(dir.path().join("run/lock")).unwrap();
    lock.lock().unwrap();
    assert!(matches!(all(&plan), Err(LearnError::Locked { .. })));
}

#[test]
fn a_model_with_a_chat_template_learns() {
    let dir = tempfile::tempdir().unwrap();
    // which questions such weights answer differs between processors: half of them, so that some are
    // for validation
    let numbers = NUMBERS.replace("validation = 0.2", "validation = 0.5");
    let plan = LearningPlan { model: chat_model(dir.path()), ..task(dir.path(), EXAMPLES, &numbers) };
    let report = all(&LearningPlan { until: Stage::Train, ..plan }).unwrap();
    let trained = report.training;
    assert_eq!(trained.iter().map(|one| one.adapter.as_str()).collect::<Vec<_>>(), ["plan", "tool", "reflect"]);
    for one in trained {
        assert!(one.steps > 0 && one.loss.is_finite(), "{one:?}");
        // inputs and judgements are so sure before that one step may go either way
        if one.adapter == "plan" {
            assert!(one.validation_loss.is_some() && one.validation_loss < one.base_loss, "{one:?}");
        }
    }
}

#[test]
fn a_chat_template_without_a_system_message_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let model = chat_model(dir.path());
    std::fs::write(model.join("chat_template.jinja"), "{{ raise_exception('there is no system role') }}").unwrap();
    let plan = LearningPlan { model, ..task(dir.path(), EXAMPLES, NUMBERS) };
    assert!(matches!(all(&plan), Err(LearnError::Speak(_))));
    assert!(!dir.path().join("run").exists());
}

#[test]
fn a_model_that_cannot_be_trained_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let model = chat_model(dir.path());
    let config = std::fs::read_to_string(model.join("config.json")).unwrap();
    std::fs::remove_file(model.join("config.json")).unwrap();
    std::fs::write(model.join("config.json"), config.replace("\"attention_bias\": false", "\"attention_bias\": true")).unwrap();
    let plan = LearningPlan { model, ..task(dir.path(), EXAMPLES, NUMBERS) };
    assert!(matches!(all(&plan), Err(LearnError::Untrainable { .. })));
    assert!(!dir.path().join("run").exists());
    // what comes before the training needs no trainer: this model's weights lack the biases
    assert!(matches!(all(&LearningPlan { until: Stage::Instruct, ..plan }), Err(LearnError::Model { .. })));
}
