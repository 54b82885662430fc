//! What tests of real processes need: where the programs and the model are ([`files`]), free ports
//! ([`ports`]), waiting with a deadline ([`poll`]), a real nats-server ([`NatsServer`]), an
//! OpenAI-compatible server over a model of ours ([`openai`]), one program run to its end
//! ([`program`]), a tool that notes its runs ([`effects`]), and a whole group as `autoact up` starts
//! it ([`group`]).
//!
//! Everything here cleans up when dropped, also when a test panics.

pub mod effects;
pub mod files;
pub mod group;
mod nats;
pub mod openai;
pub mod poll;
pub mod ports;
pub mod processes;
pub mod program;

pub use files::Assets;
pub use group::{Group, GroupOptions};
pub use nats::{NatsError, NatsServer};
pub use openai::{Fault, Kind, List, Logprobs, OpenAiOptions, OpenAiServer};
pub use poll::{poll_until, within};
pub use program::{Output, Program, Running};
