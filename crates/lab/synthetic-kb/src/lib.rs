//! Knowledge bases for training and evaluation: typed entities and facts. They are either real
//! (the atlas) or synthetic (a *world* in identifiers). The crate generates their pages, questions
//! about them, and gold trajectories that answer the questions with the real tools.

mod alias;
mod arithmetic;
mod arithmetic_words;
mod ask;
mod atlas;
mod base;
mod counterfactual;
mod difference;
mod documents;
mod drill;
mod exam;
mod fault;
mod idle;
mod invent;
mod made_name;
mod misread;
mod mistake;
mod names;
mod page;
mod phrase;
mod question;
mod reflect;
mod schema;
mod schema_check;
mod schema_file;
mod solve;
mod split;
mod spoil;
mod spoil_missing;
mod spoil_numbers;
mod strange;
mod style;
mod text;
mod unanswerable;
mod unanswerable_words;
mod untold;
mod walk;
mod wording;
mod wording_checks;
mod wording_follow;
mod wording_frames;
mod wording_grammar;
mod wording_inverse;
mod wording_noise;
mod wording_pairs;
mod write_page;

pub use atlas::{Atlas, AtlasError, TableMistake};
pub use base::{Entity, EntityId, Fact, KnowledgeBase};
pub use documents::{question_list, tool_choice};
pub use drill::{DrillLines, DrillPiece, drill};
pub use fault::Fault;
pub use invent::{World, WorldSize};
pub use made_name::made_name;
pub use misread::Misread;
pub use names::NameMaker;
pub use page::{LEAD_SENTENCES, Page, PageSentence, PageStyle};
pub use question::{Asks, Kind, Mix, Question, QuestionPlan, Read, Spelling, Why};
pub use schema::{
    Compare, ConditionalSentence, EntityType, Generic, Relation, RelationId, RelationRef, Schema, SchemaError, Sentence, TypeId,
};
pub use solve::{CALCULATE, Environment, LOOKUP, NO_PAGE, RETRIEVE, SEARCH, SolveError, Solver};
pub use split::{Split, held_out};
pub use strange::Nouns;
pub use style::ThoughtStyle;
pub use wording::{Families, HELD_OUT_FAMILIES, Wording};
pub use wording_noise::Noise;
