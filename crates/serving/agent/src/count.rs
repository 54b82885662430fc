//! Counts the tokens of an agent's prompts for the gateway, which has no tokenizer.

use std::sync::Arc;

use autoact_model::GenerateError;
use autoact_trajectory::Trajectory;
use autoact_wire::agents_v1::token_counter_server::{TokenCounter, TokenCounterServer};
use autoact_wire::agents_v1::{CountTokensRequest, CountTokensResponse};
use autoact_wire::status::to_status;
use tokio::runtime::Handle;
use tonic::{Request, Response, Status};

use crate::agent::Agent;
use crate::error::AgentError;

/// The service that counts for `agent`.
pub(crate) fn token_counter(agent: Arc<Agent>) -> TokenCounterServer<impl TokenCounter> {
    autoact_wire::limited!(TokenCounterServer::new(Counter { agent }))
}

struct Counter {
    agent: Arc<Agent>,
}

#[tonic::async_trait]
impl TokenCounter for Counter {
    async fn count_tokens(&self, request: Request<CountTokensRequest>) -> Result<Response<CountTokensResponse>, Status> {
        let counted = self.count(request.into_inner()).await.map_err(|error| to_status(&error))?;
        Ok(Response::new(counted))
    }
}

impl Counter {
    /// On a blocking thread: a history that has become too long takes a while to tokenise.
    async fn count(&self, request: CountTokensRequest) -> Result<CountTokensResponse, AgentError> {
        let trajectory = Trajectory::try_from(request.trajectory.ok_or(AgentError::Missing("trajectory"))?)?;
        let (agent, runtime) = (Arc::clone(&self.agent), Handle::current());
        let counted = tokio::task::spawn_blocking(move || runtime.block_on(agent.speaker().measure(agent.role(), &trajectory)));
        let size = counted.await.unwrap_or_else(|error| Err(GenerateError::engine(error.to_string()).into()))?;
        let count = |tokens: usize| u32::try_from(tokens).unwrap_or(u32::MAX);
        Ok(CountTokensResponse { tokens: count(size.tokens), limit: count(size.limit) })
    }
}
