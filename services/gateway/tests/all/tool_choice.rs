//! A library that is too large for a prompt: which tools a task is given, once, and who says so.

use crate::common::scripted::{Group, Script};
use crate::common::*;
use autoact_wire::v1;
use autoact_wire::v1::trajectory_event::Body;
use tonic::Code;

const CITIES: [&str; 12] = ["Oslo", "Lima", "Bonn", "Kyoto", "Quito", "Perth", "Turin", "Cairo", "Minsk", "Accra", "Dakar", "Sucre"];

/// A tool for each city.
fn script() -> Script {
    let optional = CITIES.iter().map(|city| (format!("{city}Trams"), format!("When the next tram comes in {city}."))).collect();
    Script { optional, ..Script::default() }
}

fn choice(events: &[v1::TrajectoryEvent]) -> (Vec<&str>, Option<&v1::ToolChoice>) {
    let Some(Body::Submitted(submitted)) = &events[0].body else { panic!("{events:?}") };
    (submitted.tools.iter().map(|tool| tool.name.as_str()).collect(), submitted.tool_choice.as_ref())
}

fn chosen(choice: &v1::ToolChoice) -> Vec<&str> {
    choice.ranked.iter().filter(|tool| tool.chosen).map(|tool| tool.name.as_str()).collect()
}

#[tokio::test]
async fn a_task_has_the_tools_that_fit_its_question() {
    let mut world = world_with(Group::start(script()).await, |config| config.tool_choice.least_by_words = 0.5).await;
    let events = ask(&mut world.client, named("a", "When is the next tram in Kyoto?")).await;
    let (tools, choice) = choice(&events);
    assert_eq!(tools, ["Search", "Retrieve", "Send", "Finish", "KyotoTrams"]);
    let choice = choice.unwrap();
    assert_eq!((choice.among, chosen(choice)), (12, vec!["KyotoTrams"]));
    // the others are told with their scores, in the order of their scores
    assert!(choice.ranked.len() > 8 && choice.ranked.is_sorted_by(|a, b| a.score >= b.score), "{choice:?}");
    assert!(choice.ranked.iter().all(|tool| tool.meaning.is_none() && tool.words == tool.score));
    // the task says the same, its short form does not
    assert_eq!(get(&mut world.client, "a").await.tool_choice.as_ref(), Some(choice));
    let basic = v1::GetTaskRequest { task_id: "a".into(), view: v1::TaskView::Basic as i32 };
    assert_eq!(world.client.get_task(basic).await.unwrap().into_inner().task.unwrap().tool_choice, None);
    // nothing fits: the task has what every task has
    let events = ask(&mut world.client, task("Who painted the Mona Lisa?")).await;
    let (tools, choice) = self::choice(&events);
    assert_eq!((tools, chosen(choice.unwrap())), (vec!["Search", "Retrieve", "Send", "Finish"], vec![]));
}

#[tokio::test]
async fn who_names_tools_has_those() {
    let mut world = world(Group::start(script()).await).await;
    let request = v1::SubmitTaskRequest { tools: vec!["LimaTrams".into()], ..task("When is the next tram in Kyoto?") };
    let events = ask(&mut world.client, request).await;
    assert_eq!(choice(&events), (vec!["Finish", "LimaTrams"], None));
    let request = v1::SubmitTaskRequest { tools: vec!["LimaTram".into()], ..task("q") };
    let status = world.client.submit_task(request).await.unwrap_err();
    assert!(status.message().contains("did you mean `LimaTrams`"), "{status:?}");
}

#[tokio::test]
async fn a_small_library_is_given_as_a_whole() {
    let mut world = world_with(Group::start(script()).await, |config| config.tool_choice.above = 12).await;
    let events = ask(&mut world.client, task("Who painted the Mona Lisa?")).await;
    let (tools, choice) = choice(&events);
    assert_eq!((tools.len(), choice), (16, None));
}

#[tokio::test]
async fn a_choice_can_be_looked_at() {
    let mut world = world_with(Group::start(script()).await, |config| config.tool_choice.least_by_words = 0.0).await;
    let question = "When is the next tram in Kyoto?".to_owned();
    let response = world.client.choose_tools(v1::ChooseToolsRequest { question: question.clone() }).await.unwrap().into_inner();
    let choice = response.tool_choice.unwrap();
    // all have a word of it; at most eight are chosen
    assert_eq!((chosen(&choice).len(), choice.ranked[0].name.as_str(), response.tools.len()), (8, "KyotoTrams", 12));
    // a task has just these
    let events = ask(&mut world.client, task(&question)).await;
    assert_eq!(self::choice(&events).1, Some(&choice));
    let status = world.client.choose_tools(v1::ChooseToolsRequest::default()).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn chosen_tools_give_way_where_there_is_no_room() {
    // one token for each byte: the tools that every task has fit, and some of the others
    let limit = 500;
    let group = Group::start(Script { limit, ..script() }).await;
    let mut world = world_with(group, |config| config.tool_choice.least_by_words = 0.0).await;
    let question = "When is the next tram in Kyoto?";
    let events = ask(&mut world.client, task(question)).await;
    let (tools, choice) = choice(&events);
    let chosen = chosen(choice.unwrap());
    assert!((1..8).contains(&chosen.len()), "{tools:?}");
    assert_eq!((chosen[0], tools.len()), ("KyotoTrams", 4 + chosen.len()));
}
