//! A client of the gateway, for people and programs.
//!
//! - [`Following`]: the events of one task, across gateways that stop and start. A task is
//!   submitted under an id that the client chooses, so that submitting it again is the same task.
//! - [`what_listens`]: why an address does not answer as a service does.

mod following;
mod listener;

pub use following::{Following, Update};
pub use listener::{Listener, what_listens};
