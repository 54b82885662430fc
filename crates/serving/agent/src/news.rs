//! Promotions as the bus announces them: a hint to look at the registry now.

use std::sync::Arc;
use std::time::Duration;

use autoact_bus::{AdapterNews, BusConfig, NatsConfig};
use tokio::sync::Notify;

/// Between attempts to listen: meanwhile the registry is looked at every second anyway.
const RETRY: Duration = Duration::from_secs(5);

/// Raises `hint` at every announcement. Without a bus nothing is lost but a second. A task without
/// end.
pub(crate) async fn listen(nats: NatsConfig, name: String, hint: Arc<Notify>) {
    let config = BusConfig { name, ..BusConfig::over(nats) };
    loop {
        match AdapterNews::connect(&config).await {
            Ok(mut news) => {
                while let Some(announcement) = news.next().await {
                    match announcement {
                        Ok(announcement) => {
                            tracing::debug!(version = announcement.version, revision = announcement.revision, "a promotion is announced");
                            hint.notify_one();
                        }
                        Err(error) => {
                            tracing::debug!(%error, "an announcement cannot be heard or read");
                            break;
                        }
                    }
                }
                news.close().await;
            }
            Err(error) => tracing::debug!(%error, "cannot listen for promotions; looking at the registry only"),
        }
        tokio::time::sleep(RETRY).await;
    }
}
