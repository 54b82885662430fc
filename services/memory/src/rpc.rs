//! `autoact.memory.v1.Memory` over a store.

use std::sync::Arc;
use std::time::{Duration, Instant};

use autoact_trajectory::{InvalidTenant, Tenant};
use autoact_wire::memory_v1;
use autoact_wire::memory_v1::memory_server::{Memory as MemoryApi, MemoryServer};
use autoact_wire::status::{ServiceError, to_status};
use tonic::{Code, Request, Response, Status};

use crate::remembered::{Kind, Memory, Query, TaskMemory, tenant_of};
use crate::store::{MemoryStore, StoreError};

/// How many memories a call that names no limit gets.
const DEFAULT_LIMIT: u32 = 5;
/// The most anybody gets.
const MOST_MEMORIES: u32 = 100;
/// The longest text of one field: far above a question, far below a message.
const LONGEST_TEXT: usize = 64 * 1024;
/// The longest id; the gateway's task ids have 64 at most.
const LONGEST_ID: usize = 256;
/// A store that has not answered by then does not answer.
const LONGEST_CALL: Duration = Duration::from_secs(10);

/// The gRPC service; [`service`] makes it.
pub struct MemoryRpc {
    store: Arc<dyn MemoryStore>,
}

/// The gRPC service over a store, with the message limits every service has.
pub fn service(store: Arc<dyn MemoryStore>) -> MemoryServer<MemoryRpc> {
    autoact_wire::limited!(MemoryServer::new(MemoryRpc { store }))
}

/// A request that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum RequestError {
    #[error("`{0}` is missing")]
    Missing(&'static str),
    #[error("`{field}` has {length} bytes; at most {most} are allowed")]
    TooLong { field: &'static str, length: usize, most: usize },
    #[error("`limit` is {0}; expected 1 to 100, or 0 for 5")]
    Limit(u32),
    #[error("`{field}` is not valid")]
    Tenant { field: &'static str, source: InvalidTenant },
    #[error("`kind` is {0}; expected `MEMORY_KIND_TASK` (1), the only kind so far")]
    Kind(i32),
}

impl ServiceError for RequestError {
    fn code(&self) -> Code {
        Code::InvalidArgument
    }

    fn reason(&self) -> &'static str {
        match self {
            RequestError::Missing(_) => "FIELD_MISSING",
            RequestError::TooLong { .. } => "FIELD_TOO_LONG",
            RequestError::Limit(_) => "LIMIT_OUT_OF_RANGE",
            RequestError::Tenant { .. } => "BAD_TENANT",
            RequestError::Kind(_) => "UNKNOWN_KIND",
        }
    }

    fn field(&self) -> Option<&'static str> {
        Some(match self {
            RequestError::Missing(field) | RequestError::TooLong { field, .. } | RequestError::Tenant { field, .. } => field,
            RequestError::Limit(_) => "limit",
            RequestError::Kind(_) => "kind",
        })
    }

    fn metadata(&self) -> Vec<(&'static str, String)> {
        match self {
            RequestError::Missing(_) => Vec::new(),
            RequestError::TooLong { length, most, .. } => vec![("value", length.to_string()), ("limit", most.to_string())],
            RequestError::Limit(limit) => vec![("value", limit.to_string()), ("limit", MOST_MEMORIES.to_string())],
            RequestError::Tenant { source, .. } => vec![("value", source.shown().to_owned())],
            RequestError::Kind(kind) => vec![("value", kind.to_string())],
        }
    }
}

#[tonic::async_trait]
impl MemoryApi for MemoryRpc {
    async fn remember(&self, request: Request<memory_v1::RememberRequest>) -> Result<Response<memory_v1::RememberResponse>, Status> {
        let memory = memory(request.into_inner()).map_err(|error| to_status(&error))?;
        self.call("remember", self.store.remember(memory)).await?;
        Ok(Response::new(memory_v1::RememberResponse {}))
    }

