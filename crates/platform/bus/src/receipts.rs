//! Receipts on the bus: all of a task on one subject, each stored only after the one that its writer
//! knows. What they mean is in [`autoact_trajectory::Receipts`].
//!
//! A process that only runs tools needs no more of the bus than this: to publish to
//! `autoact.*.receipt.*` and to read the stream `AUTOACT_RECEIPTS`. Gateways make the stream. As the user
//! `tool-agent` ([`crate::USERS`]) it may do that and nothing else.

use std::time::{Duration, SystemTime};

use async_nats::jetstream::ContextBuilder;
use async_nats::jetstream::stream::{DirectGetErrorKind, Stream};
use async_nats::jetstream::{self};
use autoact_trajectory::{Receipt, Receipts, TaskKey};
use autoact_wire::receipt;
use bytes::Bytes;

use crate::append::{After, Publish};
use crate::config::BusConfig;
use crate::connect::{Bus, REQUEST_TIMEOUT, connect_later};
use crate::error::BusError;
use crate::patience::Patience;
use crate::refusal::Refusals;
use crate::streams::configs::RECEIPTS;
use crate::subjects::receipt_subject;

/// For [`BusError::Unavailable`].
const READ: &str = "read the receipts of a task";
const WRITE: &str = "store a receipt";

/// Reads and writes receipts; clones share the connection.
#[derive(Clone)]
pub struct ReceiptBook {
    context: jetstream::Context,
    stream: Stream<()>,
    patience: Duration,
    writer: String,
    refusals: Refusals,
}

impl std::fmt::Debug for ReceiptBook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReceiptBook").field("writer", &self.writer).finish_non_exhaustive()
    }
}

/// The receipts of a task, and where the last of them lies.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Known {
    /// What they say.
    pub receipts: Receipts,
    /// The sequence of the last one; 0: there is none.
    pub last: u64,
}

impl ReceiptBook {
    /// A connection of its own, which is made in the background and made again when it breaks.
    ///
    /// # Errors
    /// The address is none, or the credentials cannot be read.
    pub async fn connect(config: &BusConfig) -> Result<ReceiptBook, BusError> {
        let (client, refusals) = connect_later(config).await?;
        let context = ContextBuilder::new().timeout(REQUEST_TIMEOUT).build(client);
        ReceiptBook::over(context, config, refusals).await
    }

    async fn over(context: jetstream::Context, config: &BusConfig, refusals: Refusals) -> Result<ReceiptBook, BusError> {
        // asks the server nothing
        let stream = context.get_stream_no_info(RECEIPTS).await.map_err(|error| BusError::unavailable(READ, error))?;
        Ok(ReceiptBook { context, stream, patience: config.patience, writer: config.name.clone(), refusals })
    }

    /// All receipts of a task. A replica of the server that lags behind may lack the last ones:
    /// [`append`](Self::append) does not store after a receipt that is not the last.
    ///
    /// # Errors
    /// [`BusError::Unavailable`] if the bus does not answer for as long as it is waited for.
    pub async fn read(&self, task: &TaskKey) -> Result<Known, BusError> {
        let subject = receipt_subject(task);
        let mut patience = Patience::new(READ, self.patience, &self.refusals);
        let mut known = Known::default();
        loop {
            match self.stream.direct_get_next_for_subject(&subject, Some(known.last + 1)).await {
                Ok(message) => {
                    let unreadable = |source| BusError::Unreadable { task: task.clone(), sequence: message.sequence, source };
                    known.receipts.apply(receipt::decode(&message.payload).map_err(unreadable)?);
                    known.last = message.sequence;
                }
                Err(error) if error.kind() == DirectGetErrorKind::NotFound => return Ok(known),
                Err(error) => patience.after(error).await?,
            }
        }
    }

    /// Stores a receipt, provided that the task's last one is still the one at `after` (0: that
    /// there is none), and returns its place.
    ///
    /// # Errors
    /// [`BusError::Conflict`] if it is not; [`BusError::Full`]; [`BusError::Unavailable`]: it may
    /// have been stored.
    pub async fn append(&self, task: &TaskKey, receipt: &Receipt, after: u64) -> Result<u64, BusError> {
        let publish = Publish {
            what: WRITE,
            subject: receipt_subject(task),
            id: uuid::Uuid::new_v4().simple().to_string(),
            payload: Bytes::from(receipt::encode(task, &self.writer, SystemTime::now(), receipt)),
            after: After::OnSubject(after),
            task,
        };
        publish.send(&self.context, Patience::new(WRITE, self.patience, &self.refusals)).await
    }

    /// Sees to it that older holders of the task's lease than `epoch` start nothing any more, and
    /// returns what was begun until then. Doing it again changes nothing.
    ///
    /// # Errors
    /// See [`append`](Self::append); never a conflict.
    pub async fn fence(&self, task: &TaskKey, epoch: u64) -> Result<Known, BusError> {
        let fence = Receipt::Fence { epoch };
        loop {
            let mut known = self.read(task).await?;
            if known.receipts.epoch() >= epoch {
                return Ok(known);
            }
            match self.append(task, &fence, known.last).await {
                Ok(last) => {
                    known.receipts.apply(fence);
                    return Ok(Known { last, ..known });
                }
                Err(BusError::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Bus {
    /// The receipts on this bus.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn receipts(&self) -> Result<ReceiptBook, BusError> {
        ReceiptBook::over(self.context.clone(), &self.config, self.refusals.clone()).await
    }
}
