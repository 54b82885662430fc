//! How much the agents' models can read: asked of the agents, and remembered.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use autoact_planning::{Contexts, Failure, FailureClass};
use autoact_prompt::Expect;
use autoact_replicas::Id;
use autoact_telemetry::propagate::TraceInterceptor;
use autoact_trajectory::{PromptSize, Role, TaskKey, Trajectory};
use autoact_wire::agents_v1::CountTokensRequest;
use autoact_wire::agents_v1::token_counter_client::TokenCounterClient;
use autoact_wire::limited;

use crate::agents::patience::Attempt;
use crate::agents::remote::{Peer, Remote, Settings, Traced};
use crate::agents::route::Route;

/// Counting takes milliseconds.
const CALL_LIMIT: Duration = Duration::from_secs(10);

/// The three agents' token counters.
pub(super) struct RemoteContexts {
    roles: [Counter; 3],
}

struct Counter {
    role: Role,
    client: Remote<TokenCounterClient<Traced>>,
    /// Tokens of a prompt and its reply, as each replica told last. One that was restarted with
    /// another context tells it with the next count, or with a refusal.
    rooms: Mutex<HashMap<Id, usize>>,
}

impl RemoteContexts {
    /// The counters of the agents of [`Role::ALL`].
    pub(super) fn new(agents: [&Peer; 3], settings: &Settings) -> RemoteContexts {
        let [plan, tool, reflect] = agents;
        let counter = |role: Role, peer| {
            let client = |channel| limited!(TokenCounterClient::with_interceptor(channel, TraceInterceptor));
            Counter { role, client: Remote::new(peer, settings, client), rooms: Mutex::default() }
        };
        RemoteContexts { roles: [counter(Role::Plan, plan), counter(Role::Tool, tool), counter(Role::Reflect, reflect)] }
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

impl Counter {
    /// The smallest that a replica told: whatever replica a prompt goes to has room for it. Those of
    /// which nothing is known yet tell it with a refusal.
    fn room(&self) -> Option<usize> {
        self.rooms().values().copied().min()
    }

    /// The replica of the last attempt has this room. What replicas told that are gone is forgotten.
    fn tell(&self, route: &Route, room: usize) {
        let Some(id) = route.last() else { return };
        let there = self.client.pool().views();
        let mut rooms = self.rooms();
        rooms.retain(|id, _| there.iter().any(|view| view.id == *id));
        rooms.insert(id, room);
    }

    fn rooms(&self) -> std::sync::MutexGuard<'_, HashMap<Id, usize>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Contexts for RemoteContexts {
    fn room(&self, role: Role) -> Option<usize> {
        self.of(role).room()
    }

    async fn measure(&self, role: Role, task: &TaskKey, trajectory: &Trajectory, time_left: Duration) -> Result<PromptSize, Failure> {
        let counter = self.of(role);
        let (patience, route) = (counter.client.patience(time_left), counter.client.route(&task.to_string()));
        let counted = patience.attempts(Some(&route), |attempt| async move {
            let request = CountTokensRequest { trajectory: Some(trajectory.into()) };
            let call =
                |mut client: TokenCounterClient<Traced>, request| async move { Ok(client.count_tokens(request).await?.into_inner()) };
            let attempt = Attempt { limit: attempt.limit.min(CALL_LIMIT), ..attempt };
            counter.client.within(&attempt, request, call).await
        });
        match counted.await.0 {
            Ok(size) => {
                let size = PromptSize { tokens: size.tokens as usize, limit: size.limit as usize };
                let reply = Expect::next(role, trajectory).max_tokens;
                counter.tell(&route, size.limit.saturating_add(reply));
                Ok(size)
            }
            Err(failure) => {
                if failure.class == FailureClass::Refused {
                    // an agent that does not count refuses what is too long: it is not asked again
                    counter.tell(&route, usize::MAX);
                }
                tracing::debug!(%task, role = counter.role.as_str(), failure = failure.chain(), "a prompt was not measured");
                Err(failure)
            }
        }
    }
}