    async fn recall(&self, request: Request<memory_v1::RecallRequest>) -> Result<Response<memory_v1::RecallResponse>, Status> {
        let query = query(request.into_inner()).map_err(|error| to_status(&error))?;
        let memories = self.call("recall", self.store.recall(query)).await?;
        Ok(Response::new(memory_v1::RecallResponse { memories: memories.into_iter().map(Into::into).collect() }))
    }

    async fn forget(&self, request: Request<memory_v1::ForgetRequest>) -> Result<Response<memory_v1::ForgetResponse>, Status> {
        let (tenant, kind, id) = forgotten(request.into_inner()).map_err(|error| to_status(&error))?;
        let forgotten = self.call("forget", self.store.forget(tenant, kind, id)).await?;
        Ok(Response::new(memory_v1::ForgetResponse { forgotten }))
    }
}

impl MemoryRpc {
    /// Waits for the store, not for ever, and measures it.
    async fn call<T>(&self, operation: &'static str, work: impl Future<Output = Result<T, StoreError>>) -> Result<T, Status> {
        let started = Instant::now();
        let result = match tokio::time::timeout(LONGEST_CALL, work).await {
            Ok(result) => result,
            Err(_) => Err(StoreError::TooSlow { after: LONGEST_CALL }),
        };
        let outcome = if result.is_ok() { "ok" } else { "error" };
        metrics::histogram!("autoact_memory_store_seconds",
            "store" => self.store.name(), "operation" => operation, "outcome" => outcome)
        .record(started.elapsed().as_secs_f64());
        result.map_err(|error| {
            if error.code() == Code::Internal {
                tracing::error!(operation, %error, "the store failed");
            }
            to_status(&error)
        })
    }
}

fn memory(request: memory_v1::RememberRequest) -> Result<Memory, RequestError> {
    let Some(memory_v1::remember_request::Memory::Task(task)) = request.memory else { return Err(RequestError::Missing("memory")) };
    text("task.task_id", &task.task_id, LONGEST_ID)?;
    text("task.question", &task.question, LONGEST_TEXT)?;
    if task.answer.len() > LONGEST_TEXT {
        return Err(RequestError::TooLong { field: "task.answer", length: task.answer.len(), most: LONGEST_TEXT });
    }
    let tenant = |source| RequestError::Tenant { field: "task.tenant", source };
    Ok(Memory::Task(TaskMemory::try_from(task).map_err(tenant)?))
}

/// Whose memory of which kind and id is to be forgotten.
fn forgotten(request: memory_v1::ForgetRequest) -> Result<(Tenant, Kind, String), RequestError> {
    let memory_v1::ForgetRequest { kind, id, tenant } = request;
    let kind = kind_of(kind)?;
    text("id", &id, LONGEST_ID)?;
    Ok((whose(&tenant)?, kind, id))
}

fn whose(tenant: &str) -> Result<Tenant, RequestError> {
    tenant_of(tenant).map_err(|source| RequestError::Tenant { field: "tenant", source })
}

fn query(request: memory_v1::RecallRequest) -> Result<Query, RequestError> {
    let kind = kind_of(request.kind)?;
    text("query", &request.query, LONGEST_TEXT)?;
    let limit = match request.limit {
        0 => DEFAULT_LIMIT,
        limit if limit <= MOST_MEMORIES => limit,
        limit => return Err(RequestError::Limit(limit)),
    };
    Ok(Query { tenant: whose(&request.tenant)?, kind, text: request.query, limit: limit as usize, approved_only: request.approved_only })
}

fn kind_of(kind: i32) -> Result<Kind, RequestError> {
    match memory_v1::MemoryKind::try_from(kind) {
        Ok(memory_v1::MemoryKind::Task) => Ok(Kind::Task),
        Ok(memory_v1::MemoryKind::Unspecified) | Err(_) => Err(RequestError::Kind(kind)),
    }
}

fn text(field: &'static str, text: &str, most: usize) -> Result<(), RequestError> {
    if text.trim().is_empty() {
        return Err(RequestError::Missing(field));
    }
    if text.len() > most {
        return Err(RequestError::TooLong { field, length: text.len(), most });
    }
    Ok(())
}
