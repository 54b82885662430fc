//! Reads the library again when what it is made of changes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use autoact_base::FileWatch;
use autoact_tools::{LibraryError, ToolLibrary};
use tokio::time::Instant;

use crate::library::{Current, Origin, Tools, check_sandboxes, report};

/// How often sets of tools are asked again that are out of service, or that can change elsewhere.
const ASK_AGAIN: Duration = Duration::from_secs(30);

/// Looks whether the library has changed.
pub(crate) struct Watcher {
    origin: Origin,
    watch: FileWatch,
    /// The files that are watched.
    files: Vec<PathBuf>,
    asked: Instant,
    /// Files that a library with mistakes names: what is wrong may be wrong there.
    wanted: Vec<PathBuf>,
    /// The mistakes that the log has.
    told: Option<String>,
}

/// What came of reading it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// It is in use.
    Taken,
    /// It has mistakes: the one before stays in use.
    Refused,
}

/// Why a library is not taken.
struct Refusal {
    error: String,
    files: Vec<PathBuf>,
}

impl Watcher {
    /// Of a library that was read just now.
    pub(crate) fn new(origin: Origin, library: &ToolLibrary) -> Watcher {
        let files = files(&origin, library, &[]);
        let watch = FileWatch::new(files.clone());
        Watcher { origin, watch, files, asked: Instant::now(), wanted: Vec::new(), told: None }
    }

    /// Reads the library again if its files have changed, or if sets of it may have. One with
    /// mistakes is not taken, and the log says what is wrong. `None`: there was no reason to read.
    pub(crate) async fn look(&mut self, tools: &Tools) -> Option<Reading> {
        let before = tools.current();
        let files = files(&self.origin, &before.library, &self.wanted);
        let same_files = files == self.files;
        self.files.clone_from(&files);
        let changed = self.watch.look_at(files);
        let due = !before.library.sets().is_empty() && self.asked.elapsed() >= ASK_AGAIN;
        if !changed && !due && !self.origin.sources.has_news() {
            return None;
        }
        self.asked = Instant::now();
        // that other files are watched from now on is a reason to read, and not to speak of it
        let news = changed && same_files;
        let origin = self.origin.clone();
        match tokio::task::spawn_blocking(move || read(&origin)).await {
            Ok(Ok(read)) => {
                if news || read.digest != before.digest || state(&read.library) != state(&before.library) {
                    tracing::info!(tools = read.library.specs().len(), "the tool library was read again");
                    report(&read.library);
                }
                tools.replace(read);
                (self.wanted, self.told) = (Vec::new(), None);
                Some(Reading::Taken)
            }
            Ok(Err(Refusal { error, files })) => {
                if news || self.told.as_ref() != Some(&error) {
                    tracing::error!(error, "the tool library has mistakes; the last one stays in use");
                }
                (self.wanted, self.told) = (files, Some(error));
                Some(Reading::Refused)
            }
            Err(error) => {
                tracing::error!(%error, "reading the tool library broke; the last one stays in use");
                Some(Reading::Refused)
            }
        }
    }
}

fn read(origin: &Origin) -> Result<Current, Refusal> {
    let mistakes = |error: LibraryError| Refusal { error: error.to_string(), files: error.data_files() };
    let library = origin.read().map_err(mistakes)?;
    check_sandboxes(&library).map_err(|error| Refusal { error: error.to_string(), files: library.files() })?;
    Ok(Current::new(Arc::new(library)))
}

/// The files that the library is made of, and those that the next one may be made of. Each once.
fn files(origin: &Origin, library: &ToolLibrary, wanted: &[PathBuf]) -> Vec<PathBuf> {
    let own = [&origin.file].into_iter().chain(&origin.own).cloned();
    let mut files: Vec<PathBuf> = own.chain(library.files()).chain(wanted.iter().cloned()).collect();
    files.sort();
    files.dedup();
    files
}

