use super::*;

fn dir() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("pages.jsonl"), "{\"title\":\"Loire\",\"text\":\"A river.\"}\n").unwrap();
    std::fs::write(dir.path().join("tools.toml"), "").unwrap();
    dir
}

const GOOD: &str = "name = \"t\"\ndescription = \"d\"\ncorpus = \"pages.jsonl\"\ntools = \"tools.toml\"\n";

#[test]
fn defaults_fit_the_model() {
    let dir = dir();
    let text = format!("{GOOD}[[examples]]\nquestion = \"Where is\\n the Loire?\"\nanswer = \"France\"\n");
    let task = Task::parse(&text, &dir.path().join("task.toml")).unwrap();
    assert_eq!(task.examples[0].question, "Where is the Loire?");
    assert_eq!(task.metric, Metric::ExactMatch);
    let lora = &task.settings.train.lora;
    assert_eq!((lora.r, lora.alpha, lora.dropout, lora.target_modules.len()), (16, 32.0, 0.05, 7));
    assert_eq!(task.settings.train.epochs, 5);
    let set = |settings: Settings| (settings.instruct.forms, settings.synthesize.question_bias, settings.filter.coverage);
    assert_eq!(set(task.settings.clone()), (None, None, None));
    assert_eq!(set(task.settings.clone().fitting(false)), (Some(1.0), Some(6.0), Some(0.8)));
    assert_eq!(set(task.settings.clone().fitting(true)), (Some(0.0), Some(0.0), Some(0.0)));
    let mut own = task.settings;
    own.synthesize.question_bias = Some(0.0);
    let digested = |settings: Settings| serde_json::to_string(&settings.instruct).unwrap();
    assert!(digested(own.clone().fitting(false)).contains("forms"));
    assert!(!digested(own.clone().fitting(true)).contains("forms"), "runs of before go on");
    assert_eq!(set(own.clone().fitting(false)), (Some(1.0), Some(0.0), Some(0.0)));
    let hints = |settings: Settings| settings.fitting(false).synthesize.hints;
    assert_eq!([hints(Settings::default()), hints(own.clone())], [Some(3), Some(0)], "hints are a bias");
    let counts = |settings: Settings, template| {
        let settings = settings.fitting(template);
        (settings.instruct.questions, settings.synthesize.samples)
    };
    assert_eq!(counts(Settings::default(), false), (Some(1000), Some(2)));
    assert_eq!(counts(Settings::default(), true), (Some(600), Some(4)));
    assert_eq!(counts(own.clone(), false), (Some(1000), Some(4)), "without hints more tries");
    let sentences = |template| Settings::default().fitting(template).select.sentences;
    assert_eq!([sentences(false), sentences(true)], [Some(3), Some(0)], "a small model reads few sentences better");
    own.synthesize = Synthesize::default();
    own.instruct.forms = Some(0.0);
    assert_eq!(hints(own), Some(0), "only questions in the form of the examples have hints");
}

#[test]
fn the_papers_protocol_is_its_table_4_and_one_round() {
    let dir = dir();
    let text = format!(
        "{GOOD}[[examples]]\nquestion = \"Where?\"\nanswer = \"France\"\n[train]\nbatch = 2\n[train.lora]\nr = 32\nactivated = true\n\
         [instruct]\nquestions = 90\n[synthesize]\nquestion_bias = 6.0\n[filter]\ncoverage = 0.8\n[iterate]\nrounds = 3\n"
    );
    let Settings { train, instruct, select, synthesize, filter, differentiate, iterate, .. } =
        Task::parse(&text, &dir.path().join("task.toml")).unwrap().settings.paper();
    assert_eq!((train.epochs, train.batch, train.learning_rate, train.warmup_ratio), (5, 4, Some(1e-4), 0.03));
    assert_eq!((train.lora.r, train.lora.alpha, train.lora.dropout, train.lora.activated), (8, 16.0, 0.05, Some(false)));
    assert_eq!(train.lora.target_modules, [autoact_train::Linear::Q, autoact_train::Linear::V]);
    assert_eq!((iterate.rounds, differentiate.trajectories, select.sentences), (1, 200, Some(0)));
    assert_eq!((synthesize.question_bias, filter.sure, filter.coverage), (Some(0.0), 0.0, Some(0.0)));
    assert_eq!(instruct.questions, Some(90), "self-instruct stays the task's");
}

#[test]
fn every_mistake_is_told_at_once() {
    let text = "name = \"a b\"\ncorpus = \"nowhere.jsonl\"\nseed = 3\n\
        [[examples]]\nquestion = \"Where?\"\n\
        [[examples]]\nanswer = \"there\"\n\
        [[examples]]\nquestion = \"Who?\"\nanswer = \"he\"\noptions = [\"she\", \"it\"]\n\
        [instruct]\nquestions = 0\n[synthesize]\ntemperature = 99.0\nquestion_bias = -1.0\n";
    let mistakes = Task::parse(text, Path::new("task.toml")).unwrap_err().join("\n");
    for part in [
        "`name` is `a b`",
        "no `description`",
        "example 1 (`Where?`) has no `answer`",
        "example 2 has no `question`",
        "`he` of example 3 is none of its options",
        "1 of 3 examples have `options`",
        "`corpus` names",
        "no `tools`",
        "`instruct.questions`",
        "`synthesize.temperature`",
        "`synthesize.question_bias`",
    ] {
        assert!(mistakes.contains(part), "{part} is not told in:\n{mistakes}");
    }
}

#[test]
fn no_examples_and_unknown_keys_are_mistakes() {
    let dir = dir();
    let path = dir.path().join("task.toml");
    assert!(Task::parse(GOOD, &path).unwrap_err()[0].contains("no examples"));
    assert!(Task::parse(&format!("{GOOD}exmaples = []\n"), &path).unwrap_err()[0].contains("exmaples"));
}

#[test]
fn options_make_a_multiple_choice_task() {
    let dir = dir();
    let text = format!("{GOOD}[[examples]]\nquestion = \"Which?\"\nanswer = \"B\"\noptions = [\"tin\", \"iron\"]\n");
    let task = Task::parse(&text, &dir.path().join("task.toml")).unwrap();
    assert_eq!(task.metric, Metric::MultipleChoice);
    assert!(task.has_options());
}
