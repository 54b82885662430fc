//! Histories and questions that outgrow the models' contexts, over real gRPC and a real bus.

use crate::common::scripted::{Group, Script, steps};
use crate::common::*;
use autoact_wire::status::{prompt_size, reason};
use autoact_wire::v1;
use autoact_wire::v1::trajectory_event::Body;
use tonic::Code;

/// Tokens of a prompt, which are bytes here: the fixed parts and a few observations.
const LIMIT_TOKENS: u32 = 1500;
/// Steps before the answer.
const STEPS: usize = 12;

fn seen(trajectory: &v1::Trajectory) -> usize {
    trajectory.left_out as usize + steps(trajectory).len()
}

/// Reads page after page, and answers.
fn script() -> Script {
    Script {
        plan: Box::new(|trajectory| if seen(trajectory) < STEPS { "Retrieve".into() } else { "Finish".into() }),
        params: Box::new(|trajectory| match steps(trajectory).last() {
            Some(step) if step.tool == "Finish" => "France".into(),
            _ => format!("page {}. {}", seen(trajectory), "It is a long page. ".repeat(20)),
        }),
        limit: LIMIT_TOKENS,
        ..Script::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_history_is_shortened_and_kept() {
    let mut world = world(Group::start(script()).await).await;
    let limits = v1::Limits { max_steps: Some(20), ..v1::Limits::default() };
    let request = v1::SubmitTaskRequest { limits: Some(limits), ..named("long", "Where is it?") };
    let events = ask(&mut world.client, request).await;
    let shortened: Vec<_> =
        events.iter().filter_map(|event| if let Some(Body::Shortened(body)) = &event.body { Some(body) } else { None }).collect();
    assert!(!shortened.is_empty() && shortened.len() < STEPS, "{:?}", names(&events));
    assert!(shortened.iter().all(|body| body.tokens > body.limit && body.limit == LIMIT_TOKENS), "{shortened:?}");
    let Some(Body::Finished(finished)) = &events.last().unwrap().body else { panic!("{:?}", names(&events)) };
    assert!(finished.approved && finished.answer == "France", "{finished:?}");
    // the task has every turn as it was
    let request = v1::GetTaskRequest { task_id: "long".into(), ..v1::GetTaskRequest::default() };
    let task = world.client.get_task(request).await.unwrap().into_inner().task.unwrap();
    assert_eq!(task.turns.len(), STEPS + 2);
    assert!(!format!("{:?}", task.turns).contains("left out"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_cannot_fit_is_refused_with_the_figures() {
    let mut world = world(Group::start(script()).await).await;
    let refused = world.client.submit_task(task(&"Where is it? ".repeat(200))).await.unwrap_err();
    assert_eq!((refused.code(), reason(&refused).as_deref()), (Code::InvalidArgument, Some("PROMPT_TOO_LONG")));
    let size = prompt_size(&refused).unwrap();
    assert!(size.limit == LIMIT_TOKENS as usize && size.tokens > 2600, "{size:?}");
    for figure in [size.tokens, size.limit] {
        assert!(refused.message().contains(&figure.to_string()), "{}", refused.message());
    }
    assert!(world.client.submit_task(task("Where is it?")).await.is_ok());
}
