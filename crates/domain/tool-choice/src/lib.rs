//! Which tools of a large library a task is given.
//!
//! Every tool of a task stands in each of its prompts, so a library of hundreds cannot be given as a
//! whole. A [`ToolIndex`] ranks its tools by a question: by words (BM25 over names, definitions,
//! parameters, examples, and what the tools belong to), and by meaning where somebody made vectors of
//! its [texts](ToolIndex::texts) and of the question. [`choose`](ToolIndex::choose) takes the best that fit well enough; that none does is a
//! result. It is plain computation, without models and without waiting.
//!
//! Source: OpenAgents section 3.2 (automatic selection among over 200 plugins).

mod choice;
mod index;
mod text;

pub use choice::{ChoiceOptions, Merge};
pub use index::ToolIndex;
