//! `autoact.v1.Gateway`

mod convert;
mod errors;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use autoact_access::{Principal, principal};
use autoact_service::OnSlowReader;
use autoact_telemetry::propagate;
use autoact_trajectory::{Task, TaskId};
use autoact_wire::status::to_status;
use autoact_wire::v1;
use autoact_wire::v1::gateway_server::{Gateway as GatewayApi, GatewayServer};
use autoact_wire::v1::get_artifact_response::Part;
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use prost::Message;
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};

use crate::doors::grpc::errors::RequestError;
use crate::tasks::{Application, TaskError, Watched, WatchedStream};

/// The gRPC service.
pub(crate) struct Door {
    application: Arc<Application>,
}

/// The service with the message limits every service has.
pub(crate) fn service(application: Arc<Application>) -> GatewayServer<Door> {
    autoact_wire::limited!(GatewayServer::new(Door { application }))
}

/// Bytes of an artifact in one message.
const PIECE_BYTES: usize = 64 * 1024;

type Responses<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

fn duration(duration: Duration) -> prost_types::Duration {
    // more than a request can last
    duration.try_into().unwrap_or_default()
}

fn id(text: &str) -> Result<TaskId, Status> {
    text.parse().map_err(|error| to_status(&RequestError::Id(error)))
}

fn task(task: Result<Task, TaskError>) -> Result<v1::Task, Status> {
    task.map(|task| (&task).into()).map_err(|error| to_status(&error))
}

/// An event or words as they travel. Words that cannot be read are passed over: they are hints.
fn piece(watched: Watched) -> (Option<v1::TrajectoryEvent>, Option<v1::TaskDelta>) {
    match watched {
        Watched::Event(event) => (Some(event.as_ref().into()), None),
        Watched::Words(words) => (None, v1::TaskDelta::decode(words).ok()),
    }
}

/// A stream of a task, with what its client is told if it reads too slowly: where to go on.
fn streamed<T: 'static>(
    id: TaskId,
    after: u64,
    watched: WatchedStream,
    response: impl Fn(Option<v1::TrajectoryEvent>, Option<v1::TaskDelta>) -> T + Send + 'static,
) -> Response<Responses<T>> {
    // what was taken from the stream was sent, whatever becomes of the stream
    let last = Arc::new(AtomicU64::new(after));
    let told = Arc::clone(&last);
    let responses = watched.map(move |watched| {
        let (event, delta) = piece(watched.map_err(|error| to_status(&error))?);
        if let Some(event) = &event {
            last.store(event.sequence, Ordering::Relaxed);
        }
        Ok(response(event, delta))
    });
    let slow = move || to_status(&TaskError::SlowReader { task: id.clone(), after: told.load(Ordering::Relaxed) });
    let mut response = Response::new(Box::pin(responses) as Responses<T>);
    response.extensions_mut().insert(OnSlowReader(Arc::new(slow)));
    response
}

impl Door {
    /// Accepts a task; `metadata` names the trace that the request came in.
    async fn submit(&self, who: &Principal, metadata: &MetadataMap, request: Option<v1::SubmitTaskRequest>) -> Result<Task, Status> {
        let received = Instant::now();
        let request = request.ok_or_else(|| to_status(&RequestError::Missing("task")))?;
        let trace_id = propagate::trace_id(metadata).unwrap_or_default();
        let submission = convert::submission(request, &self.application.limits, trace_id).map_err(|error| to_status(&error))?;
        self.application.submit(who, submission, received).await.map_err(|error| to_status(&error))
    }
}

#[tonic::async_trait]
impl GatewayApi for Door {
    async fn submit_task(&self, request: Request<v1::SubmitTaskRequest>) -> Result<Response<v1::SubmitTaskResponse>, Status> {
        let who = principal(&request)?;
        let (metadata, _, request) = request.into_parts();
        let task = self.submit(&who, &metadata, Some(request)).await?;
        Ok(Response::new(v1::SubmitTaskResponse { task: Some((&task).into()) }))
    }

    type WatchTaskStream = Responses<v1::WatchTaskResponse>;

    async fn watch_task(&self, request: Request<v1::WatchTaskRequest>) -> Result<Response<Self::WatchTaskStream>, Status> {
        let who = principal(&request)?;
        let v1::WatchTaskRequest { task_id, after_sequence, deltas } = request.into_inner();
        let id = id(&task_id)?;
        let watched = self.application.watch(&who, &id, after_sequence, deltas).await.map_err(|error| to_status(&error))?;
        Ok(streamed(id, after_sequence, watched, |event, delta| v1::WatchTaskResponse { event, delta }))
    }

    type AskStream = Responses<v1::AskResponse>;

    async fn ask(&self, request: Request<v1::AskRequest>) -> Result<Response<Self::AskStream>, Status> {
        let received = Instant::now();
        let who = principal(&request)?;
        let (metadata, _, request) = request.into_parts();
        let v1::AskRequest { task, after_sequence, deltas } = request;
        let task = self.submit(&who, &metadata, task).await?;
        let accepted = duration(received.elapsed());
        let watched = match after_sequence {
            0 => self.application.follow(&who, task.id(), 0, deltas).await,
            after => self.application.watch(&who, task.id(), after, deltas).await,
        };
        let watched = watched.map_err(|error| to_status(&error))?;
        let response = move |event, delta| {
            let elapsed = Some(duration(received.elapsed()));
            v1::AskResponse { event, delta, elapsed, accepted: Some(accepted) }
        };
        Ok(streamed(task.id().clone(), after_sequence, watched, response))
    }

