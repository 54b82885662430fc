//! Which actions wait for a person's approval.

use std::collections::BTreeMap;

use autoact_trajectory::{ApprovalPolicy, Tenant};

use crate::config::ApprovalConfig;

/// The policy of each tenant.
pub(crate) struct Approvals {
    policy: ApprovalPolicy,
    tenants: BTreeMap<String, ApprovalPolicy>,
}

impl Approvals {
    pub(crate) fn new(config: &ApprovalConfig) -> Approvals {
        Approvals { policy: config.policy, tenants: config.tenants.clone() }
    }

    pub(crate) fn of(&self, tenant: &Tenant) -> ApprovalPolicy {
        self.tenants.get(tenant.as_str()).copied().unwrap_or(self.policy)
    }
}
