//! The settings of what one tenant may have.

use std::collections::BTreeMap;

use autoact_config::Check;
use autoact_trajectory::Tenant;
use serde::{Deserialize, Serialize};

/// What a tenant may have. 0 is no bound; for all but [`QuotaConfig::tasks_per_minute`] it is half
/// of what the gateway has where callers are asked for tokens, so that no tenant can take all of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QuotaConfig {
    /// New tasks per minute at one gateway; as many may come at once.
    pub tasks_per_minute: u32,
    /// Tasks that are queued or running, over all gateways.
    pub tasks: u64,
    /// Tasks that are queued, running or held back, over all gateways.
    pub open: u64,
    /// Clients that watch at one gateway.
    pub watchers: usize,
    /// What these tenants may have instead.
    pub tenants: BTreeMap<String, TenantQuotaConfig>,
}

/// What a tenant may have instead; what it does not say is as for everybody.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TenantQuotaConfig {
    /// New tasks per minute; 0: no bound.
    pub tasks_per_minute: Option<u32>,
    /// Tasks that are queued or running; 0: no bound.
    pub tasks: Option<u64>,
    /// Tasks that are queued, running or held back; 0: no bound.
    pub open: Option<u64>,
    /// Clients that watch; 0: no bound.
    pub watchers: Option<usize>,
}

impl QuotaConfig {
    /// What is wrong with the values.
    pub(super) fn check(&self, check: &mut Check<'_>) {
        for tenant in self.tenants.keys() {
            check.require(tenant.parse::<Tenant>().is_ok(), "quota.tenants", "tables named by tenants: a-z, 0-9 and `-`", tenant);
        }
    }
}
