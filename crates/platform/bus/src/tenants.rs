//! Which tenants there are on the bus, and how much each has in the queue.

use std::collections::BTreeSet;

use autoact_trajectory::Tenant;
use futures::StreamExt;

use crate::connect::Bus;
use crate::error::BusError;
use crate::queue::tenant_of_consumer;
use crate::subjects::{ALL_QUEUES, queue_of, task_of};

impl Bus {
    /// The tenants that have queued or running tasks: one attempt, no retry.
    ///
    /// # Errors
    /// The bus did not answer.
    pub async fn queued_tenants(&self) -> Result<BTreeSet<Tenant>, BusError> {
        let unavailable = |error: async_nats::Error| BusError::unavailable("list the tenants in its queue", error);
        let mut subjects = self.streams.queue.info_with_subjects(ALL_QUEUES).await.map_err(|error| unavailable(error.into()))?;
        let mut tenants = BTreeSet::new();
        while let Some(subject) = subjects.next().await {
            let (subject, _) = subject.map_err(|error| unavailable(error.into()))?;
            tenants.extend(task_of(&subject).map(|task| task.tenant));
        }
        Ok(tenants)
    }

    /// The tenants whose tasks gateways have ever taken: one attempt, no retry.
    ///
    /// # Errors
    /// The bus did not answer.
    pub async fn served_tenants(&self) -> Result<BTreeSet<Tenant>, BusError> {
        let mut names = self.streams.queue.consumer_names();
        let mut tenants = BTreeSet::new();
        while let Some(name) = names.next().await {
            let name = name.map_err(|error| BusError::unavailable("list the consumers of its queue", error))?;
            tenants.extend(tenant_of_consumer(&name));
        }
        Ok(tenants)
    }

    /// How many tasks of a tenant are queued or running, over all gateways; counted up to `most`.
    ///
    /// # Errors
    /// The bus does not answer for as long as it may take.
    pub async fn backlog_of(&self, tenant: &Tenant, most: u64) -> Result<u64, BusError> {
        let mut patience = self.patience("count a tenant's tasks");
        loop {
            match self.count(tenant, most).await {
                Ok(count) => return Ok(count),
                Err(error) => patience.after(error).await?,
            }
        }
    }

    async fn count(&self, tenant: &Tenant, most: u64) -> Result<u64, async_nats::jetstream::stream::InfoError> {
        let mut subjects = self.streams.queue.info_with_subjects(queue_of(tenant)).await?;
        let mut count = 0;
        while count < most
            && let Some(subject) = subjects.next().await
        {
            subject?;
            count += 1;
        }
        Ok(count)
    }
}
