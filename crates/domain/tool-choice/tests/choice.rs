//! What is chosen, and that nothing breaks on odd libraries and questions.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use autoact_tool_choice::{ChoiceOptions, Merge, ToolIndex};
use autoact_trajectory::{ParameterSchema, ToolBackground, ToolSpec};
use proptest::prelude::*;

fn tool(name: &str, definition: &str, schema: Option<&str>) -> ToolSpec {
    ToolSpec {
        definition: definition.into(),
        usage: format!("{name}[what]"),
        schema: schema.map(|schema| ParameterSchema::parse(schema).unwrap()),
        ..ToolSpec::new(name)
    }
}

fn title(title: &str) -> ToolBackground {
    ToolBackground { title: title.into(), ..ToolBackground::default() }
}

fn library() -> Vec<(ToolSpec, ToolBackground)> {
    let city = r#"{"type":"object","properties":{"city":{"type":"string","description":"a town"},"unit":{"enum":["celsius"]}}}"#;
    vec![
        (tool("GetForecast", "The weather of the coming days.", Some(city)), title("Skies")),
        (tool("addPetToStore", "Puts an animal on offer.", None), title("Petstore")),
        (tool("orders_list", "Lists what was bought.", None), title("Petstore")),
        (tool("orders_list_2", "Lists what was bought.", None), title("Bookshop")),
    ]
}

fn index(tools: &[(ToolSpec, ToolBackground)]) -> ToolIndex {
    ToolIndex::new(tools.iter().map(|(spec, background)| (spec, background)))
}

fn best(question: &str) -> String {
    index(&library()).rank(question, None, Merge::default())[0].name.clone()
}

#[test]
fn words_of_every_part_count() {
    assert_eq!(best("what will the weather be like?"), "GetForecast");
    assert_eq!(best("forecast, please"), "GetForecast");
    assert_eq!(best("how warm is it in celsius"), "GetForecast");
    assert_eq!(best("which towns are there"), "GetForecast");
    assert_eq!(best("add a pet"), "addPetToStore");
    // what a tool belongs to tells two apart that are the same otherwise
    assert_eq!(best("my orders at the bookshop"), "orders_list_2");
    assert_eq!(best("my orders at the petstore"), "orders_list");
}

#[test]
fn that_none_fits_is_a_result() {
    let index = index(&library());
    let choose = |question: &str| index.choose(question, None, &ChoiceOptions::default());
    assert!(choose("Who painted the Mona Lisa?").iter().all(|tool| !tool.chosen && tool.words == 0.0));
    assert!(choose("").iter().all(|tool| !tool.chosen));
    let chosen = choose("the weather of the coming days");
    let told: Vec<_> = chosen.iter().map(|tool| (tool.name.as_str(), tool.chosen)).collect();
    assert_eq!(told, [("GetForecast", true)]);
}

#[test]
fn meaning_counts_where_there_are_vectors_for_all() {
    let library = library();
    let plain = index(&library);
    // a world of two directions: weather, and all else
    let vector = |text: &str| if text.contains("Skies") { vec![1.0, 0.0] } else { vec![0.0, 1.0] };
    let vectors: HashMap<String, Vec<f32>> = plain.texts().into_iter().map(|text| (text.to_owned(), vector(text))).collect();
    let meaning = plain.clone().with_vectors(&vectors);
    assert!(meaning.has_vectors());
    let ranked = meaning.rank("Do I need an umbrella?", Some(&[1.0, 0.0]), Merge::default());
    assert_eq!((ranked[0].name.as_str(), ranked[0].words, ranked[0].meaning), ("GetForecast", 0.0, Some(1.0)));
    assert!(meaning.choose("Do I need an umbrella?", Some(&[1.0, 0.0]), &ChoiceOptions::default())[0].chosen);
    // without the question's vector, or with a vector missing, words alone
    assert_eq!(meaning.rank("umbrella", None, Merge::default())[0].meaning, None);
    let few = vectors.into_iter().take(2).collect();
    assert!(!plain.with_vectors(&few).has_vectors());
}

proptest! {
    #[test]
    fn every_tool_is_ranked_once_and_the_best_are_chosen(
        named in prop::collection::btree_map("[A-Za-z][A-Za-z0-9_]{0,12}", ".{0,60}", 0..20),
        question in ".{0,80}",
        limit in 0_usize..12,
        least in 0.0..1.0_f64,
    ) {
        let tools: Vec<_> = named.iter().map(|(name, text)| (tool(name, text, None), title(text))).collect();
        let index = index(&tools);
        let ranked = index.rank(&question, None, Merge::default());
        prop_assert_eq!(ranked.len(), tools.len());
        prop_assert!(ranked.iter().all(|tool| (0.0..=1.0 + 1e-9).contains(&tool.score) && !tool.chosen));
        prop_assert!(ranked.is_sorted_by(|a, b| a.score >= b.score));
        let options = ChoiceOptions { limit, least, least_by_words: least, ..ChoiceOptions::default() };
        let chosen = index.choose(&question, None, &options);
        prop_assert!(chosen.iter().all(|tool| tool.score > 0.0));
        // a beginning of the ranking, as long as it is good enough
        let expected = ranked.iter().take(limit).take_while(|tool| tool.score > 0.0 && tool.score >= least).count();
        prop_assert_eq!(chosen.iter().filter(|tool| tool.chosen).count(), expected);
        prop_assert!(chosen.iter().take(expected).all(|tool| tool.chosen));
    }

    /// What is told is the beginning of the whole ranking, also where many tools score the same.
    #[test]
    fn what_is_told_is_the_beginning_of_the_ranking(
        texts in prop::collection::vec(prop::sample::subsequence(vec!["rain", "pets", "orders", "books"], 0..4), 0..60),
        question in prop::sample::subsequence(vec!["rain", "pets", "orders", "books"], 0..4),
        limit in 0_usize..12,
    ) {
        let name = |at: usize| format!("T{at}");
        let tools: Vec<_> =
            texts.iter().enumerate().map(|(at, words)| (tool(&name(at), &words.join(" "), None), ToolBackground::default())).collect();
        let (index, question) = (index(&tools), question.join(" "));
        let most = (2 * limit).max(limit + 3);
        let ranked = index.rank(&question, None, Merge::default());
        let mut expected: Vec<_> = ranked.into_iter().filter(|tool| tool.score > 0.0).take(most).collect();
        let options = ChoiceOptions { limit, ..ChoiceOptions::default() };
        for (at, tool) in expected.iter_mut().enumerate() {
            tool.chosen = at < limit && tool.score >= options.least_by_words;
        }
        prop_assert_eq!(index.choose(&question, None, &options), expected);
    }
}
