//! Tools against real servers on this machine.

// helpers of tests are no tests to clippy
#![allow(clippy::unwrap_used)]

mod calls;
mod injection;
mod redirects;
mod secure;
mod server;
mod ssrf;
