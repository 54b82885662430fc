//! What the built-in tools look into: the group's own corpus, and the collections that a task names.

use std::sync::Arc;

use autoact_tools::{
    Caller, CollectionError, Collections, Corpus, Knowledge, Observation, Opened, Page, Place, PlacedPage, Scope, ToolLibrary,
};
use autoact_trajectory::{Action, TaskContext, Trajectory};

/// Collections for tests: each has one page, titled `Rules: Travel`, that names its collection.
struct OnePage;

fn page(collection: &str) -> PlacedPage {
    PlacedPage {
        page: Page { title: "Rules: Travel".into(), text: format!("The limit of {collection} is 140 euros.") },
        place: Place { collection: collection.into(), file: "rules.md".into(), heading: Some("Travel".into()), page: Some(2), start: 100 },
    }
}

impl Collections for OnePage {
    fn search(&self, scope: Scope<'_>, _: &str, limit: usize) -> Result<Vec<PlacedPage>, CollectionError> {
        assert_eq!(scope.tenant, "acme");
        if scope.collections.contains(&"none".to_owned()) {
            return Err(CollectionError::Refused("there is no collection `none`".into()));
        }
        Ok(scope.collections.iter().map(|name| page(name)).take(limit).collect())
    }

    fn open(&self, scope: Scope<'_>, name: &str, _: usize) -> Result<Opened, CollectionError> {
        if !name.to_lowercase().ends_with("travel") {
            return Ok(Opened::Unknown { similar: vec!["Rules: Travel".into()] });
        }
        let [first, others @ ..] = scope.collections else { panic!("no collection") };
        let also = others.iter().map(|name| page(name).place).collect();
        Ok(Opened::Page { page: page(first), by_title: name.contains(':'), also })
    }
}

fn library() -> ToolLibrary {
    let corpus = Corpus::from_pages(vec![Page { title: "Travel".into(), text: "Travel is a word.".into() }]).unwrap();
    ToolLibrary::bundled(Knowledge::new(Some(("atlas".into(), Arc::new(corpus))), Some(Arc::new(OnePage)))).unwrap()
}

fn observe(knowledge: &[&str], tool: &str, params: &str) -> Observation {
    let context = TaskContext { knowledge: knowledge.iter().map(|name| (*name).to_owned()).collect(), ..TaskContext::default() };
    let trajectory = Trajectory { context, ..Trajectory::default() };
    let action = Action { tool: tool.into(), params: params.into() };
    library().execute_as(Caller { tenant: "acme", key: "", deadline: None }, &action, &trajectory)
}

#[test]
fn a_task_that_names_nothing_has_the_corpus_and_one_that_does_has_what_it_names() {
    assert_eq!(observe(&[], "Retrieve", "Travel").text, "Travel is a word.");
    assert_eq!(observe(&["handbook"], "Search", "travel").text, "Rules: Travel: The limit of handbook is 140 euros.");
    let both = observe(&["handbook", "atlas"], "Search", "travel").text;
    assert_eq!(both, "Rules: Travel: The limit of handbook is 140 euros. | Travel: Travel is a word.");
    let refused = observe(&["none"], "Search", "travel");
    assert!(refused.is_error && refused.text.contains("there is no collection `none`"), "{}", refused.text);
}

#[test]
fn calculate_knows_names_by_the_pages_of_the_task() {
    assert_eq!(observe(&["handbook"], "Calculate", "Travel = Rules: Travel").text, "true");
    assert_eq!(observe(&[], "Calculate", "Travel = Rules: Travel").text, "false");
    assert_eq!(observe(&["handbook"], "Calculate", "Travel = Hotels").text, "false");
    // where there are no pages, texts are texts
    let bare = ToolLibrary::bundled(Knowledge::new(None, None)).unwrap();
    let action = Action { tool: "Calculate".into(), params: "Travel = Rules: Travel".into() };
    let observation = bare.execute(&action, &Trajectory::default());
    assert_eq!((observation.text.as_str(), observation.is_error), ("false", false));
}

#[test]
fn a_slip_means_a_segment_that_the_question_names() {
    let ask = |question: &str, params: &str| {
        let context = TaskContext { knowledge: vec!["handbook".to_owned()], ..TaskContext::default() };
        let trajectory = Trajectory { question: question.into(), context, ..Trajectory::default() };
        let action = Action { tool: "Retrieve".into(), params: params.into() };
        library().execute_as(Caller { tenant: "acme", key: "", deadline: None }, &action, &trajectory).text
    };
    assert_eq!(ask("What is the limit of Travel?", "Trfoel"), "Rules: Travel: The limit of handbook is 140 euros.");
    assert_eq!(ask("What is the limit of Meals?", "Mfoels"), "No page is titled Mfoels. Similar: Rules: Travel.");
}

#[test]
fn the_first_goes_before_the_others_and_names_them() {
    let opened = observe(&["handbook", "wiki", "atlas"], "Retrieve", "Travel").text;
    assert_eq!(opened, "Travel: The limit of handbook is 140 euros. (Also in: wiki/rules.md; the group's own pages.)");
    assert_eq!(observe(&["atlas", "wiki"], "Retrieve", "Travel").text, "Travel is a word.");
    assert_eq!(observe(&["wiki"], "Retrieve", "Hotels").text, "No page is titled Hotels. Similar: Rules: Travel.");
}

#[test]
fn a_heading_is_a_name_and_another_name_shows_the_title() {
    assert_eq!(observe(&["handbook"], "Retrieve", "travel").text, "Travel: The limit of handbook is 140 euros.");
    assert_eq!(observe(&["handbook"], "Retrieve", "about travel").text, "Rules: Travel: The limit of handbook is 140 euros.");
    let source = &observe(&["handbook"], "Retrieve", "Rules: Travel").sources[0];
    assert_eq!((source.file.as_str(), source.page, source.start, source.end), ("rules.md", Some(2), 100, 135));
}
