//! Tools against real servers on this machine.

// helpers of tests are no tests to clippy
#![allow(clippy::unwrap_used)]

mod atlas;
mod browse;
mod formats;
mod hostile;
mod hybrid;
mod mediawiki;
mod robots;
mod search;
mod server;
mod weather;
mod where_to;
mod wiki;
