//! The layers, their order and their mistakes, as a service sees them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::result_large_err, clippy::redundant_clone, clippy::zombie_processes)] // tests

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use autoact_config::{Check, Common, ConfigErrors, Loaded, LogFormat, OTHER_VARIABLES, Secret, Section, Source, Sources, load};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Demo {
    model: PathBuf,
    queue: usize,
    temperature: f32,
    names: Vec<String>,
    password: Secret,
    #[serde(with = "autoact_config::duration")]
    patience: Duration,
    store: Store,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Store {
    path: Option<PathBuf>,
    cache: bool,
}

impl Default for Demo {
    fn default() -> Self {
        Demo {
            model: "models/stem".into(),
            queue: 8,
            temperature: 0.0,
            names: Vec::new(),
            password: Secret::default(),
            patience: Duration::from_secs(2),
            store: Store::default(),
        }
    }
}

impl Section for Demo {
    const NAME: &'static str = "plan-agent";

    fn common() -> Common {
        Common::on_ports(7401, 7501)
    }

    fn validate(&self, _: &Common, check: &mut Check<'_>) {
        check.require(self.queue > 0, "queue", "at least 1", self.queue);
    }
}

fn env(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn flags(triples: &[(&str, &str, &str)]) -> Vec<(String, String, String)> {
    triples.iter().map(|(flag, key, value)| ((*flag).to_owned(), (*key).to_owned(), (*value).to_owned())).collect()
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn from_file(text: &str) -> Result<Loaded<Demo>, ConfigErrors> {
    let file = file(text);
    load(&Sources { file: Some(file.path().to_owned()), ..Sources::default() })
}

#[test]
fn each_layer_beats_the_one_below() {
    let file =
        file("[common]\ngrace_period = \"3s\"\nnats.url = \"nats://file:1\"\n[plan-agent]\nqueue = 2\nmodel = \"file\"\nnames = [\"x\"]\n");
    let sources = Sources {
        file: None,
        env: env(&[
            ("AUTOACT_CONFIG", file.path().to_str().unwrap()),
            ("AUTOACT_QUEUE", "3"),
            ("AUTOACT_NATS__URL", "nats://env:1"),
            ("AUTOACT_NAMES", "a, b"),
            ("AUTOACT_PASSWORD", "12345"),
            ("AUTOACT_PLAN_AGENT__STORE__CACHE", "true"),
            ("AUTOACT_GATEWAY__WHATEVER", "another service's"),
            ("AUTOACT_MEMORY_SERVICE_HOST", "10.0.0.1"),
            ("AUTOACT_MEMORY_PORT", "tcp://10.0.0.1:7404"),
            ("AUTOACT_MEMORY_PORT_7404_TCP_ADDR", "10.0.0.1"),
            ("PATH", "/bin"),
        ]),
        flags: flags(&[("queue", "queue", "4"), ("listen", "listen", "127.0.0.1:0")]),
    };
    let loaded = load::<Demo>(&sources).unwrap();
    assert_eq!(loaded.service.queue, 4);
    assert_eq!(loaded.service.model, PathBuf::from("file"));
    assert_eq!(loaded.service.names, ["a", "b"]);
    assert_eq!(loaded.service.password.expose(), "12345");
    assert!(loaded.service.store.cache);
    assert_eq!(loaded.common.nats.url, "nats://env:1");
    assert_eq!(loaded.common.grace_period, Duration::from_secs(3));
    assert_eq!(loaded.common.listen.port(), 0);
    assert_eq!(loaded.common.metrics_listen.port(), 7501);
    assert_eq!(loaded.common.telemetry.log_format, LogFormat::Text);
    assert_eq!(loaded.source("queue"), Source::Flag("queue".into()));
    assert_eq!(loaded.source("nats.url"), Source::Variable("AUTOACT_NATS__URL".into()));
    assert_eq!(loaded.source("patience"), Source::Default);
}

#[test]
fn all_mistakes_are_reported_together_with_their_places() {
    let file = file("[common]\nmodel = \"m\"\n[plan-agent]\nqueue = \"many\"\nquue = 1\n[plan-agnt]\nx = 1\n");
    let sources = Sources {
        file: Some(file.path().to_owned()),
        env: env(&[("AUTOACT_PATIENCE", "2 weeks"), ("AUTOACT_LISTEN", "here"), ("AUTOACT_MODLE", "x")]),
        flags: flags(&[("temperature", "temperature", "hot"), ("set", "queue", "0")]),
    };
    let errors = load::<Demo>(&sources).unwrap_err();
    let text = errors.to_string();
    assert_eq!(errors.mistakes.len(), 9, "{text}");
    for part in [
        "key `common.model`",
        "key `plan-agent.queue`: invalid type: string \"many\", expected a whole number, 0 or more",
        "key `plan-agent.quue`: unknown field `quue`, expected one of `model`",
        "key `plan-agnt`: unknown section; expected one of `common`, `gateway`",
        "variable `AUTOACT_PATIENCE`: invalid value: string \"2 weeks\", expected a duration such as `500ms`",
        "variable `AUTOACT_LISTEN`: invalid socket address syntax, found `here`",
        "variable `AUTOACT_MODLE`: unknown field `modle`",
        "flag `--temperature`: invalid type: string \"hot\", expected a number",
        "flag `--set`: `queue` must be at least 1, found `0`",
    ] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
}

#[test]
fn a_variable_for_every_service_is_no_mistake_of_those_without_the_setting() {
    let load = |pairs: &[(&str, &str)]| load::<Demo>(&Sources { env: env(pairs), ..Sources::default() });
    // read by the kernels; a setting of the agents; of tool-agent; of memory
    let others =
        [("AUTOACT_ISA", "avx2"), ("AUTOACT_BACKEND__API_KEY", "s3cret"), ("AUTOACT_TOOLS", "t.toml"), ("AUTOACT_QDRANT__API_KEY", "k")];
    assert!(load(&others).is_ok());
    for (name, reader) in OTHER_VARIABLES {
        assert!(!reader.is_empty());
        // the file is missing, but the variable is known
        let known = load(&[(name, "x")]).map_or_else(|error| !error.to_string().contains("unknown"), |_| true);
        assert!(known, "{name}");
    }
    // this service has it: then it counts, and what is wrong with it too
    assert_eq!(load(&[("AUTOACT_STORE__PATH", "/data")]).unwrap().service.store.path, Some("/data".into()));
    for wrong in
        ["AUTOACT_STORE__PTH", "AUTOACT_BACKENDS__API_KEY", "AUTOACT_PLAN_AGENT__TOOLS", "AUTOACT_ISAS", "AUTOACT_TELEMETRY__BACKEND"]
    {
        let error = load(&[(wrong, "x")]).unwrap_err().to_string();
        assert!(error.contains(&format!("variable `{wrong}`: unknown field")), "{error}");
    }
    // neither a flag nor a file is for every service
    let flag = Sources { flags: flags(&[("set", "backend.api_key", "x")]), ..Sources::default() };
    assert!(autoact_config::load::<Demo>(&flag).is_err());
    assert!(from_file("[plan-agent]\nbackend.api_key = \"x\"\n").is_err());
    assert!(from_file("[meta-agent]\nx = 1\n").unwrap_err().to_string().contains("unknown section"));
}

#[test]
fn a_negative_duration_is_refused_wherever_it_comes_from() {
    let expected = "expected a duration such as `500ms`, `2s` or `1m30s`";
    for negative in ["-1s", "-500ms", "1m-30s", "-0s", "-1"] {
        let variables = [("AUTOACT_PATIENCE", negative), ("AUTOACT_GRACE_PERIOD", negative), ("AUTOACT_START_LIMIT", negative)];
        let errors = load::<Demo>(&Sources { env: env(&variables), ..Sources::default() }).unwrap_err();
        assert_eq!(errors.mistakes.len(), 3, "{errors}");
        assert!(errors.mistakes.iter().all(|mistake| mistake.message.contains(expected) && mistake.message.contains(negative)), "{errors}");
    }
    for negative in ["-1", "-1.5", "\"-1s\""] {
        let error = from_file(&format!("[plan-agent]\npatience = {negative}\n")).unwrap_err().to_string();
        assert!(error.contains("key `plan-agent.patience`") && error.contains(expected), "{error}");
    }
}

#[test]
fn validation_names_the_source_of_the_value() {
    let errors = load::<Demo>(&Sources { env: env(&[("AUTOACT_QUEUE", "0")]), ..Sources::default() }).unwrap_err();
    assert_eq!(errors.mistakes[0].source_of, Source::Variable("AUTOACT_QUEUE".into()));
    assert_eq!(errors.mistakes[0].message, "`queue` must be at least 1, found `0`");
}

#[test]
fn a_corrupt_file_names_line_and_column() {
    let errors = from_file("[plan-agent]\nqueue = = 3\n").unwrap_err();
    assert_eq!(errors.mistakes.len(), 1);
    assert!(errors.mistakes[0].message.starts_with("line 2, column "), "{errors}");
}

#[test]
fn a_missing_file_is_named() {
    let errors = load::<Demo>(&Sources { file: Some("no/such.toml".into()), ..Sources::default() }).unwrap_err();
    assert!(errors.to_string().contains("`no/such.toml`"), "{errors}");
}

#[test]
fn what_is_printed_is_a_configuration_file_without_secrets() {
    let sources = Sources {
        env: env(&[("AUTOACT_PASSWORD", "hunter2"), ("AUTOACT_NATS__URL", "nats://me:hunter2@bus:4222"), ("AUTOACT_STORE__PATH", "/data")]),
        ..Sources::default()
    };
    let printed = load::<Demo>(&sources).unwrap().print();
    assert!(!printed.contains("hunter2"), "{printed}");
    assert!(printed.contains("patience = \"2s\"  # default"), "{printed}");
    assert!(printed.contains("[plan-agent.store]\n"), "{printed}");
    assert!(printed.contains("path = \"/data\"  # variable `AUTOACT_STORE__PATH`"), "{printed}");
    from_file(&printed).unwrap();
}
