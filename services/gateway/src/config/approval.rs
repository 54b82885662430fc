//! The settings of which actions wait for a person's approval.

use std::collections::BTreeMap;

use autoact_config::Check;
use autoact_trajectory::{ApprovalPolicy, Tenant};
use serde::{Deserialize, Serialize};

/// Which actions wait for a person's approval. A tool that says so itself (`approval = true` in
/// tools.toml) always waits, and a request may ask for more than its tenant's policy.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ApprovalConfig {
    /// `tools`: those of tools that say so. `untrusted`: also those with an effect, once the group
    /// has read what a tool returned. `effects`: all that are not read-only.
    pub policy: ApprovalPolicy,
    /// The policy of these tenants instead.
    pub tenants: BTreeMap<String, ApprovalPolicy>,
}

impl ApprovalConfig {
    /// What is wrong with the values.
    pub(super) fn check(&self, check: &mut Check<'_>) {
        for tenant in self.tenants.keys() {
            check.require(tenant.parse::<Tenant>().is_ok(), "approval.tenants", "named by tenants: a-z, 0-9 and `-`", tenant);
        }
    }
}
