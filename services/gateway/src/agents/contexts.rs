//! How much the agents' models can read: asked of the agents, and remembered.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use autoact_planning::{Contexts, Failure, FailureClass};
use autoact_prompt::Expect;
use autoact_telemetry::propagate::TraceInterceptor;
use autoact_trajectory::{PromptSize, Role, TaskKey, Trajectory};
use autoact_wire::agents_v1::CountTokensRequest;
use autoact_wire::agents_v1::token_counter_client::TokenCounterClient;
use autoact_wire::client::AddressError;
use autoact_wire::limited;

use crate::agents::remote::{Remote, Settings, Traced};

/// Counting takes milliseconds.
const CALL_LIMIT: Duration = Duration::from_secs(10);
/// The agent has not been asked.
const UNKNOWN: usize = 0;

/// The three agents' token counters.
pub(super) struct RemoteContexts {
    roles: [Counter; 3],
}

struct Counter {
    role: Role,
    client: Remote<TokenCounterClient<Traced>>,
    /// Tokens of a prompt and its reply, as the agent told last. An agent that was restarted with
    /// another context tells it with the next count, or with a refusal.
    room: AtomicUsize,
}

impl RemoteContexts {
    /// The counters at the addresses of [`Role::ALL`].
    pub(super) fn new(addresses: [&str; 3], settings: &Settings) -> Result<RemoteContexts, AddressError> {
        let [plan, tool, reflect] = addresses;
        let counter = |role: Role, address| {
            let client = |channel| limited!(TokenCounterClient::with_interceptor(channel, TraceInterceptor));
            let client = Remote::new(&format!("{}-agent", role.as_str()), address, settings, client)?;
            Ok(Counter { role, client, room: AtomicUsize::new(UNKNOWN) })
        };
        Ok(RemoteContexts { roles: [counter(Role::Plan, plan)?, counter(Role::Tool, tool)?, counter(Role::Reflect, reflect)?] })
    }

    fn of(&self, role: Role) -> &Counter {
        let [plan, tool, reflect] = &self.roles;
        match role {
            Role::Plan => plan,
            Role::Tool => tool,
            Role::Reflect => reflect,
        }
    }
}

#[async_trait]
impl Contexts for RemoteContexts {
    fn room(&self, role: Role) -> Option<usize> {
        Some(self.of(role).room.load(Ordering::Relaxed)).filter(|room| *room != UNKNOWN)
    }

    async fn measure(&self, role: Role, task: &TaskKey, trajectory: &Trajectory, time_left: Duration) -> Result<PromptSize, Failure> {
        let counter = self.of(role);
        let patience = counter.client.patience(time_left);
        let counted = patience.call(|attempt| async move {
            let request = CountTokensRequest { trajectory: Some(trajectory.into()) };
            let call =
                |mut client: TokenCounterClient<Traced>, request| async move { Ok(client.count_tokens(request).await?.into_inner()) };
            counter.client.within(attempt.limit.min(CALL_LIMIT), request, call).await
        });
        match counted.await {
            Ok(size) => {
                let size = PromptSize { tokens: size.tokens as usize, limit: size.limit as usize };
                let reply = Expect::next(role, trajectory).max_tokens;
                counter.room.store(size.limit.saturating_add(reply), Ordering::Relaxed);
                Ok(size)
            }
            Err(failure) => {
                if failure.class == FailureClass::Refused {
                    // an agent that does not count refuses what is too long: it is not asked again
                    counter.room.store(usize::MAX, Ordering::Relaxed);
                }
                tracing::debug!(%task, role = counter.role.as_str(), failure = failure.chain(), "a prompt was not measured");
                Err(failure)
            }
        }
    }
}
