//! The tool library: what the group can do, and the pages it does it with.
//!
//! A [`ToolLibrary`] is read from a `tools.toml`, so a user adds a tool without touching code:
//! besides the built-in kinds (`search`, `retrieve`, `lookup`, `calculate`, `finish`) there is
//! `command`, any program. The built-in ones work on [`Knowledge`]: the group's own [`Corpus`], an
//! immutable indexed set of pages, or the [`Collections`] of users' documents that a task names. An
//! entry may have a JSON schema: then arguments are checked before anything is run. Tools are
//! synchronous: the service runs them on a blocking thread under the tool's deadline. Further kinds
//! and whole sets of tools come from other crates ([`Kinds`]).
//!
//! Observations are one line of text and terse, because a small model reads them. The generator of
//! training data runs these very tools, so a model meets at work what it met while learning.

mod again;
mod artifacts;
mod builtin;
mod command;
mod confinement;
mod corpus;
mod expression;
mod file;
mod index;
mod kinds;
mod knowledge;
mod library;
mod local;
pub mod names;
mod pipes;
mod placeholder;
mod preset;
mod slip;
mod spoken;
mod takes;
mod telling;
pub mod text;
mod titles;
mod tool;
mod typo;
mod validator;
mod word_vectors;

pub use builtin::{Calculate, Finish, LEAD_SENTENCES, Lookup, Retrieve, Search};
pub use command::Command;
pub use confinement::Confinement;
pub use corpus::{Corpus, CorpusError, LineMistake, Page};
pub use expression::{CalcError, Quantity, Value, calculate};
pub use file::{BUNDLED_TOOLS, LibraryError, MOST_SENTENCES};
pub use index::{PageIndex, TITLE_WEIGHT, words_query};
pub use kinds::{Kinds, ToolSet};
pub use knowledge::{CollectionError, Collections, Knowledge, Opened, Place, PlacedPage, Scope};
pub use library::{AddToolError, Observation, ToolLibrary, UnknownTool};
pub use local::local_presets;
pub use placeholder::Argument;
pub use preset::{Key, Preset};
pub use tool::{Caller, Tool, ToolCall, ToolError, ToolOutput};
