//! What keeps a query from doing anything but reading, and from taking too much.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;

/// The memory that SQLite may take in this process, for all queries together. Only SQLite counts
/// towards it, and only this crate uses SQLite.
pub(crate) const MAX_MEMORY_BYTES: u64 = 256 << 20;
/// The longest text, blob or row that a query makes, in bytes.
const MAX_VALUE_BYTES: i32 = 1 << 20;
/// The longest query, in bytes.
pub(crate) const MAX_SQL_BYTES: usize = 16 << 10;
/// So many instructions are run between two looks at the clock: some microseconds.
const STEPS_BETWEEN_LOOKS: i32 = 1000;

/// Pragmas that describe the tables.
const PRAGMAS: [&str; 6] = ["table_info", "table_xinfo", "table_list", "index_list", "index_info", "foreign_key_list"];
/// Functions that do more than calculate.
const FUNCTIONS: [&str; 6] = ["load_extension", "fts3_tokenizer", "sqlite_log", "readfile", "writefile", "edit"];

/// What a query tried that is not allowed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Denied(Arc<Mutex<Option<String>>>);

impl Denied {
    pub(crate) fn take(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn say(&self, what: String) {
        // the first one is what the query is about
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(what);
    }
}

/// Restricts a connection to reading until `deadline`. There are four layers: the file is open for
/// reading only, the connection refuses to write, the parser asks for every action, and what a
/// query may take is limited.
pub(crate) fn guard(connection: &mut Connection, deadline: Instant) -> rusqlite::Result<Denied> {
    // sorting and intermediate tables stay in memory, which is limited, and do not fill the disk
    connection.execute_batch(&format!(
        "PRAGMA query_only = ON; PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0; PRAGMA hard_heap_limit = {MAX_MEMORY_BYTES};"
    ))?;
    for (option, value) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE, false),
        // "Paris" names a column: it would be a text where there is no such column, and hide the mistake
        (DbConfig::SQLITE_DBCONFIG_DQS_DML, false),
    ] {
        connection.set_db_config(option, value)?;
    }
    let sql_bytes = i32::try_from(MAX_SQL_BYTES).unwrap_or(i32::MAX);
    for (limit, value) in [
        (Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, sql_bytes),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 100),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 50),
        (Limit::SQLITE_LIMIT_VDBE_OP, 100_000),
        (Limit::SQLITE_LIMIT_FUNCTION_ARG, 100),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 200),
        (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 0),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        connection.set_limit(limit, value)?;
    }
    connection.progress_handler(STEPS_BETWEEN_LOOKS, Some(move || Instant::now() >= deadline))?;
    let denied = Denied::default();
    let said = denied.clone();
    connection.authorizer(Some(move |context: AuthContext<'_>| match forbidden(&context.action) {
        None => Authorization::Allow,
        Some(what) => {
            said.say(what);
            Authorization::Deny
        }
    }))?;
    Ok(denied)
}

/// What an action is called where it is not allowed.
fn forbidden(action: &AuthAction<'_>) -> Option<String> {
    let one_of = |names: &[&str], name: &str| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    let what = match action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => return None,
        AuthAction::Function { function_name } if !one_of(&FUNCTIONS, function_name) => return None,
        AuthAction::Function { function_name } => return Some(format!("the function `{function_name}`")),
        AuthAction::Pragma { pragma_name, .. } if one_of(&PRAGMAS, pragma_name) => return None,
        AuthAction::Pragma { pragma_name, .. } => return Some(format!("`PRAGMA {pragma_name}`")),
        AuthAction::Insert { .. } => "INSERT",
        AuthAction::Update { .. } => "UPDATE",
        AuthAction::Delete { .. } => "DELETE",
        AuthAction::Attach { .. } => "ATTACH",
        AuthAction::Detach { .. } => "DETACH",
        AuthAction::AlterTable { .. } => "ALTER TABLE",
        AuthAction::Analyze { .. } => "ANALYZE",
        AuthAction::Reindex { .. } => "REINDEX",
        AuthAction::Transaction { .. } | AuthAction::Savepoint { .. } => "a transaction",
        // CREATE and DROP of anything, and what later versions add
        _ => "a statement that changes the database",
    };
    Some(if what.contains(' ') && what.starts_with('a') { what.to_owned() } else { format!("`{what}`") })
}
