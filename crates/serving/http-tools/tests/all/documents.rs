//! Documents of others: `AUTOACT_TEST_OPENAPI=DIR` names a directory of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use autoact_http_tools::HttpTool;
use autoact_http_tools::openapi::{Import, ImportOptions, import};
use autoact_tools::ToolLibrary;
use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use serde_json::json;
use toktrie::ApproximateTokEnv;

use crate::server::{Names, World};

/// Documents that are drawn.
const DRAWN: usize = 200;
/// Operations of one document whose grammars are compiled.
const GRAMMARS: usize = 60;

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|end| end == "json" || end == "yaml" || end == "yml") {
            found.push(path);
        }
    }
}

/// One of each of `DRAWN` equal parts of the sorted list; the seed is fixed.
fn drawn(mut all: Vec<PathBuf>) -> Vec<PathBuf> {
    all.sort();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    let part = |n: usize| all.len() * n / DRAWN;
    (0..DRAWN).filter(|n| part(n + 1) > part(*n)).map(|n| all[part(n) + next(part(n + 1) - part(n))].clone()).collect()
}

#[test]
fn documents_of_others_are_imported() {
    let Ok(directory) = std::env::var("AUTOACT_TEST_OPENAPI") else {
        println!("skipped: AUTOACT_TEST_OPENAPI names no directory of documents");
        return;
    };
    let mut all = Vec::new();
    files(Path::new(&directory), &mut all);
    let sample = drawn(all);
    let world = World::new(Names::default());
    let corpus = Arc::new(crate::server::corpus());
    let mut factory = ParserFactory::new_simple(&ApproximateTokEnv::single_byte_env()).unwrap();
    factory.quiet();
    let (mut good, mut operations, mut grammars) = (0, 0, 0);
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut notes: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    let (mut examples, mut slowest) = (0, (std::time::Duration::ZERO, String::new()));
    for path in &sample {
        let name = path.strip_prefix(&directory).unwrap().display().to_string();
        let options = ImportOptions { prefix: "x_".into(), ..ImportOptions::default() };
        let started = std::time::Instant::now();
        let imported = import(&std::fs::read(path).unwrap(), "https://docs.example.com/openapi.json", &options);
        slowest = slowest.max((started.elapsed(), name.clone()));
        let Import { operations: found, skipped, .. } = match imported {
            Ok(imported) => imported,
            Err(error) => {
                *reasons.entry(format!("document: {error}")).or_default() += 1;
                println!("{name}: {error}");
                continue;
            }
        };
        for one in &skipped {
            let kind = format!("{:?}", one.reason);
            *reasons.entry(kind.split('(').next().unwrap().to_owned()).or_default() += 1;
        }
        if found.is_empty() {
            println!("{name}: no operation; {:?}", skipped.first());
        }
        good += usize::from(!found.is_empty());
        operations += found.len();
        for (at, one) in found.into_iter().enumerate() {
            examples += one.spec.examples.len();
            for note in &one.notes {
                let kind = format!("{note:?}");
                *notes.entry(kind.split('(').next().unwrap().to_owned()).or_default() += 1;
            }
            let schema = one.spec.schema.clone().unwrap();
            if at < GRAMMARS {
                let mut guided = schema.value().clone();
                guided["x-guidance"] = json!({ "whitespace_flexible": false, "lenient": true });
                let grammar = TopLevelGrammar::from_lark(format!("start: \" \" json \"\\n\"\njson: %json {guided}\n"));
                if let Some(error) = Matcher::new(factory.create_parser(grammar)).get_error() {
                    wrong.push(format!("{name} {}: grammar: {error}", one.at));
                }
                grammars += 1;
            }
            let library = ToolLibrary::bundled(Arc::clone(&corpus)).unwrap();
            match HttpTool::new(one.spec, one.operation, world.client.clone()) {
                Ok(tool) => {
                    if let Err(error) = library.with_tool(Arc::new(tool)) {
                        wrong.push(format!("{name} {}: {error}", one.at));
                    }
                }
                Err(error) => wrong.push(format!("{name} {}: {error}", one.at)),
            }
        }
    }
    let skipped: usize = reasons.values().sum();
    println!("{good} of {} documents with an operation; {operations} operations, {skipped} skipped: {reasons:?}", sample.len());
    println!("{examples} examples; {grammars} grammars; slowest {slowest:?}; notes: {notes:?}");
    println!("{} schemas refused: {:#?}", wrong.len(), &wrong[..wrong.len().min(20)]);
    assert!(good * 100 >= sample.len() * 95, "{good} of {}", sample.len());
    assert!(wrong.is_empty());
}
