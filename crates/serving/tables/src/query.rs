//! One query and what it returned.

use std::fmt;
use std::time::Instant;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, ErrorCode, OpenFlags};

use crate::database::Database;
use crate::guard::{MAX_MEMORY_BYTES, MAX_SQL_BYTES, guard};

/// How much of a result is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Rows.
    pub rows: usize,
    /// Bytes of all texts together.
    pub bytes: usize,
}

/// A value of a result.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Unknown.
    Null,
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Real(f64),
    /// A text.
    Text(String),
    /// Bytes; only how many there are.
    Blob(usize),
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Null => f.write_str("NULL"),
            Cell::Integer(number) => write!(f, "{number}"),
            Cell::Real(number) => write!(f, "{number:?}"),
            Cell::Text(text) => f.write_str(text),
            Cell::Blob(bytes) => write!(f, "({bytes} bytes)"),
        }
    }
}

/// What a query returned.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows, each as long as `columns`.
    pub rows: Vec<Vec<Cell>>,
    /// Whether these are all; otherwise a bound ended the query.
    pub complete: bool,
}

/// A query that returned nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// It would have done more than read.
    #[error("{0} is not allowed: the database is read-only; expected one SELECT statement")]
    Refused(String),
    /// A name that no table has.
    #[error("there is no table `{0}`")]
    NoTable(String),
    /// A name that no column has.
    #[error("there is no column `{0}`")]
    NoColumn(String),
    /// It is no query that SQLite understands.
    #[error("SQLite says: {0}")]
    Wrong(String),
    /// It took too long.
    #[error("the query did not end in time")]
    TooLong,
    /// It made a text, a row or a sort that is too large.
    #[error("the query needs too much memory ({0}); select fewer rows or shorter values")]
    TooMuch(String),
    /// The database cannot be read.
    #[error("the database cannot be read: {0}")]
    Unreadable(String),
}

impl Database {
    /// Runs one statement that only reads, until `deadline` at the latest.
    ///
    /// # Errors
    /// The statement is not one, is not allowed, or takes too much.
    pub fn query(&self, sql: &str, deadline: Instant, bounds: Bounds) -> Result<Rows, QueryError> {
        if sql.len() > MAX_SQL_BYTES {
            return Err(QueryError::Wrong(format!("the query has {} bytes; expected at most {MAX_SQL_BYTES}", sql.len())));
        }
        let unreadable = |error: Error| QueryError::Unreadable(error.to_string());
        let mut connection = open(self.path()).map_err(unreadable)?;
        let denied = guard(&mut connection, deadline).map_err(unreadable)?;
        run(&connection, sql, bounds).map_err(|error| match denied.take() {
            Some(what) => QueryError::Refused(what),
            None => told(error),
        })
    }
}

pub(crate) fn open(path: &std::path::Path) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)
}

fn run(connection: &Connection, sql: &str, bounds: Bounds) -> Result<Rows, Error> {
    let mut statement = connection.prepare(sql)?;
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    // VACUUM and the like ask for nothing that could be denied, and have no columns
    if !statement.readonly() || columns.is_empty() {
        return Err(Error::InvalidQuery);
    }
    let mut found = statement.query([])?;
    let mut all = Rows { columns, rows: Vec::new(), complete: true };
    let mut bytes = 0_usize;
    while let Some(row) = found.next()? {
        let cells = (0..all.columns.len()).map(|at| Ok(cell(row.get_ref(at)?))).collect::<Result<Vec<_>, Error>>()?;
        bytes = cells.iter().fold(bytes, |bytes, cell| bytes.saturating_add(size(cell)));
        if all.rows.len() >= bounds.rows || bytes > bounds.bytes {
            all.complete = false;
            break;
        }
        all.rows.push(cells);
    }
    Ok(all)
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Integer(number),
        ValueRef::Real(number) => Cell::Real(number),
        ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Cell::Blob(bytes.len()),
    }
}

/// As a cell of CSV, roughly.
fn size(cell: &Cell) -> usize {
    match cell {
        Cell::Text(text) => text.len() + 3,
        _ => 24,
    }
}

fn told(error: Error) -> QueryError {
    let (code, message) = match error {
        Error::SqlInputError { error, msg, .. } => (error.code, msg),
        Error::SqliteFailure(failure, message) => {
            let message = message.unwrap_or_else(|| failure.to_string());
            (failure.code, message)
        }
        Error::MultipleStatement => return QueryError::Refused("a second statement".to_owned()),
        Error::InvalidQuery => return QueryError::Refused("a statement that returns no rows".to_owned()),
        Error::Empty => return QueryError::Wrong("the query is empty; expected a SELECT statement".to_owned()),
        Error::NulError(_) => return QueryError::Wrong("the query has a NUL character".to_owned()),
        other => return QueryError::Wrong(other.to_string()),
    };
    match code {
        ErrorCode::OperationInterrupted => QueryError::TooLong,
        ErrorCode::OutOfMemory => QueryError::TooMuch(format!("more than {} MiB with the queries beside it", MAX_MEMORY_BYTES >> 20)),
        ErrorCode::TooBig => QueryError::TooMuch("a value has more than 1 MiB, or the query is too large".to_owned()),
        ErrorCode::ReadOnly => QueryError::Refused("a statement that changes the database".to_owned()),
        ErrorCode::CannotOpen | ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt | ErrorCode::SystemIoFailure => {
            QueryError::Unreadable(message)
        }
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => QueryError::Unreadable(message),
        _ => match (message.strip_prefix("no such table: "), message.strip_prefix("no such column: ")) {
            (Some(name), _) => QueryError::NoTable(name.to_owned()),
            // SQLite asks whether `"Paris"` was meant as a text: that says more than the name
            (_, Some(name)) if name.starts_with('"') => QueryError::Wrong(message),
            (_, Some(name)) => QueryError::NoColumn(name.to_owned()),
            _ => QueryError::Wrong(message),
        },
    }
}
