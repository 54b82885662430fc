//! `autoact.memory.v1.Memory` over the memories.

use std::time::{Duration, Instant};

use autoact_access::Role;
use autoact_wire::memory_v1;
use autoact_wire::memory_v1::memory_server::{Memory as MemoryApi, MemoryServer};
use autoact_wire::memory_v1::remember_request::Memory as Given;
use autoact_wire::status::{ServiceError, to_status};
use tonic::{Code, Request, Response, Status};

use crate::convert;
use crate::door::admit;
use crate::memories::Memories;
use crate::remembered::Memory;
use crate::request::{self, List, RequestError};
use crate::store::StoreError;

/// A store that has not answered by then does not answer.
const LONGEST_CALL: Duration = Duration::from_secs(10);
/// Forgetting writes files again: a large tenant's take longer.
const LONGEST_FORGETTING: Duration = Duration::from_secs(60);

/// The gRPC service; [`service`] makes it.
pub struct MemoryRpc {
    memories: Memories,
}

/// The gRPC service over the memories, with the message limits every service has.
pub fn service(memories: Memories) -> MemoryServer<MemoryRpc> {
    autoact_wire::limited!(MemoryServer::new(MemoryRpc { memories }))
}

#[tonic::async_trait]
impl MemoryApi for MemoryRpc {
    async fn remember(&self, request: Request<memory_v1::RememberRequest>) -> Result<Response<memory_v1::RememberResponse>, Status> {
        let request = admit(request, Role::Operate, |request| match &mut request.memory {
            Some(Given::Task(task)) => Some(&mut task.tenant),
            Some(Given::Turn(turn)) => Some(&mut turn.tenant),
            None => None,
        })?;
        let memory = request::memory(request).map_err(refused)?;
        let stored = self.call("remember", LONGEST_CALL, self.memories.remember(memory)).await?;
        Ok(Response::new(memory_v1::RememberResponse { stored }))
    }

    async fn recall(&self, request: Request<memory_v1::RecallRequest>) -> Result<Response<memory_v1::RecallResponse>, Status> {
        let (query, around) = request::query(admit(request, Role::Ask, |request| Some(&mut request.tenant))?).map_err(refused)?;
        let memories = self.call("recall", LONGEST_CALL, self.memories.recall(query, around)).await?;
        Ok(Response::new(memory_v1::RecallResponse { memories: memories.into_iter().map(convert::recalled).collect() }))
    }

    async fn list_memories(
        &self,
        request: Request<memory_v1::ListMemoriesRequest>,
    ) -> Result<Response<memory_v1::ListMemoriesResponse>, Status> {
        let request = admit(request, Role::Ask, |request| Some(&mut request.tenant))?;
        let List { tenant, kinds, conversation, size, after } = request::list(request).map_err(refused)?;
        let listing = self.memories.list(&tenant, &kinds, &conversation, size, after);
        let memories = self.call("list", LONGEST_CALL, listing).await?;
        let last = memories.last().filter(|_| memories.len() == size).map(Memory::place);
        Ok(Response::new(memory_v1::ListMemoriesResponse {
            next_page_token: last.as_ref().map(request::page_token).unwrap_or_default(),
            memories: memories.into_iter().map(convert::stored).collect(),
        }))
    }

    async fn get_memory(&self, request: Request<memory_v1::GetMemoryRequest>) -> Result<Response<memory_v1::GetMemoryResponse>, Status> {
        let key = request::key(admit(request, Role::Ask, |request| Some(&mut request.tenant))?).map_err(refused)?;
        let memory = self.call("get", LONGEST_CALL, self.memories.get(key)).await?;
        let memory = memory.ok_or(RequestError::NoMemory).map_err(refused)?;
        Ok(Response::new(memory_v1::GetMemoryResponse { memory: Some(convert::stored(memory)) }))
    }

    async fn forget(&self, request: Request<memory_v1::ForgetRequest>) -> Result<Response<memory_v1::ForgetResponse>, Status> {
        let forgetting = request::forgetting(admit(request, Role::Operate, |request| Some(&mut request.tenant))?).map_err(refused)?;
        let count = self.call("forget", LONGEST_FORGETTING, self.memories.forget(&forgetting)).await?;
        Ok(Response::new(memory_v1::ForgetResponse { forgotten: count > 0, count: count as u64 }))
    }
}

fn refused(error: RequestError) -> Status {
    to_status(&error)
}

impl MemoryRpc {
    /// Waits for the store, not for ever, and measures it.
    async fn call<T>(
        &self,
        operation: &'static str,
        limit: Duration,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, Status> {
        let started = Instant::now();
        let result = match tokio::time::timeout(limit, work).await {
            Ok(result) => result,
            Err(_) => Err(StoreError::TooSlow { after: limit }),
        };
        let outcome = if result.is_ok() { "ok" } else { "error" };
        metrics::histogram!("autoact_memory_store_seconds",
            "store" => self.memories.store(), "operation" => operation, "outcome" => outcome)
        .record(started.elapsed().as_secs_f64());
        result.map_err(|error| {
            if error.code() == Code::Internal {
                tracing::error!(operation, %error, "the store failed");
            }
            to_status(&error)
        })
    }
}
