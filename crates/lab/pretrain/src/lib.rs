//! Training of the bundled model `models/stem`: its tokenizer, its training documents, and the
//! training runs of the base and of the three adapters. Hyperparameters are in
//! `models/stem/recipe/*.toml`. The trainer is `autoact-train`. The synthetic knowledge bases
//! ("worlds") come from `autoact-synthetic-kb`, observations from the real tools of
//! `autoact-tools`.

mod documents;
mod encode;
mod environment;
mod histories;
mod kit;
mod paths;
mod recipe;
mod run;
mod tokenizer;
mod worlds;

pub use autoact_prompt::Role;
pub use documents::{AdapterDocuments, BaseDocuments};
pub use encode::{EncodeError, Encoder, document};
pub use environment::{Tools, ToolsError};
pub use histories::{History, histories};
pub use paths::Paths;
pub use recipe::{AdapterRecipe, BaseRecipe, Ranks, Recipe, RecipeError};
pub use run::{Options, Outcome, StemError, train_adapter, train_base, train_tokenizer};
pub use worlds::{SourceError, Worlds};
