//! An agent's words. A [`Speaker`] turns a history into a request for the model, and the model's
//! tokens into a reply.
//!
//! A request is the transcript or the model's chat template, a cue, and the grammar of the role
//! ([`autoact_prompt`]). A reply is a stream of text, then the whole text. A thought that used up
//! its tokens is closed: the model goes on from there, held to the rest of the grammar. The whole
//! text becomes a value of the domain in [`thought`], [`params`] and [`reflection`].
//!
//! The agents' services, learning, evaluation and the planners all speak through this crate, so a
//! model is asked in the same way everywhere. It knows no metrics, no health and no transport. It
//! needs no async runtime: `futures::executor::block_on` is enough.

mod closing;
mod convert;
mod error;
mod parse;
mod repetition;
mod reply;
mod speaker;
#[cfg(feature = "testing")]
pub mod testing;

pub use convert::{grammar, model_sampling, scores, usage};
pub use error::{ParseError, SpeakError};
pub use parse::{params, reflection, thought};
pub use reply::{ReplyEvent, ReplyStream};
pub use speaker::{SpeakRequest, Speaker, prompt};
