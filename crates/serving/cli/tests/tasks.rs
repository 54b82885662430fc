//! `autoact tasks` against a gateway that says what a test tells it.
#![allow(clippy::unwrap_used)] // tests

use std::process::{Command, Output};

use autoact_wire::testing::{self, GatewayStub};
use autoact_wire::v1;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

/// A gateway that has every task but a few.
struct Scripted;

/// What the gateway says of a task's id.
fn there(id: &str) -> Result<(), Status> {
    match id {
        "not-there" => Err(Status::not_found("there is no task `not-there`")),
        "no id" => Err(Status::invalid_argument("`no id` is no id of a task")),
        _ => Ok(()),
    }
}

#[tonic::async_trait]
impl GatewayStub for Scripted {
    async fn delete_task(&self, request: Request<v1::DeleteTaskRequest>) -> Result<Response<v1::DeleteTaskResponse>, Status> {
        there(&request.into_inner().task_id)?;
        Ok(Response::new(v1::DeleteTaskResponse::default()))
    }

    async fn pause_task(&self, request: Request<v1::PauseTaskRequest>) -> Result<Response<v1::PauseTaskResponse>, Status> {
        let v1::PauseTaskRequest { task_id, .. } = request.into_inner();
        there(&task_id)?;
        let task = v1::Task { task_id, state: v1::TaskState::Paused as i32, ..v1::Task::default() };
        Ok(Response::new(v1::PauseTaskResponse { task: Some(task) }))
    }
}

/// Runs `autoact tasks` with these arguments.
async fn tasks(arguments: &[&str]) -> Output {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let service = testing::gateway(Scripted);
    tokio::spawn(tonic::transport::Server::builder().add_service(service).serve_with_incoming(TcpListenerStream::new(listener)));
    let mut command = Command::new(env!("CARGO_BIN_EXE_autoact"));
    command.args(["--gateway", &address, "tasks"]).args(arguments).env("NO_COLOR", "1");
    tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap()
}

fn said(output: &Output) -> (Option<i32>, Vec<&str>, Vec<&str>) {
    let lines = |bytes| std::str::from_utf8(bytes).unwrap().lines().collect();
    (output.status.code(), lines(&output.stdout), lines(&output.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn several_tasks_are_deleted_and_a_failure_ends_none_of_the_others() {
    let output = tasks(&["delete", "a", "no id", "b", "not-there", "c"]).await;
    let (code, done, failed) = said(&output);
    assert_eq!((code, done), (Some(64), vec!["a deleted", "b deleted", "c deleted"]), "{failed:?}");
    assert_eq!(failed, ["error: no id: `no id` is no id of a task", "error: not-there: there is no task `not-there`"]);
    assert_eq!(said(&tasks(&["delete", "a", "b"]).await), (Some(0), vec!["a deleted", "b deleted"], vec![]));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_task_fails_as_it_did_and_none_is_a_mistake() {
    let (output, none) = (tasks(&["delete", "not-there"]).await, tasks(&["delete"]).await);
    assert_eq!(said(&output), (Some(1), vec![], vec!["error: there is no task `not-there`"]));
    assert_eq!(none.status.code(), Some(64));
}

#[tokio::test(flavor = "multi_thread")]
async fn several_tasks_are_paused_for_one_reason() {
    let output = tasks(&["pause", "not-there", "a", "b", "--reason", "a holiday"]).await;
    let (code, done, failed) = said(&output);
    assert_eq!((code, done.len(), failed.len()), (Some(1), 2, 1), "{done:?} {failed:?}");
    assert!(done[0].starts_with("a paused") && done[1].starts_with("b paused"), "{done:?}");
}
