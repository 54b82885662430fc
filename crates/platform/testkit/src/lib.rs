//! What tests of real processes need: where the programs and the model are ([`files`]), free ports
//! ([`ports`]), waiting with a deadline ([`poll`]), a real nats-server ([`NatsServer`]), a network
//! that can be cut ([`Proxy`]), a disk that can be full ([`disk`]), an OpenAI-compatible server over
//! a model of ours ([`openai`]), one program run to its end ([`program`]), a tool that notes its runs
//! ([`effects`]), a whole group as `autoact up` starts it ([`group`]), and its services as processes
//! of their own, each of which can be killed and cut off ([`Cluster`]).
//!
//! Everything here cleans up when dropped, also when a test panics.

mod cluster;
pub mod disk;
pub mod effects;
pub mod files;
pub mod group;
mod nats;
pub mod openai;
pub mod poll;
pub mod ports;
pub mod processes;
pub mod program;
mod proxy;

pub use cluster::{Cluster, ClusterOptions, Member};
pub use disk::SmallDisk;
pub use files::Assets;
pub use group::{Group, GroupOptions};
pub use nats::{NatsError, NatsServer};
pub use openai::{Fault, Kind, List, Logprobs, OpenAiOptions, OpenAiServer};
pub use poll::{poll_until, within};
pub use program::{Output, Program, Running};
pub use proxy::Proxy;
