//! What is asked of a store.

use std::cmp::Reverse;

use autoact_trajectory::Tenant;
use prost_types::Timestamp;

use crate::remembered::{Kind, Memory};

/// Where a memory stands among others of a tenant: by the end of its task, the newest first; then by
/// kind and id, so that the order is always the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub(crate) time: Reverse<(i64, i32)>,
    pub(crate) kind: Kind,
    pub(crate) id: String,
}

/// What to recall.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Whose memories.
    pub tenant: Tenant,
    /// Of which kind.
    pub kind: Kind,
    /// Of which conversation; empty: of all, and of none.
    pub conversation: String,
    /// Similar to what.
    pub text: String,
    /// How many at most.
    pub limit: usize,
    /// Only what was approved.
    pub approved_only: bool,
}

/// A memory that is similar to a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Recalled {
    /// How similar; comparable within one answer only.
    pub score: f32,
    /// The memory.
    pub memory: Memory,
}

/// Which memories, in the order of their places.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    /// Whose; `None`: everybody's.
    pub tenant: Option<Tenant>,
    /// Of this kind.
    pub kind: Kind,
    /// Of this conversation; empty: of all, and of none.
    pub conversation: String,
    /// Of tasks that had ended by then.
    pub before: Option<Timestamp>,
    /// Only what stands after this.
    pub after: Option<Place>,
    /// How many at most.
    pub limit: usize,
}

impl Filter {
    /// All of a kind.
    pub fn of(tenant: &Tenant, kind: Kind) -> Filter {
        Filter { tenant: Some(tenant.clone()), kind, conversation: String::new(), before: None, after: None, limit: usize::MAX }
    }

    /// Whether a memory is meant. A memory without a time is from before any.
    fn admits(&self, memory: &Memory) -> bool {
        let time = memory.finished_at().unwrap_or_default();
        self.tenant.as_ref().is_none_or(|tenant| tenant == memory.tenant())
            && self.kind == memory.kind()
            && (self.conversation.is_empty() || self.conversation == memory.conversation())
            && self.before.is_none_or(|before| (time.seconds, time.nanos) <= (before.seconds, before.nanos))
            && self.after.as_ref().is_none_or(|after| memory.place() > *after)
    }
}

/// Collects the first memories that a filter admits, out of any number in any order.
#[derive(Debug)]
pub(crate) struct First<'a> {
    filter: &'a Filter,
    found: Vec<Memory>,
}

/// Beyond the limit, this many are kept before those that are too many are dropped.
const SLACK: usize = 1024;

impl<'a> First<'a> {
    pub(crate) fn new(filter: &'a Filter) -> First<'a> {
        First { filter, found: Vec::new() }
    }

    pub(crate) fn push(&mut self, memory: Memory) {
        if self.filter.admits(&memory) {
            self.found.push(memory);
            if self.found.len() >= self.filter.limit.saturating_add(SLACK) {
                self.shrink();
            }
        }
    }

    fn shrink(&mut self) {
        self.found.sort_by_cached_key(Memory::place);
        self.found.truncate(self.filter.limit);
    }

    pub(crate) fn finish(mut self) -> Vec<Memory> {
        self.shrink();
        self.found
    }
}
