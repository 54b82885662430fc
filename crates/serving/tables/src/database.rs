//! Tables as a database that is only read.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tempfile::TempDir;

use crate::column::ColumnType;
use crate::query::open;
use crate::table::Table;

/// A table of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableInfo {
    /// Its name.
    pub name: String,
    /// The names of its columns.
    pub columns: Vec<String>,
}

/// A database that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The file cannot be read, or is none of SQLite's.
    #[error("`{path}` cannot be read as an SQLite database: {source}")]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// It has no tables.
    #[error("`{path}` has no tables")]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A table cannot be taken over.
    #[error("the table `{table}` cannot be loaded: {source}")]
    Load {
        /// The table.
        table: String,
        /// Why.
        source: rusqlite::Error,
    },
    /// There is no place for a file of tables.
    #[error("there is no temporary directory for the tables: {0}")]
    Directory(std::io::Error),
}

/// An SQLite file that is only read: the user's, or a temporary one that was filled from tables.
/// Safe to share; every query opens it for itself.
#[derive(Debug)]
pub struct Database {
    path: PathBuf,
    tables: Vec<TableInfo>,
    /// Goes with the database.
    _directory: Option<TempDir>,
}

impl Database {
    /// The SQLite file at `path`.
    ///
    /// # Errors
    /// It cannot be read, or has no tables.
    pub fn open(path: &Path) -> Result<Database, DatabaseError> {
        let failed = |source| DatabaseError::Open { path: path.to_owned(), source };
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let tables = open(&absolute).and_then(|connection| described(&connection)).map_err(failed)?;
        if tables.is_empty() {
            return Err(DatabaseError::Empty { path: path.to_owned() });
        }
        Ok(Database { path: absolute, tables, _directory: None })
    }

    /// A temporary file with these tables. The type of a column is guessed from its cells: whole
    /// numbers, numbers, else texts; an empty cell is NULL.
    ///
    /// # Errors
    /// A name that SQLite keeps for itself, or no room.
    pub fn of(tables: &[Table]) -> Result<Database, DatabaseError> {
        let directory = tempfile::tempdir().map_err(DatabaseError::Directory)?;
        let path = directory.path().join("tables.sqlite");
        let failed = |source| DatabaseError::Open { path: path.clone(), source };
        let mut connection = Connection::open(&path).map_err(failed)?;
        // nothing of it has to survive a crash
        connection.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;").map_err(failed)?;
        for table in tables {
            load(&mut connection, table).map_err(|source| DatabaseError::Load { table: table.name.clone(), source })?;
        }
        let tables = described(&connection).map_err(failed)?;
        Ok(Database { path, tables, _directory: Some(directory) })
    }

    /// Its tables and views, by name.
    pub fn tables(&self) -> &[TableInfo] {
        &self.tables
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

fn load(connection: &mut Connection, table: &Table) -> rusqlite::Result<()> {
    let types: Vec<ColumnType> = (0..table.columns.len()).map(|at| ColumnType::of(table.rows.iter().map(|row| row[at].as_str()))).collect();
    let columns: Vec<String> =
        table.columns.iter().zip(&types).map(|(name, of)| format!("{} {}", identifier(name), of.declared())).collect();
    let transaction = connection.transaction()?;
    transaction.execute_batch(&format!("CREATE TABLE {} ({})", identifier(&table.name), columns.join(", ")))?;
    {
        let places = vec!["?"; table.columns.len()].join(", ");
        let mut insert = transaction.prepare(&format!("INSERT INTO {} VALUES ({places})", identifier(&table.name)))?;
        for row in &table.rows {
            insert.execute(rusqlite::params_from_iter(row.iter().zip(&types).map(|(cell, of)| of.value(cell))))?;
        }
    }
    transaction.commit()
}

fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn described(connection: &Connection) -> rusqlite::Result<Vec<TableInfo>> {
    let sql = "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c \
               WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY m.name, c.cid";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut tables: Vec<TableInfo> = Vec::new();
    while let Some(row) = rows.next()? {
        let (table, column): (String, String) = (row.get(0)?, row.get(1)?);
        match tables.last_mut() {
            Some(last) if last.name == table => last.columns.push(column),
            _ => tables.push(TableInfo { name: table, columns: vec![column] }),
        }
    }
    Ok(tables)
}
