//! What a server may ask of us: nothing but a ping.

use std::future::Future;

#[allow(deprecated)] // roots are refused, and have to be named for it
use rmcp::model::ListRootsResult;
use rmcp::model::{ClientCapabilities, ClientConfig, ErrorData, Implementation, ListRootsRequestMethod, ProtocolVersion};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use tokio::sync::watch;

/// Refuses sampling, elicitation and roots, which no capability offers, and counts changes of the
/// list of tools.
#[derive(Debug, Clone)]
pub(crate) struct Handler {
    pub(crate) changes: watch::Sender<u64>,
}

#[allow(deprecated)]
impl ClientHandler for Handler {
    fn list_roots(&self, _: RequestContext<RoleClient>) -> impl Future<Output = Result<ListRootsResult, ErrorData>> + Send + '_ {
        std::future::ready(Err(ErrorData::method_not_found::<ListRootsRequestMethod>()))
    }

    fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) -> impl Future<Output = ()> + Send + '_ {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
        std::future::ready(())
    }

    fn get_info(&self) -> ClientConfig {
        let own = Implementation::new("autoact", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), own).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}
