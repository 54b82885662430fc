//! The bucket with the specifications of tools, and what this process knows of it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{PoisonError, RwLock};

use async_nats::jetstream::kv;
use autoact_trajectory::{Digest, Tenant, ToolSpec};
use autoact_wire::specs::ToolSpecs;

use crate::config::BusConfig;

/// The bucket.
pub(crate) const BUCKET: &str = "AUTOACT_TOOLS";
/// Tens of thousands of specifications of about a kilobyte.
const MAX_BYTES: i64 = 32 << 20;
/// Specifications in memory; a process that meets more begins anew.
const MAX_CACHED: usize = 4096;

/// The bucket's settings.
pub(crate) fn bucket(config: &BusConfig) -> kv::Config {
    kv::Config {
        bucket: BUCKET.to_owned(),
        description: "specifications of tools, by tenant and SHA-256".to_owned(),
        max_bytes: MAX_BYTES,
        num_replicas: config.replicas,
        ..kv::Config::default()
    }
}

/// What this process knows of the bucket.
#[derive(Debug, Default)]
pub(crate) struct ToolCache {
    known: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    specs: HashMap<(Tenant, Digest), ToolSpec>,
    /// Those that the server has.
    stored: HashSet<(Tenant, Digest)>,
    /// The connection over which that was seen.
    connection: u64,
}

impl ToolCache {
    /// Whether the server has it, as seen over this connection.
    pub(crate) fn is_stored(&self, connection: u64, key: &(Tenant, Digest)) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.connection == connection && known.stored.contains(key)
    }

    pub(crate) fn insert(&self, connection: u64, key: (Tenant, Digest), spec: ToolSpec) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.specs.len() >= MAX_CACHED {
            *known = Known::default();
        }
        if known.connection != connection {
            known.connection = connection;
            known.stored.clear();
        }
        known.stored.insert(key.clone());
        known.specs.insert(key, spec);
    }
}

impl ToolSpecs for ToolCache {
    fn get(&self, tenant: &Tenant, digest: &Digest) -> Option<ToolSpec> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.specs.get(&(tenant.clone(), *digest)).cloned()
    }
}

pub(crate) fn key(tenant: &Tenant, digest: &Digest) -> String {
    format!("{tenant}.{digest}")
}

/// The cache, and what was fetched just now.
pub(crate) struct Both<'a>(pub(crate) &'a ToolCache, pub(crate) BTreeMap<Digest, ToolSpec>);

impl ToolSpecs for Both<'_> {
    fn get(&self, tenant: &Tenant, digest: &Digest) -> Option<ToolSpec> {
        ToolSpecs::get(&self.1, tenant, digest).or_else(|| self.0.get(tenant, digest))
    }
}
