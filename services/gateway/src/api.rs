//! `autoact.v1.Gateway`

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use autoact_proto::status::to_status;
use autoact_proto::v1;
use autoact_proto::v1::gateway_server::{Gateway as GatewayApi, GatewayServer};
use autoact_trajectory::{Task, TaskId};
use futures::{Stream, StreamExt};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use crate::cancel::{TaskError, cancel, load};
use crate::list::list;
use crate::run::Shared;
use crate::submit::{SubmitError, Submitter};
use crate::watch::{follow, watch};

/// The gRPC service.
pub(crate) struct Api {
    pub(crate) shared: Arc<Shared>,
    pub(crate) submitter: Submitter,
    /// Nothing runs here any more: streams end.
    pub(crate) leaving: CancellationToken,
}

impl Api {
    /// The service with the message limits every service has.
    pub(crate) fn service(self) -> GatewayServer<Api> {
        autoact_proto::limited!(GatewayServer::new(self))
    }

    async fn submit(&self, request: Option<v1::SubmitTaskRequest>) -> Result<Task, Status> {
        let received = Instant::now();
        let request = request.ok_or_else(|| to_status(&SubmitError::NoTask))?;
        self.submitter.submit(request, received).await.map_err(|error| to_status(&error))
    }
}

type Responses<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

fn duration(duration: Duration) -> prost_types::Duration {
    // more than a request can last
    duration.try_into().unwrap_or_default()
}

fn id(text: &str) -> Result<TaskId, Status> {
    text.parse().map_err(|error| to_status(&TaskError::Id(error)))
}

fn answer(task: Result<Task, TaskError>) -> Result<Option<v1::Task>, Status> {
    task.map(|task| Some((&task).into())).map_err(|error| to_status(&error))
}

#[tonic::async_trait]
impl GatewayApi for Api {
    async fn submit_task(&self, request: Request<v1::SubmitTaskRequest>) -> Result<Response<v1::SubmitTaskResponse>, Status> {
        let task = self.submit(Some(request.into_inner())).await?;
        Ok(Response::new(v1::SubmitTaskResponse { task: Some((&task).into()) }))
    }

    type WatchTaskStream = Responses<v1::WatchTaskResponse>;

    async fn watch_task(&self, request: Request<v1::WatchTaskRequest>) -> Result<Response<Self::WatchTaskStream>, Status> {
        let v1::WatchTaskRequest { task_id, after_sequence } = request.into_inner();
        let events = watch(&self.shared, id(&task_id)?, after_sequence, self.leaving.clone()).await;
        let events = events.map_err(|error| to_status(&error))?;
        Ok(Response::new(Box::pin(events.map(|event| Ok(v1::WatchTaskResponse { event: Some(event?) })))))
    }

    type AskStream = Responses<v1::AskResponse>;

    async fn ask(&self, request: Request<v1::AskRequest>) -> Result<Response<Self::AskStream>, Status> {
        let received = Instant::now();
        let task = self.submit(request.into_inner().task).await?;
        let accepted = duration(received.elapsed());
        let events = follow(&self.shared, task.id().clone(), 0, self.leaving.clone());
        let responses = events.map(move |event| {
            Ok(v1::AskResponse { event: Some(event?), elapsed: Some(duration(received.elapsed())), accepted: Some(accepted) })
        });
        Ok(Response::new(Box::pin(responses)))
    }

    async fn get_task(&self, request: Request<v1::GetTaskRequest>) -> Result<Response<v1::GetTaskResponse>, Status> {
        let task = load(&self.shared, &id(&request.into_inner().task_id)?).await;
        Ok(Response::new(v1::GetTaskResponse { task: answer(task)? }))
    }

    async fn list_tasks(&self, request: Request<v1::ListTasksRequest>) -> Result<Response<v1::ListTasksResponse>, Status> {
        list(&self.shared, request.into_inner()).await.map(Response::new).map_err(|error| to_status(&error))
    }

    async fn cancel_task(&self, request: Request<v1::CancelTaskRequest>) -> Result<Response<v1::CancelTaskResponse>, Status> {
        let task = cancel(&self.shared, &id(&request.into_inner().task_id)?).await;
        Ok(Response::new(v1::CancelTaskResponse { task: answer(task)? }))
    }
}
