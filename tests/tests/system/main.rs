//! The whole system as real processes: nats-server, the five services and the `autoact` command,
//! with the bundled model.
//!
//! `TESTKIT_RANDOM_MODEL=1` runs it with a tiny model of random weights instead: its answers mean
//! nothing, and what only a trained model can show is left out.

mod adapters;
mod allocator;
mod bad_requests;
mod bad_starts;
mod clients;
mod concurrency;
mod conversations;
mod documents;
mod evaluation;
mod examples;
mod identity;
mod kills;
mod lifecycle;
mod load;
mod observability;
mod output;
mod own_tools;
mod questions;
mod quickstart;
mod replicas;
mod restarts;
mod sandbox;
mod second;
mod tls;
mod traces;
mod variables;
mod versions;
