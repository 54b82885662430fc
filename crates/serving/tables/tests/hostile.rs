//! Queries that try to write, to read files, to run forever and to eat memory. Each is refused or
//! ended, and the database is byte for byte what it was.
#![allow(clippy::unwrap_used)] // tests

use std::path::PathBuf;
use std::time::{Duration, Instant};

use autoact_tables::{Bounds, Cell, Database, Format, QueryError, Rows, Table};
use proptest::prelude::*;

const BOUNDS: Bounds = Bounds { rows: 100, bytes: 1 << 20 };

/// What takes rights that a query does not have.
const WRITES: [&str; 44] = [
    "INSERT INTO city VALUES ('x', 1, 1.0)",
    "UPDATE city SET people = 0",
    "DELETE FROM city",
    "REPLACE INTO city VALUES ('x', 1, 1.0)",
    "DROP TABLE city",
    "CREATE TABLE t (a)",
    "CREATE TEMP TABLE t (a)",
    "CREATE TABLE t AS SELECT * FROM city",
    "CREATE VIEW v AS SELECT 1",
    "CREATE TEMP VIEW v AS SELECT 1",
    "CREATE INDEX i ON city (name)",
    "CREATE TRIGGER g AFTER INSERT ON city BEGIN SELECT 1; END",
    "CREATE VIRTUAL TABLE f USING fts5(a)",
    "CREATE VIRTUAL TABLE temp.f USING fts5(a)",
    "CREATE VIRTUAL TABLE c USING csv(filename='/etc/passwd')",
    "ALTER TABLE city ADD COLUMN x",
    "ALTER TABLE city RENAME TO town",
    "ATTACH '/tmp/autoact-hostile.sqlite' AS other",
    "ATTACH ':memory:' AS other",
    "ATTACH 'file:/etc/passwd?mode=ro' AS other",
    "DETACH main",
    "VACUUM",
    "VACUUM INTO '/tmp/autoact-hostile.sqlite'",
    "REINDEX",
    "ANALYZE",
    "BEGIN",
    "BEGIN IMMEDIATE",
    "COMMIT",
    "SAVEPOINT s",
    "PRAGMA query_only = OFF",
    "PRAGMA writable_schema = ON",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA hard_heap_limit = 0",
    "PRAGMA temp_store_directory = '/tmp'",
    "PRAGMA trusted_schema = ON",
    "PRAGMA user_version = 7",
    "PRAGMA wal_checkpoint",
    "SELECT 1; DELETE FROM city",
    "SELECT 1; PRAGMA query_only = OFF",
    "WITH x AS (SELECT 1) DELETE FROM city",
    "WITH x AS (SELECT 1) INSERT INTO city SELECT 'x', 1, 1.0 RETURNING *",
    "DELETE FROM city RETURNING *",
    "UPDATE sqlite_schema SET sql = 'x'",
    "EXPLAIN DELETE FROM city",
];

/// What reads files or loads code, if it were possible.
const READS: [&str; 8] = [
    "SELECT load_extension('/usr/lib/x86_64-linux-gnu/libc.so.6')",
    "SELECT readfile('/etc/passwd')",
    "SELECT writefile('/tmp/autoact-hostile', 'x')",
    "SELECT edit('x', 'sh -c id')",
    "SELECT fts3_tokenizer('simple')",
    "SELECT * FROM fsdir('/etc')",
    "SELECT * FROM sqlite_dbpage",
    "SELECT * FROM other.city",
];

/// What does not end by itself.
const ENDLESS: [&str; 6] = [
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n",
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT x FROM n WHERE x > 1",
    "SELECT count(*) FROM city a, city b, city c, city d, city e, city f, city g, city h, city i",
    "SELECT sum(length(hex(randomblob(400000)))) FROM city a, city b, city c, city d",
    "SELECT max(a.name LIKE '%a%b%c%d%e%' || b.name) FROM city a, city b, city c, city d, city e",
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT * FROM n a JOIN n b ON a.x = -b.x",
];

/// What asks for more memory than there is for it.
const HUNGRY: [&str; 10] = [
    "SELECT zeroblob(2000000000)",
    "SELECT hex(zeroblob(1000000000))",
    "SELECT printf('%.*c', 2000000000, 'x')",
    "SELECT replace(hex(zeroblob(500000)), '0', 'xxxxxxxxxx')",
    "SELECT group_concat(hex(randomblob(100000))) FROM city a, city b",
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n ORDER BY -x",
    "WITH RECURSIVE n(x, y) AS (SELECT 1, randomblob(100000) UNION SELECT x + 1, randomblob(100000) FROM n) SELECT count(*) FROM n",
    "WITH RECURSIVE n(x) AS (SELECT randomblob(500000) UNION ALL SELECT randomblob(500000) FROM n) SELECT json_group_array(hex(x)) FROM n",
    "WITH RECURSIVE n(x) AS (SELECT 'x' UNION ALL SELECT x || x FROM n) SELECT max(length(x)) FROM n",
    "SELECT a.name, (SELECT group_concat(hex(randomblob(900000)), '') FROM city b) FROM city a ORDER BY 2",
];

fn cities() -> Table {
    let rows: String = (0..200).map(|number| format!("City {number},{},{}.5\n", number * 1000, number)).collect();
    Table::parse("city", &format!("name,people,area\n{rows}"), Format::Csv).unwrap()
}

/// An SQLite file of a user.
fn file() -> (tempfile::TempDir, PathBuf, Database) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("city.sqlite");
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch("CREATE TABLE city (name TEXT, people INTEGER, area REAL)").unwrap();
    for number in 0..200 {
        connection.execute("INSERT INTO city VALUES (?, ?, ?)", (format!("City {number}"), number * 1000, 0.5)).unwrap();
    }
    drop(connection);
    let database = Database::open(&path).unwrap();
    (directory, path, database)
}

