//! The published formats, on records written for this test. The data sets are not part of the
//! project.
#![allow(clippy::unwrap_used)]

use autoact_datasets::{DatasetError, Format};
use autoact_score::{Metric, options};
use autoact_tools::{Corpus, Page};
use proptest::prelude::*;
use serde_json::json;

fn hotpot() -> serde_json::Value {
    json!({
        "_id": "h1", "question": "Is the Tarn Mill taller than the Brey Mill?", "answer": "yes", "type": "comparison", "level": "easy",
        "supporting_facts": [["Tarn Mill", 0], ["Brey Mill", 1]],
        "context": [
            ["Tarn Mill", ["The Tarn Mill is 40 m tall.", " It stands by a lake."]],
            ["Brey Mill", ["The Brey Mill stands in a field.", " It is 12 m tall."]],
            ["Empty", []],
            ["Brey Mill", ["It was built by two sisters."]],
            ["Tarn  Mill", ["The Tarn Mill is 40 m tall."]],
        ],
    })
}

fn science(answer: &str) -> serde_json::Value {
    json!({
        "Question": "Which property matches this object?\nContext: Select the better answer.\nOptions: (A) stretchy (B) transparent",
        "choices": ["stretchy", "transparent"], "caption": "A glass.", "orc": "[([[1, 2], [3, 4]], 'fish bowl', 0.69)]", "Answer": answer,
        "metadata": {"has_image": true, "grade": 5}, "pid": "77",
    })
}

#[test]
fn hotpots_paragraphs_become_the_questions_pages() {
    let records = Format::HotpotQa.parse(&hotpot().to_string(), "test").unwrap();
    assert_eq!((records[0].id.as_str(), records[0].answer.as_str(), records[0].level.as_str()), ("h1", "yes", "easy"));
    let page = |title: &str, text: &str| Page { title: title.into(), text: text.into() };
    assert_eq!(
        records[0].pages,
        [
            page("Tarn Mill", "The Tarn Mill is 40 m tall. It stands by a lake."),
            page("Brey Mill", "The Brey Mill stands in a field. It is 12 m tall. It was built by two sisters."),
        ]
    );
    assert_eq!(Corpus::from_pages(records[0].pages.clone()).unwrap().pages().len(), 2);
    assert_eq!(Format::HotpotQa.metric(), Metric::F1);
}

#[test]
fn an_array_and_lines_are_the_same() {
    let array = json!([hotpot(), hotpot()]).to_string();
    let lines = format!("\u{feff}{}\n\n{}\n", hotpot(), hotpot());
    assert_eq!(Format::HotpotQa.parse(&array, "test").unwrap(), Format::HotpotQa.parse(&lines, "test").unwrap());
}

#[test]
fn science_questions_hold_options_and_picture() {
    let records = Format::ScienceQa.parse(&science("B").to_string(), "test").unwrap();
    let record = &records[0];
    assert!(record.question.ends_with("\nCaption: A glass.\nWords in the picture: fish bowl"), "{}", record.question);
    assert_eq!(options(&record.question), ["stretchy", "transparent"]);
    assert_eq!((record.answer.as_str(), record.level.as_str(), record.id.as_str()), ("B. transparent", "G5-8", "77"));
    assert!(record.pages.is_empty());
    let metric = Format::ScienceQa.metric();
    assert_eq!(metric.reward(&record.question, "transparent", &record.answer), 1.0);
    assert_eq!(metric.reward(&record.question, "A", &record.answer), 0.0);
}

#[test]
fn problems_by_id_are_read_and_other_splits_left_out() {
    let problem = |split: &str| json!({"question": "Which is\nhigher?", "choices": ["a hill", "a hole"], "answer": 0, "hint": "Look up.", "grade": "grade2", "split": split});
    let text = json!({"7": problem("test"), "8": problem("train")}).to_string();
    let records = Format::ScienceQa.parse(&text, "test").unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].question, "Which is higher?\nContext: Look up.\nOptions: (A) a hill (B) a hole");
    assert_eq!((records[0].id.as_str(), records[0].answer.as_str(), records[0].level.as_str()), ("7", "A. a hill", "G1-4"));
}

#[test]
fn mistakes_name_their_record() {
    let lines = format!(
        "{}\n{{\"question\": \"x\"}}\nnot json\n{}\n",
        hotpot(),
        json!({"_id": "x", "question": "q", "answer": "a", "context": []})
    );
    let error = Format::HotpotQa.parse(&lines, "data.jsonl").unwrap_err();
    let DatasetError::Mistakes { mistakes, more: 0, .. } = &error else { panic!("{error}") };
    assert_eq!(mistakes.iter().map(|mistake| mistake.place.as_str()).collect::<Vec<_>>(), ["line 2", "line 3", "line 4"]);
    assert!(error.to_string().contains("expected {\"_id\""), "{error}");

    let error = Format::ScienceQa.parse(&science("Z").to_string(), "data").unwrap_err();
    assert!(error.to_string().contains("`Answer` is `Z`"), "{error}");
    let many = "{}\n".repeat(50);
    assert!(matches!(Format::HotpotQa.parse(&many, "data"), Err(DatasetError::Mistakes { more: 30, .. })));
    assert!(matches!(Format::HotpotQa.parse("  \n", "data"), Err(DatasetError::Empty { .. })));
    assert!(matches!(Format::HotpotQa.parse("[1,", "data"), Err(DatasetError::NotJson { .. })));
    assert!(matches!(Format::HotpotQa.load("/nowhere/data.json"), Err(DatasetError::Read { .. })));
    assert!("trivia".parse::<Format>().unwrap_err().to_string().contains("`trivia`"));
}

/// Published samples, if `AUTOACT_TEST_DATA` names a directory that has them. A checkout has none.
#[test]
fn published_samples_are_read() {
    let Some(data) = std::env::var_os("AUTOACT_TEST_DATA").map(std::path::PathBuf::from) else {
        eprintln!("`AUTOACT_TEST_DATA` is not set: no samples to read");
        return;
    };
    let files = [
        (Format::HotpotQa, "hotpotqa_easy_100.jsonl", 100),
        (Format::ScienceQa, "scienceqa_grade1_4_40.jsonl", 40),
        (Format::ScienceQa, "scienceqa_grade5_8_40.jsonl", 40),
        (Format::ScienceQa, "scienceqa_grade9_12_40.jsonl", 40),
    ];
    for (format, name, count) in files {
        let path = data.join(name);
        if !path.exists() {
            eprintln!("no `{name}` here: nothing to read");
            continue;
        }
        let records = format.load(&path).unwrap();
        assert_eq!(records.len(), count, "{name}");
        for record in records {
            if format == Format::HotpotQa {
                Corpus::from_pages(record.pages.clone()).unwrap();
            }
            assert_eq!(format.metric().reward(&record.question, &record.answer, &record.answer), 1.0, "{record:?}");
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_an_error_or_records(text in ".{0,200}") {
        let _ = Format::HotpotQa.parse(&text, "test");
        let _ = Format::ScienceQa.parse(&text, "test");
    }
}
