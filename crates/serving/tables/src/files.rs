//! Files of tables.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::graph::Triple;
use crate::records::{Format, Mistake, records};
use crate::table::Table;

/// The longest file of a table. All of it is held in memory while it is read.
pub const MAX_FILE_BYTES: u64 = 64 << 20;
/// The most tables: more cannot be told to a model.
const MAX_TABLES: usize = 200;

/// What is wrong with files of tables, one text per mistake, each with its file and line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct FileMistakes(pub Vec<String>);

impl fmt::Display for FileMistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}

/// Reads the tables of files and directories. Of a directory all `.csv` and `.tsv` files are read,
/// in the order of their names.
///
/// # Errors
/// All mistakes together: files that cannot be read, broken rows, two tables of one name.
pub fn read_tables(paths: &[PathBuf]) -> Result<Vec<Table>, FileMistakes> {
    let mut mistakes = Vec::new();
    let mut tables: Vec<Table> = Vec::new();
    let files: Vec<PathBuf> = paths.iter().flat_map(|path| expand(path, &mut mistakes)).collect();
    if files.len() > MAX_TABLES {
        mistakes.push(format!("there are {} tables; expected at most {MAX_TABLES}", files.len()));
        return Err(FileMistakes(mistakes));
    }
    for path in &files {
        let Some(format) = format(path) else {
            mistakes.push(format!("`{}` is no table; expected a file that ends in `.csv` or `.tsv`", path.display()));
            continue;
        };
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        match read(path).map(|text| Table::parse(&name, &text, format)) {
            Err(mistake) => mistakes.push(mistake),
            Ok(Err(wrong)) => mistakes.extend(placed(path, wrong)),
            Ok(Ok(table)) if tables.iter().any(|other| other.name.eq_ignore_ascii_case(&table.name)) => {
                mistakes.push(format!("`{}`: there is another table `{}`; rename the file", path.display(), table.name));
            }
            Ok(Ok(table)) => tables.push(table),
        }
    }
    if tables.is_empty() && mistakes.is_empty() {
        mistakes.push("there is no table; expected files that end in `.csv` or `.tsv`".to_owned());
    }
    if mistakes.is_empty() { Ok(tables) } else { Err(FileMistakes(mistakes)) }
}

/// Reads a file of facts: subject, relation and object, separated by tabs, without a header.
///
/// # Errors
/// All mistakes together.
pub fn read_triples(path: &Path) -> Result<Vec<Triple>, FileMistakes> {
    let text = read(path).map_err(|mistake| FileMistakes(vec![mistake]))?;
    let records = records(&text, Format::Tsv).map_err(|mistake| FileMistakes(placed(path, vec![mistake])))?;
    let mut triples = Vec::new();
    let mut mistakes = Vec::new();
    for record in records {
        match <[String; 3]>::try_from(record.cells) {
            Ok([subject, relation, object]) if ![&subject, &relation, &object].iter().any(|cell| cell.is_empty()) => {
                triples.push(Triple { subject, relation, object });
            }
            _ => mistakes.push(Mistake::new(record.line, "expected three cells that are not empty: subject, relation and object")),
        }
    }
    if mistakes.is_empty() { Ok(triples) } else { Err(FileMistakes(placed(path, mistakes))) }
}

fn placed(path: &Path, mistakes: Vec<Mistake>) -> Vec<String> {
    mistakes.into_iter().map(|mistake| format!("`{}`, {mistake}", path.display())).collect()
}

/// The files that [`read_tables`] reads of a path: of a directory its tables, otherwise the path.
pub fn table_files(path: &Path) -> Vec<PathBuf> {
    expand(path, &mut Vec::new())
}

/// The files that a path stands for.
fn expand(path: &Path, mistakes: &mut Vec<String>) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_owned()];
    }
    let entries = match path.read_dir() {
        Ok(entries) => entries,
        Err(error) => {
            mistakes.push(format!("cannot read `{}`: {error}", path.display()));
            return Vec::new();
        }
    };
    let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> = files.filter(|path| path.is_file() && format(path).is_some()).collect();
    files.sort();
    files
}

fn format(path: &Path) -> Option<Format> {
    match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "csv" => Some(Format::Csv),
        "tsv" => Some(Format::Tsv),
        _ => None,
    }
}

fn read(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let metadata = path.metadata().map_err(|error| format!("cannot read `{shown}`: {error}"))?;
    if !metadata.is_file() {
        return Err(format!("`{shown}` is not a file"));
    }
    if metadata.len() > MAX_FILE_BYTES {
        return Err(format!("`{shown}` has {} bytes; expected at most {MAX_FILE_BYTES}: make it an SQLite file", metadata.len()));
    }
    let bytes = std::fs::read(path).map_err(|error| format!("cannot read `{shown}`: {error}"))?;
    String::from_utf8(bytes).map_err(|error| {
        let line = error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("`{shown}`, line {line}: it is not UTF-8; convert it, for example with `iconv -t UTF-8`")
    })
}
