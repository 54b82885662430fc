//! `tools.toml`: the tool library as a user writes it. Every mistake is found before one is
//! reported. An entry is read in `entry`, its key `run` in `run`.

mod entry;
mod run;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use autoact_base::error::line;
use autoact_trajectory::{FINISH, MAX_LIBRARY_TOOLS};

pub(crate) use self::entry::{Definition, LONGEST_TEXT, prose};
pub(crate) use self::run::Implementation;
pub use self::run::MOST_SENTENCES;
use crate::kinds::{ELSEWHERE, Kinds, ToolSet};
use crate::text::quoted;

/// The library that comes with the atlas.
pub const BUNDLED_TOOLS: &str = include_str!("../../../../corpora/atlas/tools.toml");

/// A tools file that cannot be used.
#[derive(Debug)]
pub struct LibraryError {
    origin: String,
    mistakes: Vec<String>,
    /// As [`Parsed::data`].
    data: Vec<PathBuf>,
}

impl LibraryError {
    pub(crate) fn new(origin: &str, mistakes: Vec<String>) -> LibraryError {
        LibraryError { origin: origin.to_owned(), mistakes, data: Vec::new() }
    }

    /// The same of a file whose entries name these files and directories.
    pub(crate) fn with_data(mut self, data: &[PathBuf]) -> LibraryError {
        self.data.extend_from_slice(data);
        self
    }

    /// The files with data that entries name, as of now: what is wrong may be wrong there, so the
    /// library may be right when one has changed.
    pub fn data_files(&self) -> Vec<PathBuf> {
        data_files(&self.data)
    }

    /// One text per mistake, each naming its entry.
    pub fn mistakes(&self) -> &[String] {
        &self.mistakes
    }
}

impl fmt::Display for LibraryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the tool library `{}` has {} mistake(s):", self.origin, self.mistakes.len())?;
        for mistake in &self.mistakes {
            write!(f, "\n  {mistake}")?;
        }
        Ok(())
    }
}

impl std::error::Error for LibraryError {}

/// What a library's files say.
#[derive(Default)]
pub(crate) struct Parsed {
    pub(crate) definitions: Vec<Definition>,
    pub(crate) sets: Vec<ToolSet>,
    /// The files, and directories of tables, that entries name and that are read with the library.
    pub(crate) data: Vec<PathBuf>,
}

/// The files of those: of a directory its tables.
pub(crate) fn data_files(data: &[PathBuf]) -> Vec<PathBuf> {
    data.iter().flat_map(|path| autoact_tables::table_files(path)).collect()
}

/// How a file is read.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    /// What mistakes call the file.
    pub(crate) origin: &'a str,
    /// The directory that programs and files with a relative path start from.
    pub(crate) base: Option<&'a Path>,
    pub(crate) kinds: &'a dyn Kinds,
    /// Whether the file only adds to another one, which has what every library needs.
    pub(crate) adds: bool,
}