fn ask(database: &Database, sql: &str) -> Result<Rows, QueryError> {
    database.query(sql, Instant::now() + Duration::from_millis(500), BOUNDS)
}

#[test]
fn what_writes_is_refused_and_nothing_is_written() {
    let (directory, path, user) = file();
    let before = std::fs::read(&path).unwrap();
    for database in [&user, &Database::of(&[cities()]).unwrap()] {
        for sql in WRITES.iter().chain(&READS) {
            let found = ask(database, sql);
            assert!(found.is_err(), "{sql}: {found:?}");
        }
        let left = ask(database, "SELECT count(*), sum(people) FROM city").unwrap();
        assert_eq!(left.rows, [[Cell::Integer(200), Cell::Integer(19_900_000)]]);
    }
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(directory.path().read_dir().unwrap().count(), 1, "no journal beside it");
    assert!(!PathBuf::from("/tmp/autoact-hostile.sqlite").exists() && !PathBuf::from("/tmp/autoact-hostile").exists());
}

#[test]
fn a_refusal_says_what_is_not_allowed() {
    let database = Database::of(&[cities()]).unwrap();
    for (sql, what) in [
        ("DELETE FROM city", "`DELETE`"),
        ("ATTACH 'x' AS y", "`ATTACH`"),
        ("PRAGMA query_only = OFF", "`PRAGMA query_only`"),
        ("SELECT load_extension('x')", "the function `load_extension`"),
        ("SELECT 1; SELECT 2", "a second statement"),
        ("BEGIN", "a transaction"),
    ] {
        assert_eq!(ask(&database, sql), Err(QueryError::Refused(what.to_owned())), "{sql}");
    }
}

#[test]
fn what_does_not_end_is_ended() {
    let database = Database::of(&[cities()]).unwrap();
    for sql in ENDLESS {
        let begun = Instant::now();
        assert_eq!(ask(&database, sql), Err(QueryError::TooLong), "{sql}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{sql} took {:?}", begun.elapsed());
    }
}

#[test]
fn what_is_hungry_is_refused_or_ended() {
    let database = Database::of(&[cities()]).unwrap();
    for sql in HUNGRY {
        let found = database.query(sql, Instant::now() + Duration::from_secs(5), BOUNDS);
        assert!(matches!(found, Err(QueryError::TooMuch(_) | QueryError::TooLong)), "{sql}: {found:?}");
        // what it took is given back
        assert!(ask(&database, "SELECT count(*) FROM city ORDER BY 1").is_ok());
    }
}

#[test]
fn what_only_reads_is_answered() {
    let database = Database::of(&[cities()]).unwrap();
    for sql in [
        "SELECT name FROM city ORDER BY people DESC LIMIT 1;",
        "WITH big AS (SELECT * FROM city WHERE people > 100) SELECT count(*) FROM big -- all",
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 10) SELECT sum(x) FROM n",
        "SELECT upper(name), round(area), date('2024-02-29', '+1 year'), json_object('a', 1) FROM city",
        "SELECT name, rank() OVER (ORDER BY people) FROM city",
        "SELECT name FROM pragma_table_info('city')",
        "PRAGMA table_info(city)",
        "SELECT sql FROM sqlite_schema",
        "VALUES (1), (2)",
        "EXPLAIN QUERY PLAN SELECT * FROM city",
    ] {
        let found = ask(&database, sql);
        assert!(found.as_ref().is_ok_and(|found| !found.rows.is_empty()), "{sql}: {found:?}");
    }
    let all = ask(&database, "SELECT * FROM city").unwrap();
    assert_eq!((all.rows.len(), all.complete), (100, false));
    assert_eq!(all.rows[1], [Cell::Text("City 1".into()), Cell::Integer(1000), Cell::Real(1.5)]);
    assert_eq!(ask(&database, "SELECT * FROM town"), Err(QueryError::NoTable("town".into())));
    assert_eq!(ask(&database, "SELECT town FROM city"), Err(QueryError::NoColumn("town".into())));
    assert!(matches!(ask(&database, "SELECT * FROM city WHERE name = \"City 1\""), Err(QueryError::Wrong(_))));
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("text");
    std::fs::write(&text, "no database, but long enough to be taken for one at first sight, if that were all").unwrap();
    assert!(Database::open(&text).is_err());
    assert!(Database::open(&directory.path().join("absent")).is_err());
    assert!(!directory.path().join("absent").exists());
    rusqlite::Connection::open(directory.path().join("empty")).unwrap().execute_batch("PRAGMA user_version = 1").unwrap();
    assert!(Database::open(&directory.path().join("empty")).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_query_panics(words in prop::collection::vec(prop::sample::select(vec![
        "SELECT", "*", "FROM", "city", "name", "people", "WHERE", "(", ")", "'", "\"", ",", "GROUP BY", "ORDER BY", "count(*)", "1", "=",
        "UNION", "WITH", "AS", "--", ";", "é", "\0", "PRAGMA", "DELETE", "?1", "JOIN", "ON", "x''", "/*",
    ]), 0..12)) {
        thread_local!(static DATABASE: Database = Database::of(&[cities()]).unwrap());
        DATABASE.with(|database| {
            let _ = ask(database, &words.join(" "));
            let left = ask(database, "SELECT count(*) FROM city").unwrap();
            assert_eq!(left.rows, [[Cell::Integer(200)]]);
        });
    }
}
