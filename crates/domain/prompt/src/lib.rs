//! What the three agents read and write, as text. Serving and training use this one crate, so that
//! a model is asked in exactly the words it was trained on.
//!
//! A history is a transcript of labelled lines:
//!
//! ```text
//! Tools: Search[query] Retrieve[title] Finish[answer]
//! Question: What is the capital of the country where the Loire flows?
//! Thought: I need the country of the Loire.        ┐ Plan-Agent
//! Action: Retrieve                                 ┘
//! Input: Loire                                       Tool-Agent
//! Observation: Loire is a river in France. …         the tool
//! Thought: …
//! Action: Finish
//! Input: Paris
//! Reflection: The answer should be Paris.          ┐ Reflect-Agent
//! Verdict: right                                   ┘
//! ```
//!
//! What the client said beside the question stands between `Tools:` and `Question:`, a labelled
//! line for each field that it set: `Task:`, `Description:`, `Answer format:`, `Profile:`, `Bio:`,
//! `Audience:`, `Instruction:`, `Time:`, `Time zone:`. Where it set none, nothing stands there.
//! Models with a chat template read these lines in the system message.
//!
//! What was recalled of the conversation is for models with a chat template alone: it stands before
//! the transcript in the user's message, between two lines that say what it is. The transcript on
//! its own never has it, because the bundled model was not trained to read it and would take what
//! was said earlier for what it has found out.
//!
//! Every line is appended and never changed, so a prompt is always a prefix of the next one: what
//! an engine has read stays read. Tool name and parameters stand on lines of their own (people see
//! `Retrieve[Loire]`), so that a copied name always follows a space and tokenises as it did where
//! it was read. Observations are data: their line breaks become spaces, or their lines are indented
//! below the label where the tool's observations have several lines. No observation can forge
//! another label.
//!
//! The input of a tool with several or typed arguments is a JSON object, also on one line
//! (`Input: {"amount":3,"from":"km","to":"mi"}`): JSON writes a line break inside of a string as
//! two characters.

mod chat;
mod context;
mod expect;
mod recalled;
mod tools;
mod transcript;

pub use autoact_trajectory::Role;
pub use chat::{ChatMessage, chat};
pub use expect::{Expect, Form, ParseError, parse_input, parse_plan, parse_reflection};
pub use recalled::most_recalled_bytes;
pub use tools::described;
pub use transcript::{Reply, Segment, cue, header, most_bytes, replies, segments, transcript};