impl Reader<'_> {
    /// Reads a file.
    pub(crate) fn read(&self, text: &str) -> Result<Parsed, LibraryError> {
        let refused = |mistakes| LibraryError::new(self.origin, mistakes);
        let mut document: toml::Table =
            toml::from_str(text).map_err(|error| refused(vec![format!("not TOML: {}", error.to_string().trim())]))?;
        let mut mistakes = Vec::new();
        let tools = section(&mut document, "tool", &mut mistakes);
        let data: Vec<PathBuf> = tools.iter().flat_map(|entry| self.data(entry)).collect();
        let sections: Vec<_> = self.kinds.sections().iter().map(|name| (*name, section(&mut document, name, &mut mistakes))).collect();
        for key in document.keys() {
            if ELSEWHERE.contains(&key.as_str()) {
                mistakes.push(format!("entries `[[{key}]]` are read by tool-agent and `autoact tools` alone"));
            } else {
                let sections = sections.iter().map(|(name, _)| format!(", `[[{name}]]`")).collect::<String>();
                mistakes.push(format!("unknown key `{}`; expected entries `[[tool]]`{sections}", quoted(key)));
            }
        }
        let definitions = self.tools(tools, &mut mistakes);
        let mut sets = Vec::new();
        for (name, entries) in sections {
            for (at, entry) in entries.into_iter().enumerate() {
                let place = place(name, at, &entry);
                match self.kinds.set(name, entry, self.base) {
                    Ok(set) => sets.push(set),
                    Err(all) => mistakes.extend(all.into_iter().map(|mistake| format!("{place}: {mistake}"))),
                }
            }
        }
        if mistakes.is_empty() { Ok(Parsed { definitions, sets, data }) } else { Err(refused(mistakes).with_data(&data)) }
    }

    /// The data that an entry names. It may be wrong in all else.
    fn data(&self, entry: &toml::Table) -> Vec<PathBuf> {
        let Some(run) = entry.get("run").and_then(toml::Value::as_table) else { return Vec::new() };
        let preset = run.get("kind").and_then(toml::Value::as_str).and_then(|kind| self.preset(kind));
        let named = preset.into_iter().flat_map(|preset| preset.data).filter_map(|key| run.get(*key));
        let paths = named.flat_map(|value| value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice));
        let path = |path: &str| self.base.map_or_else(|| PathBuf::from(path), |base| base.join(path));
        paths.filter_map(toml::Value::as_str).map(path).collect()
    }

    fn tools(&self, entries: Vec<toml::Table>, mistakes: &mut Vec<String>) -> Vec<Definition> {
        let entries_found = entries.len();
        let mut definitions: Vec<Definition> = Vec::new();
        let mut names: HashMap<String, usize> = HashMap::new();
        let mut finish_named = false;
        for (at, entry) in entries.into_iter().enumerate() {
            let name = entry.get("name").and_then(|name| name.as_str()).map(quoted);
            finish_named |= name.as_deref() == Some(FINISH);
            let place = place("tool", at, &entry);
            let mut entry_mistakes = Vec::new();
            if let Some(name) = name
                && let Some(first) = names.insert(name, at + 1)
            {
                entry_mistakes.push(format!("its name is already that of tool {first}"));
            }
            match entry.try_into() {
                Ok(raw) => definitions.extend(self.define(raw, &mut entry_mistakes)),
                Err(error) => entry_mistakes.push(line(&error)),
            }
            mistakes.extend(entry_mistakes.into_iter().map(|mistake| format!("{place}: {mistake}")));
        }
        if entries_found > MAX_LIBRARY_TOOLS {
            mistakes.push(format!("it has {entries_found} tools; expected at most {MAX_LIBRARY_TOOLS}"));
        }
        if !finish_named && !self.adds {
            mistakes.push(format!("there is no tool `{FINISH}` (kind `finish`), without which no question can be answered"));
        }
        definitions
    }
}

/// The entries of a section.
fn section(document: &mut toml::Table, name: &str, mistakes: &mut Vec<String>) -> Vec<toml::Table> {
    let mut tables = Vec::new();
    match document.remove(name) {
        Some(toml::Value::Array(entries)) => {
            for (at, entry) in entries.into_iter().enumerate() {
                match entry {
                    toml::Value::Table(entry) => tables.push(entry),
                    _ => mistakes.push(format!("{name} {}: expected an entry `[[{name}]]`", at + 1)),
                }
            }
        }
        Some(_) => mistakes.push(format!("`{name}` is not a list of entries; expected `[[{name}]]`")),
        None => {}
    }
    tables
}

/// What mistakes call an entry.
fn place(section: &str, at: usize, entry: &toml::Table) -> String {
    match entry.get("name").and_then(toml::Value::as_str) {
        Some(name) => format!("{section} {} (`{}`)", at + 1, quoted(name)),
        None => format!("{section} {}", at + 1),
    }
}
