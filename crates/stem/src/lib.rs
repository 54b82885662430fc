//! How the bundled model `models/stem` is made: its tokenizer, the documents it is trained on, and the training runs of the base and of
//! the three adapters. The numbers come from `models/stem/recipe/*.toml`; the trainer is `autoact-train`, the worlds are
//! `autoact-knowledge`'s, the observations come from the real tools of `autoact-tools`.

mod documents;
mod encode;
mod environment;
mod recipe;
mod run;
mod tokenizer;

pub use autoact_prompt::Role;
pub use documents::{AdapterDocuments, BaseDocuments, SourceError, Worlds};
pub use encode::{EncodeError, Encoder};
pub use environment::{Tools, ToolsError};
pub use recipe::{AdapterRecipe, BaseRecipe, Recipe, RecipeError};
pub use run::{Options, Outcome, Paths, StemError, train_adapter, train_base, train_tokenizer};
