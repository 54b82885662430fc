//! The group over gRPC: what the planning driver asks, how long it is tried, and what is told
//! meanwhile.

pub(crate) mod call;
pub(crate) mod catalog;
pub(crate) mod choice;
pub(crate) mod classify;
pub(crate) mod contexts;
pub(crate) mod documents;
pub(crate) mod listing;
pub(crate) mod memory;
pub(crate) mod patience;
pub(crate) mod recall;
pub(crate) mod remote;
pub(crate) mod route;
pub(crate) mod words;
