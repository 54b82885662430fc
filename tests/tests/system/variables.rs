//! Variables of the environment, as the documents name them and as the services take them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use autoact_config::{Common, SETTINGS, VARIABLE_PREFIX};
use autoact_testkit::Program;
use autoact_testkit::files::root;

const LIMIT: Duration = Duration::from_secs(60);
/// Names in the documents that are no variables: streams and buckets on NATS, one of which ends in
/// the tenant.
const ON_NATS: [&str; 9] = [
    "AUTOACT_ADAPTERS",
    "AUTOACT_ARTIFACTS_",
    "AUTOACT_INDEX",
    "AUTOACT_OUTBOX",
    "AUTOACT_QUEUE",
    "AUTOACT_TASK_INDEX",
    "AUTOACT_TASKS",
    "AUTOACT_TRAJECTORIES",
    "AUTOACT_TRAJECTORY",
];

/// Every name with our prefix in a text, with the value that stands behind it, if one does.
fn names(text: &str) -> Vec<(String, Option<String>)> {
    let end = |text: &str, part: fn(char) -> bool| text.find(|c: char| !part(c)).unwrap_or(text.len());
    let places = text.match_indices(VARIABLE_PREFIX).map(|(at, _)| &text[at..]);
    let named = places.map(|text| text.split_at(end(text, |c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')));
    let valued = named.map(|(name, rest)| {
        let value = rest.strip_prefix('=').map(|rest| rest[..end(rest, |c| !c.is_whitespace() && c != '`')].to_owned());
        (name.to_owned(), value)
    });
    // `AUTOACT_` alone, and `AUTOACT_…__KEY`, name none
    valued.filter(|(name, _)| name != VARIABLE_PREFIX).collect()
}

/// The variables of README.md and docs/, each with a value.
fn documented() -> anyhow::Result<BTreeMap<String, String>> {
    let mut documents = vec![root().join("README.md")];
    for entry in std::fs::read_dir(root().join("docs"))? {
        documents.push(entry?.path());
    }
    documents.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    let mut found = BTreeMap::new();
    for document in documents {
        for (name, value) in names(&std::fs::read_to_string(document)?) {
            let known = found.entry(name).or_insert_with(|| "1".to_owned());
            if let Some(value) = value {
                *known = value;
            }
        }
    }
    found.retain(|name, _| !ON_NATS.contains(&name.as_str()));
    Ok(found)
}

/// What is wrong with these variables by one service's word: the lines of its error.
async fn complaints(service: &str, variables: &BTreeMap<String, String>) -> anyhow::Result<Vec<String>> {
    let mut program = Program::new(service)?.args(["--print-config"]);
    for (name, value) in variables {
        program = program.env(name, value);
    }
    let output = program.run(LIMIT).await?;
    Ok(output.stderr.lines().filter(|line| line.contains("variable `")).map(str::to_owned).collect())
}

#[tokio::test]
async fn documented_variables_are_known_to_every_service() -> anyhow::Result<()> {
    let documented = documented()?;
    for known in ["AUTOACT_ISA", "AUTOACT_BACKEND__API_KEY", "AUTOACT_NATS__URL"] {
        assert!(documented.contains_key(known), "{known} is not found in {documented:?}");
    }
    for (service, _) in SETTINGS {
        let complaints = complaints(service, &documented).await?;
        // a value may be wrong: most names stand in the documents without one
        let unknown: Vec<&String> = complaints.iter().filter(|line| line.contains("unknown")).collect();
        assert!(unknown.is_empty(), "{service} does not know what the documents name: {unknown:#?}");
    }
    // and what they do not name is a mistake, so that the above means something
    let wrong = BTreeMap::from([("AUTOACT_ISSA".to_owned(), "1".to_owned())]);
    assert_eq!(complaints("gateway", &wrong).await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn secrets_and_process_wide_variables_stop_no_service() -> anyhow::Result<()> {
    for (service, _) in SETTINGS {
        let program = Program::new(service)?.args(["--print-config"]).env("AUTOACT_ISA", "portable");
        let program = program.env("AUTOACT_BACKEND__API_KEY", "s3cret").env("AUTOACT_QDRANT__API_KEY", "s3cret");
        let output = program.run(LIMIT).await?;
        assert_eq!(output.code, Some(0), "{service}: {}", output.text());
        assert!(!output.text().contains("s3cret"), "{service}: {}", output.text());
        let agent = service.ends_with("-agent");
        assert_eq!(output.stdout.contains("variable `AUTOACT_BACKEND__API_KEY`"), agent, "{service}: {}", output.text());
    }
    Ok(())
}

#[tokio::test]
async fn the_list_of_settings_is_what_the_services_have() -> anyhow::Result<()> {
    for (service, listed) in SETTINGS {
        let output = Program::new(service)?.args(["--print-config"]).run(LIMIT).await?;
        let config: toml::Table = output.stdout.parse()?;
        let section = config.get(service).and_then(toml::Value::as_table).expect("it prints its section");
        let own: BTreeSet<&str> = section.keys().map(String::as_str).filter(|key| !Common::KEYS.contains(key)).collect();
        let listed: BTreeSet<&str> = listed.iter().copied().collect();
        assert_eq!(own, listed, "`SETTINGS` in crates/platform/config lists the settings of {service}");
    }
    Ok(())
}
