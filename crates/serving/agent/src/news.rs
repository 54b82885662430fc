//! Promotions as the bus announces them: a hint to look at the registry now.

use std::sync::Arc;
use std::time::Duration;

use autoact_bus::{AdapterBoard, BusConfig};
use futures::StreamExt;
use tokio::sync::Notify;

/// Between attempts to listen: meanwhile the registry is looked at every second anyway.
const RETRY: Duration = Duration::from_secs(5);

/// Raises `hint` at every announcement. Without a bus nothing is lost but a second. A task without
/// end.
pub(crate) async fn listen(url: String, name: String, hint: Arc<Notify>) {
    let config = BusConfig { name, ..BusConfig::new(url) };
    loop {
        match AdapterBoard::connect(&config).await {
            Ok(board) => {
                match board.follow().await {
                    Ok(mut announcements) => {
                        while let Some(announcement) = announcements.next().await {
                            match announcement {
                                Ok(announcement) => {
                                    tracing::debug!(
                                        version = announcement.version,
                                        revision = announcement.revision,
                                        "a promotion is announced"
                                    );
                                    hint.notify_one();
                                }
                                Err(error) => {
                                    tracing::debug!(%error, "an announcement cannot be read");
                                    break;
                                }
                            }
                        }
                    }
                    Err(error) => tracing::debug!(%error, "cannot listen for promotions; looking at the registry only"),
                }
                board.close().await;
            }
            Err(error) => tracing::debug!(%error, "cannot listen for promotions; looking at the registry only"),
        }
        tokio::time::sleep(RETRY).await;
    }
}
