//! Specifications of tools: each is stored once and named by its digest, so that a task's first
//! event stays small.
//!
//! They lie in the key-value bucket `AUTOACT_TOOLS` under `<tenant>.<digest>`. Key-value and not an
//! object store, because a specification is far below the size of a message: it is stored with one
//! conditional message and read with one request, where an object takes two messages and a
//! consumer. A key begins with the tenant, so that permissions on subjects can keep tenants apart.
//!
//! What a digest names never changes. It is cached for good, and a specification that this process
//! has stored or read is not stored again while the connection lasts: a server that lost its disk
//! has also lost its connections.

use std::sync::atomic::Ordering;

use async_nats::jetstream::kv::CreateErrorKind;
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use autoact_trajectory::{Digest, Event, Submitted, TaskKey, ToolSpec};
use autoact_wire::event::EventError;
use autoact_wire::specs::{StoredSpec, ToolRef, decode_spec, stored_specs};
use autoact_wire::store;
use bytes::Bytes;
use futures::future::try_join_all;

use crate::append::{After, Publish};
use crate::connect::Bus;
use crate::error::BusError;
use crate::tool_bucket::{Both, key};

impl Bus {
    /// How often the connection was made: what was seen before the last time may be gone.
    fn connection(&self) -> u64 {
        self.client.statistics().connects.load(Ordering::Relaxed)
    }

    /// Stores the specifications that a task begins with. Those that are known to be stored cost
    /// nothing.
    pub(crate) async fn store_tools(&self, task: &TaskKey, submitted: &Submitted) -> Result<(), BusError> {
        let connection = self.connection();
        let unknown = stored_specs(submitted)
            .filter(|(_, stored)| !self.tools.is_stored(connection, &(task.tenant.clone(), stored.digest)))
            .map(|(spec, stored)| async move {
                let named = (task.tenant.clone(), stored.digest);
                self.store_tool(task, stored).await?;
                self.tools.insert(connection, named, spec.clone());
                Ok::<_, BusError>(())
            });
        try_join_all(unknown).await.map(|_| ())
    }

    async fn store_tool(&self, task: &TaskKey, stored: StoredSpec) -> Result<(), BusError> {
        let what = "store a tool's specification";
        let (name, bytes) = (key(&task.tenant, &stored.digest), Bytes::from(stored.bytes));
        let publish = Publish {
            what,
            subject: format!("{}{name}", self.streams.tools.prefix),
            // one that was deleted by hand may have to be stored again at once
            id: uuid::Uuid::new_v4().simple().to_string(),
            payload: bytes.clone(),
            after: After::OnSubject(0),
            task,
        };
        match self.publish(publish).await {
            Ok(_) => return Ok(()),
            Err(BusError::Conflict { .. }) => {}
            Err(error) => return Err(error),
        }
        // somebody else has stored it, or somebody has deleted it: that leaves a mark, which
        // `create` replaces
        let mut patience = self.patience(what);
        loop {
            match self.streams.tools.create(&name, bytes.clone()).await {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == CreateErrorKind::AlreadyExists => return Ok(()),
                Err(error) => patience.after(error).await?,
            }
        }
    }

    /// A stored event, the specifications of its tools included.
    pub(crate) async fn decode(&self, task: &TaskKey, sequence: u64, payload: &[u8]) -> Result<Event, BusError> {
        let unreadable = |source| BusError::Unreadable { task: task.clone(), sequence, source };
        let missing = match store::decode(&task.tenant, payload, sequence, self.tools.as_ref()) {
            Err(EventError::MissingTools(missing)) => missing,
            decoded => return decoded.map_err(unreadable),
        };
        let fetched = Box::pin(try_join_all(missing.into_iter().map(|tool| self.fetch_tool(task, tool)))).await?;
        let known = Both(self.tools.as_ref(), fetched.into_iter().collect());
        store::decode(&task.tenant, payload, sequence, &known).map_err(unreadable)
    }

    /// A specification from the server.
    async fn fetch_tool(&self, task: &TaskKey, tool: ToolRef) -> Result<(Digest, ToolSpec), BusError> {
        let subject = format!("{}{}", self.streams.tools.prefix, key(&task.tenant, &tool.digest));
        let connection = self.connection();
        let mut patience = self.patience("read a tool's specification");
        loop {
            match self.streams.tools.stream.get_last_raw_message_by_subject(&subject).await {
                // what was deleted leaves a mark, which is no specification
                Ok(message) if store::digest(&message.payload) == tool.digest => {
                    let unreadable = |source| BusError::Unreadable { task: task.clone(), sequence: message.sequence, source };
                    let spec = decode_spec(&message.payload).map_err(unreadable)?;
                    self.tools.insert(connection, (task.tenant.clone(), tool.digest), spec.clone());
                    return Ok((tool.digest, spec));
                }
                Ok(_) => return Err(BusError::MissingTool { task: task.clone(), tool: tool.name, digest: tool.digest }),
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => {
                    return Err(BusError::MissingTool { task: task.clone(), tool: tool.name, digest: tool.digest });
                }
                Err(error) => patience.after(error).await?,
            }
        }
    }
}