    async fn get_task(&self, request: Request<v1::GetTaskRequest>) -> Result<Response<v1::GetTaskResponse>, Status> {
        let who = principal(&request)?;
        let request = request.into_inner();
        let mut found = task(self.application.get(&who, &id(&request.task_id)?).await)?;
        if request.view() == v1::TaskView::Basic {
            found.turns.clear();
            found.tools.clear();
            found.tool_choice = None;
        }
        Ok(Response::new(v1::GetTaskResponse { task: Some(found) }))
    }

    async fn list_tasks(&self, request: Request<v1::ListTasksRequest>) -> Result<Response<v1::ListTasksResponse>, Status> {
        let who = principal(&request)?;
        let list = convert::list(request.into_inner()).map_err(|error| to_status(&error))?;
        let listed = self.application.list(&who, &list).await.map_err(|error| to_status(&error))?;
        Ok(Response::new(v1::ListTasksResponse {
            tasks: listed.tasks.into_iter().map(|line| convert::line(line, &who.tenant)).collect(),
            next_page_token: listed.next.map(|next| convert::page_token(list.order, next)).unwrap_or_default(),
        }))
    }

    async fn cancel_task(&self, request: Request<v1::CancelTaskRequest>) -> Result<Response<v1::CancelTaskResponse>, Status> {
        let who = principal(&request)?;
        let ended = task(self.application.cancel(&who, &id(&request.into_inner().task_id)?).await)?;
        Ok(Response::new(v1::CancelTaskResponse { task: Some(ended) }))
    }

    async fn pause_task(&self, request: Request<v1::PauseTaskRequest>) -> Result<Response<v1::PauseTaskResponse>, Status> {
        let who = principal(&request)?;
        let v1::PauseTaskRequest { task_id, reason } = request.into_inner();
        let paused = task(self.application.pause(&who, &id(&task_id)?, &reason).await)?;
        Ok(Response::new(v1::PauseTaskResponse { task: Some(paused) }))
    }

    async fn resume_task(&self, request: Request<v1::ResumeTaskRequest>) -> Result<Response<v1::ResumeTaskResponse>, Status> {
        let who = principal(&request)?;
        let resumed = task(self.application.resume(&who, &id(&request.into_inner().task_id)?).await)?;
        Ok(Response::new(v1::ResumeTaskResponse { task: Some(resumed) }))
    }

    async fn give_input(&self, request: Request<v1::GiveInputRequest>) -> Result<Response<v1::GiveInputResponse>, Status> {
        let who = principal(&request)?;
        let request = request.into_inner();
        let task_id = id(&request.task_id)?;
        let input = convert::input(request).map_err(|error| to_status(&error))?;
        let answered = task(self.application.give_input(&who, &task_id, &input).await)?;
        Ok(Response::new(v1::GiveInputResponse { task: Some(answered) }))
    }

    async fn retry_task(&self, request: Request<v1::RetryTaskRequest>) -> Result<Response<v1::RetryTaskResponse>, Status> {
        let received = Instant::now();
        let who = principal(&request)?;
        let (metadata, _, request) = request.into_parts();
        let trace_id = propagate::trace_id(&metadata).unwrap_or_default();
        let retry = convert::retry(request, trace_id).map_err(|error| to_status(&error))?;
        let task = self.application.retry(&who, retry, received).await.map_err(|error| to_status(&error))?;
        Ok(Response::new(v1::RetryTaskResponse { task: Some((&task).into()) }))
    }

    async fn delete_task(&self, request: Request<v1::DeleteTaskRequest>) -> Result<Response<v1::DeleteTaskResponse>, Status> {
        let who = principal(&request)?;
        let deleted = self.application.delete(&who, &id(&request.into_inner().task_id)?).await;
        deleted.map_err(|error| to_status(&error))?;
        Ok(Response::new(v1::DeleteTaskResponse {}))
    }

    type GetArtifactStream = Responses<v1::GetArtifactResponse>;

    async fn get_artifact(&self, request: Request<v1::GetArtifactRequest>) -> Result<Response<Self::GetArtifactStream>, Status> {
        let who = principal(&request)?;
        let v1::GetArtifactRequest { task_id, name, step } = request.into_inner();
        let found = self.application.artifact(&who, &id(&task_id)?, &name, step).await;
        let (artifact, data) = found.map_err(|error| to_status(&error))?;
        let part = |part| Ok(v1::GetArtifactResponse { part: Some(part) });
        let first = part(Part::Artifact((&artifact).into()));
        let data = Bytes::from(data);
        let pieces = (0..data.len()).step_by(PIECE_BYTES).map(move |at| {
            let piece = data.slice(at..data.len().min(at + PIECE_BYTES));
            part(Part::Data(piece.to_vec()))
        });
        Ok(Response::new(Box::pin(stream::iter(std::iter::once(first).chain(pieces)))))
    }

    async fn list_tools(&self, request: Request<v1::ListToolsRequest>) -> Result<Response<v1::ListToolsResponse>, Status> {
        let tools = self.application.tools(&principal(&request)?).await.map_err(|error| to_status(&error))?;
        Ok(Response::new(v1::ListToolsResponse { tools: tools.tools.iter().map(Into::into).collect() }))
    }

    async fn choose_tools(&self, request: Request<v1::ChooseToolsRequest>) -> Result<Response<v1::ChooseToolsResponse>, Status> {
        let who = principal(&request)?;
        let v1::ChooseToolsRequest { question } = request.into_inner();
        let selected = self.application.choose_tools(&who, &question).await.map_err(|error| to_status(&error))?;
        let tools = selected.tools.into_iter().map(|tool| tool.name).collect();
        Ok(Response::new(v1::ChooseToolsResponse { tools, tool_choice: selected.choice.as_ref().map(Into::into) }))
    }
}
