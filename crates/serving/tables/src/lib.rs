//! Tables that users have: files of comma- or tab-separated values, and SQLite databases.
//!
//! A [`Table`] is read strictly: a broken row is refused with its line. From tables come a
//! [`Database`], which answers SQL and cannot be changed by it; a [`Graph`], which answers what an
//! entity's relation is, and which entities have a value; and sentences, by a [`Template`]. Nothing
//! here is a model, and nothing here reads the network.

mod column;
mod database;
mod files;
mod graph;
mod guard;
mod query;
mod records;
mod table;
mod template;
mod written;

pub use database::{Database, DatabaseError, TableInfo};
pub use files::{FileMistakes, MAX_FILE_BYTES, read_tables, read_triples, table_files};
pub use graph::{ALIASES, Entity, EntityId, Fact, Graph, Triple};
pub use query::{Bounds, Cell, QueryError, Rows};
pub use records::{Format, Mistake};
pub use table::Table;
pub use template::{Template, TemplateError};
pub use written::{WrittenError, written};
