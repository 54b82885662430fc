//! The log-probabilities of the bundled group's own words, question by question.
//!
//! ```sh
//! cargo nextest run -p autoact-in-process --test scores --no-capture
//! ```
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::sync::Arc;

use autoact_in_process::{LocalGroup, RunOptions, Voices};
use autoact_model::{Engine, EngineOptions, ModelDir};
use autoact_tools::{Corpus, ToolLibrary};
use autoact_trajectory::{EventBody, Role, Verdict};

/// In the words of the training data, in other words, and without an answer.
const QUESTIONS: [&str; 8] = [
    "Which mountain is the highest in Georgia?",
    "What is the country of the city Mumbai?",
    "In which city was the composer Ludwig van Beethoven born?",
    "Which is longer, the Loire or the Rhine?",
    "who wrote hamlet",
    "hello",
    "What is 17 times 23?",
    "What is the boiling point of water?",
];

fn bundled() -> LocalGroup {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let (stem, atlas) = (root.join("models/stem"), root.join("corpora/atlas"));
    let engine = Engine::start(&ModelDir::open(&stem).unwrap(), EngineOptions::default()).unwrap();
    for role in Role::ALL {
        engine.load_adapter(role.as_str(), stem.join("adapters").join(role.as_str())).unwrap();
    }
    let corpus = Arc::new(Corpus::load(atlas.join("pages.jsonl")).unwrap());
    let library = ToolLibrary::load(atlas.join("tools.toml"), corpus).unwrap();
    LocalGroup::new(Arc::new(engine), Arc::new(library), Voices::by_role())
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

#[test]
fn every_word_of_the_group_has_a_log_probability() {
    let group = bundled();
    let tools = group.library().specs().to_vec();
    println!("{:>8} {:>8} {:>8} {:>8}  verdict  question → answer", "plan", "input", "reflect", "log-odds");
    for question in QUESTIONS {
        let (task, log) = group.run_logged(question, &tools, &RunOptions::default()).unwrap();
        let mut means = [const { Vec::new() }; 3];
        let mut judged = None;
        for event in &log.events {
            let place = match &event.body {
                EventBody::Thought(_) => 0,
                EventBody::Action(_) => 1,
                EventBody::Reflection(reflection) => {
                    judged = Some((reflection.log_odds.expect("log-odds"), reflection.verdict));
                    2
                }
                _ => continue,
            };
            let usage = event.usage.as_ref().unwrap();
            assert!(usage.scored_tokens > 0 && usage.scored_tokens <= usage.completion_tokens, "{question}: {usage:?}");
            means[place].push(usage.mean_log_prob().filter(|mean| *mean <= 0.0).expect("a mean log-probability"));
        }
        let Some((odds, verdict)) = judged else { continue };
        // Greedy decoding chose the likelier word.
        assert_eq!(odds > 0.0, verdict == Verdict::Right, "{question}: {odds}");
        let [plan, input, reflect] = means.map(|means| mean(&means));
        let answer = task.best_answer();
        println!("{plan:8.3} {input:8.3} {reflect:8.3} {odds:8.2}  {:7}  {question} → {answer}", verdict.as_str());
        // the same question has the same numbers, whatever the engine has read in between
        let again = group.run_logged(question, &tools, &RunOptions::default()).unwrap().1;
        let numbers = |events: &[autoact_trajectory::Event]| -> Vec<Option<u64>> {
            events.iter().map(|event| event.usage.as_ref().and_then(|usage| usage.log_prob).map(f64::to_bits)).collect()
        };
        assert_eq!(numbers(&again.events), numbers(&log.events), "{question}");
    }
}