/// What of the sets is worth a line in the log when it changes.
fn state(library: &ToolLibrary) -> Vec<(&str, usize, Option<&str>)> {
    library.sets().iter().map(|set| (set.name.as_str(), set.tools.len(), set.out_of_service.as_deref())).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;

    use autoact_http_tools::{HttpClient, HttpClientOptions};
    use autoact_tool_sources::Sources;
    use autoact_tools::Knowledge;
    use tokio::runtime::Handle;

    use super::*;

    const FINISH: &str = "[[tool]]\nname = \"Finish\"\ndefinition = \"Ends.\"\nusage = \"Finish[answer]\"\nrun = { kind = \"finish\" }\n";
    const TABLES: &str = "[[tool]]\nname = \"Data\"\nrun = { kind = \"database\", tables = [\"tables\"] }\n";
    const HOLIDAYS: &str = "[[tool]]\nname = \"Holidays\"\nrun = { kind = \"holidays\", table = \"holidays.toml\" }\n";
    const GRAPH: &str = "[[tool]]\nname = \"Graph\"\nrun = { kind = \"knowledge_graph\", triples = \"facts.tsv\" }\n";

    struct World {
        directory: tempfile::TempDir,
        tools: Tools,
        watcher: Watcher,
    }

    impl World {
        /// A library of two tables, and files of these names.
        fn new(entries: &str, files: &[(&str, &str)]) -> World {
            let directory = tempfile::tempdir().unwrap();
            let write = |name: &str, text: &str| put(directory.path(), name, text);
            write("tables/rivers.csv", "name,length\nLoire,1006\n");
            files.iter().for_each(|(name, text)| write(name, text));
            write("tools.toml", &format!("{entries}{FINISH}"));
            let client = HttpClient::new(Handle::current(), HttpClientOptions::default()).unwrap();
            let origin = Origin {
                file: directory.path().join("tools.toml"),
                own: None,
                knowledge: Knowledge::new(None, None),
                sources: Arc::new(Sources::new(client)),
            };
            let library = Arc::new(origin.read().unwrap());
            World { directory, watcher: Watcher::new(origin, &library), tools: Tools::from(library) }
        }

        fn write(&self, name: &str, text: &str) {
            put(self.directory.path(), name, text);
        }

        async fn look(&mut self) -> Option<Reading> {
            self.watcher.look(&self.tools).await
        }

        /// What came of looks until one has no reason to read: files that are new are read twice.
        async fn settle(&mut self) -> Vec<Reading> {
            let mut all = Vec::new();
            while let Some(reading) = self.look().await {
                all.push(reading);
                assert!(all.len() <= 2, "{all:?}");
            }
            all
        }

        fn definition(&self, name: &str) -> String {
            self.tools.library().spec(name).map(|spec| spec.definition.clone()).unwrap_or_default()
        }
    }

    fn put(directory: &Path, name: &str, text: &str) {
        let path = directory.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[tokio::test]
    async fn data_that_changes_is_read_again() {
        let mut world = World::new(TABLES, &[]);
        assert_eq!(world.look().await, None);
        world.write("tables/rivers.csv", "name,length,country\nLoire,1006,France\n");
        assert_eq!(world.look().await, Some(Reading::Taken));
        assert!(world.definition("Data").contains("country"), "{}", world.definition("Data"));
        assert_eq!(world.look().await, None);
        // a table that is new in its directory, and what is no table
        world.write("tables/towns.csv", "name\nTours\n");
        world.write("tables/notes.txt", "nothing");
        assert_eq!(world.settle().await, [Reading::Taken]);
        assert!(world.definition("Data").contains("towns"), "{}", world.definition("Data"));
        world.write("tables/notes.txt", "nothing again");
        assert_eq!(world.look().await, None);
        std::fs::remove_file(world.directory.path().join("tables/towns.csv")).unwrap();
        assert_eq!(world.settle().await, [Reading::Taken]);
        assert!(!world.definition("Data").contains("towns"));
    }

    #[tokio::test]
    async fn broken_data_keeps_the_library_until_it_is_mended() {
        let mut world = World::new(&format!("{TABLES}{GRAPH}"), &[("facts.tsv", "Loire\tcountry\tFrance\n")]);
        let before = world.definition("Data");
        for (name, broken, right) in [
            ("tables/rivers.csv", "name,length\nLoire\n", "name,length\nLoire,1010\n"),
            ("facts.tsv", "Loire\n", "Loire\tcountry\tGermany\n"),
        ] {
            world.write(name, broken);
            assert_eq!(world.settle().await[0], Reading::Refused, "{name}");
            assert_eq!(world.definition("Data"), before);
            world.write(name, right);
            assert_eq!(world.settle().await[0], Reading::Taken, "{name}");
        }
    }

    #[tokio::test]
    async fn a_new_entry_is_taken_as_soon_as_its_data_is_right() {
        let mut world = World::new(TABLES, &[]);
        world.write("tools.toml", &format!("{TABLES}{HOLIDAYS}{FINISH}"));
        assert_eq!(world.settle().await, [Reading::Refused, Reading::Refused], "there is no such file");
        world.write("holidays.toml", "region = 7\n");
        assert_eq!(world.settle().await, [Reading::Refused]);
        assert_eq!(world.definition("Holidays"), "");
        let table = "region = \"Utopia\"\n[[year]]\nyear = 2026\nsource = \"the law\"\nholidays = []\n";
        world.write("holidays.toml", table);
        assert_eq!(world.settle().await, [Reading::Taken]);
        assert!(world.definition("Holidays").contains("Utopia"), "{}", world.definition("Holidays"));
    }
}
