//! Whether the model works, in two steps: it does when its last call did, and when no call came
//! lately one token is asked of it.

use std::sync::Arc;
use std::time::Duration;

use autoact_service::Condition;

use crate::agent::Agent;

/// How long one token may take: a model that needs longer is of no use to anybody.
const PROBE_LIMIT: Duration = Duration::from_secs(20);

/// Keeps `condition` true while the model works. A task without end: run it with `Tasks::spawn`.
pub(crate) async fn watch_health(agent: Arc<Agent>, condition: Condition, interval: Duration) {
    loop {
        let healthy = agent.health().worked_within(interval) || probe(&agent).await;
        condition.set(healthy);
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            () = agent.health().doubted() => {}
        }
        if !healthy {
            // a broken model is asked again, but not in a tight loop
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

async fn probe(agent: &Agent) -> bool {
    match tokio::time::timeout(PROBE_LIMIT, agent.probe(PROBE_LIMIT)).await {
        Ok(Ok(())) => {
            agent.health().worked();
            true
        }
        Ok(Err(error)) => {
            tracing::error!(%error, "the model does not work");
            false
        }
        Err(_) => {
            tracing::error!(limit = ?PROBE_LIMIT, "the model gave no token in time");
            false
        }
    }
}
