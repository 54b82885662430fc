//! The tools of a group, by name.

use std::collections::HashSet;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use autoact_sandbox::Sandbox;
use autoact_trajectory::{
    Action, Arguments, MAX_LIBRARY_TOOLS, MAX_SOURCES_BYTES, NewArtifact, Source, ToolBackground, ToolSpec, Trajectory, arguments_line,
    bound_sources,
};

use crate::again::{earlier, failure, told};
use crate::builtin::{Calculate, Finish, Lookup, Retrieve, Search};
use crate::command::Command;
use crate::corpus::Corpus;
use crate::file::{BUNDLED_TOOLS, Definition, Implementation, LibraryError, Parsed, Reader, data_files};
use crate::kinds::{Kinds, OwnKinds, ToolSet};
use crate::knowledge::Knowledge;
use crate::names::similar;
use crate::text::{cut, one_line, quoted, several_lines};
use crate::tool::{Caller, Tool, ToolCall, ToolError, ToolOutput};
use crate::validator::Validator;

/// All definitions and schemas together: they are told in one message, of at most 16 MiB.
const MAX_BYTES: usize = 12 << 20;
/// What a spec's numbers and tags take in a message, at most.
const SPEC_BYTES: usize = 64;
/// Names that are told of a library.
const MOST_TOLD: usize = 16;

/// What a tool returned, in the form the group reads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observation {
    /// One line, or several of a tool whose spec says so; never longer than the tool's bound.
    pub text: String,
    /// The tool failed; the text says how.
    pub is_error: bool,
    /// The text was cut to the tool's bound and ends in ` … (cut)`.
    pub truncated: bool,
    /// The tool was not run: an earlier step of the task has the same call, and the text is what it
    /// returned.
    pub refers_back: bool,
    /// What comes with it for people.
    pub artifacts: Vec<NewArtifact>,
    /// The documents that the text shows, within the bounds of an event.
    pub sources: Vec<Source>,
}

/// A tool that the library does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownTool {
    /// What was asked for.
    pub name: String,
    /// What there is, in the library's order.
    pub known: Vec<String>,
    /// Which of those were probably meant.
    pub similar: Vec<String>,
}

impl fmt::Display for UnknownTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no tool `{}`", quoted(&self.name))?;
        if !self.similar.is_empty() {
            write!(f, ", did you mean `{}`", self.similar.join("`, `"))?;
        }
        let shown = self.known.len().min(MOST_TOLD);
        write!(f, "; the library has `{}`", self.known[..shown].join("`, `"))?;
        match self.known.len() - shown {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

impl std::error::Error for UnknownTool {}

/// A tool from code that cannot be added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddToolError {
    /// Its name is taken.
    #[error("the library already has a tool `{name}`")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// Its schema cannot be used.
    #[error("the schema of the tool `{name}`: {reason}")]
    Schema {
        /// The tool.
        name: String,
        /// What is wrong.
        reason: String,
    },
}

#[derive(Clone)]
enum Entry {
    Defined(Box<Definition>),
    Added(Arc<dyn Tool>, Option<Arc<Validator>>),
}

impl Entry {
    fn spec(&self) -> &ToolSpec {
        match self {
            Entry::Defined(definition) => &definition.spec,
            Entry::Added(tool, _) => tool.spec(),
        }
    }

    /// Whether a call that the task has made already is run again.
    fn runs_again(&self) -> bool {
        match self {
            Entry::Defined(definition) => definition.run_again,
            Entry::Added(..) => true,
        }
    }

    fn validator(&self) -> Option<&Validator> {
        match self {
            Entry::Defined(definition) => definition.validator.as_deref(),
            Entry::Added(_, validator) => validator.as_deref(),
        }
    }
}

/// All tools of a group. Immutable once built, and safe to share.
pub struct ToolLibrary {
    entries: Vec<Entry>,
    specs: Vec<ToolSpec>,
    /// In the order of `specs`.
    tools: Vec<Arc<dyn Tool>>,
    knowledge: Knowledge,
    /// Where tools came from that are not the file's own.
    sets: Vec<ToolSet>,
    /// What entries name and was read with the library.
    data: Vec<PathBuf>,
}

impl fmt::Debug for ToolLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolLibrary").field("tools", &self.names()).finish_non_exhaustive()
    }
}

impl ToolLibrary {
    /// Reads a `tools.toml`; its built-in tools work on `knowledge`, such as a corpus. All mistakes
    /// are reported together.
    pub fn load(path: impl AsRef<Path>, knowledge: impl Into<Knowledge>) -> Result<ToolLibrary, LibraryError> {
        ToolLibrary::open(path.as_ref(), None, knowledge, &OwnKinds)
    }

    /// [`load`](Self::load) with kinds of other crates, and with the entries of a second file, which
    /// need not exist.
    ///
    /// # Errors
    /// All mistakes of a file; names that two entries have.
    pub fn open(
        path: &Path,
        added: Option<&Path>,
        knowledge: impl Into<Knowledge>,
        kinds: &dyn Kinds,
    ) -> Result<ToolLibrary, LibraryError> {
        let Parsed { mut definitions, mut sets, mut data } = read(path, kinds, false)?.unwrap_or_default();
        if let Some(added) = added
            && let Some(more) = read(added, kinds, true).map_err(|error| error.with_data(&data))?
        {
            definitions.extend(more.definitions);
            sets.extend(more.sets);
            data.extend(more.data);
        }
        let mut mistakes = Vec::new();
        let mut names = HashSet::new();
        for Definition { spec, .. } in &definitions {
            if !names.insert(spec.name.clone()) {
                mistakes.push(format!("the name `{}` is that of two tools", spec.name));
            }
        }
        let mut library = ToolLibrary::build(entries(definitions), knowledge.into());
        for set in &sets {
            for error in set.tools.iter().filter_map(|tool| library.add(tool.clone()).err()) {
                let fix = if matches!(error, AddToolError::Duplicate { .. }) { "; set another `prefix`" } else { "" };
                mistakes.push(format!("{} `{}`: {error}{fix}", set.section, set.name));
            }
        }
        if library.specs.len() > MAX_LIBRARY_TOOLS {
            mistakes.push(format!("there are {} tools; expected at most {MAX_LIBRARY_TOOLS}: choose with `only`", library.specs.len()));
        }
        library.sets = sets;
        let bytes = library.bytes();
        if bytes > MAX_BYTES {
            let (found, most) = (bytes >> 20, MAX_BYTES >> 20);
            mistakes.push(format!("its definitions and schemas take {found} MiB; expected at most {most}: choose with `only`"));
        }
        let origin = added.unwrap_or(path).display().to_string();
        if !mistakes.is_empty() {
            return Err(LibraryError::new(&origin, mistakes).with_data(&data));
        }
        library.data = data;
        Ok(library)
    }

    /// [`load`](Self::load) from a text; `origin` is what mistakes call it.
    pub fn parse(text: &str, origin: &str, knowledge: impl Into<Knowledge>) -> Result<ToolLibrary, LibraryError> {
        let reader = Reader { origin, base: None, kinds: &OwnKinds, adds: false };
        Ok(ToolLibrary::build(entries(reader.read(text)?.definitions), knowledge.into()))
    }

    /// The library that comes with the atlas ([`BUNDLED_TOOLS`]), over any knowledge.
    pub fn bundled(knowledge: impl Into<Knowledge>) -> Result<ToolLibrary, LibraryError> {
        ToolLibrary::parse(BUNDLED_TOOLS, "corpora/atlas/tools.toml", knowledge)
    }

    /// The same tools over another corpus.
    pub fn with_corpus(&self, corpus: &Arc<Corpus>) -> ToolLibrary {
        ToolLibrary::build(self.entries.clone(), self.knowledge.with_corpus(corpus))
    }

    /// The same tools, with `Retrieve` showing so many sentences of a page at most, those that tell most
    /// of what is looked for, unless its entry says how many.
    #[must_use]
    pub fn showing(&self, most: NonZeroUsize) -> ToolLibrary {
        let mut entries = self.entries.clone();
        for entry in &mut entries {
            if let Entry::Defined(definition) = entry
                && let Implementation::Retrieve { sentences: sentences @ None } = &mut definition.run
            {
                *sentences = Some(most);
                definition.run_again = true; // with another thought it shows other sentences
            }
        }
        let (sets, data) = (self.sets.clone(), self.data.clone());
        ToolLibrary { sets, data, ..ToolLibrary::build(entries, self.knowledge.clone()) }
    }

    /// The library with one more tool, written in Rust.
    ///
    /// # Errors
    /// Its name is taken, or its schema cannot be used.
    pub fn with_tool(mut self, tool: Arc<dyn Tool>) -> Result<ToolLibrary, AddToolError> {
        self.add(tool)?;
        Ok(self)
    }

    fn add(&mut self, tool: Arc<dyn Tool>) -> Result<(), AddToolError> {
        let spec = tool.spec().clone();
        if self.spec(&spec.name).is_some() {
            return Err(AddToolError::Duplicate { name: spec.name });
        }
        let validator = spec.schema.as_ref().map(Validator::new).transpose();
        let validator = validator.map_err(|reason| AddToolError::Schema { name: spec.name.clone(), reason })?.map(Arc::new);
        self.entries.push(Entry::Added(tool.clone(), validator));
        self.specs.push(spec);
        self.tools.push(tool);
        Ok(())
    }

    fn build(entries: Vec<Entry>, knowledge: Knowledge) -> ToolLibrary {
        let named = |is_kind: fn(&Implementation) -> bool| {
            entries.iter().filter_map(move |entry| match entry {
                Entry::Defined(definition) if is_kind(&definition.run) => Some(definition.spec.name.clone()),
                _ => None,
            })
        };
        let lookup = named(|run| matches!(run, Implementation::Lookup)).next();
        let retrieve: Vec<String> = named(|run| matches!(run, Implementation::Retrieve { .. })).collect();
        let make = |entry: &Entry| -> Arc<dyn Tool> {
            let Definition { spec, run, made, .. } = match entry {
                Entry::Added(tool, _) => return tool.clone(),
                Entry::Defined(definition) => Definition::clone(definition),
            };
            if let Some(tool) = made {
                return tool;
            }
            let knowledge = knowledge.clone();
            match run {
                Implementation::Search => Arc::new(Search::new(spec, knowledge)),
                Implementation::Retrieve { sentences } => {
                    let retrieve = Retrieve::new(spec, knowledge, lookup.clone());
                    Arc::new(sentences.into_iter().fold(retrieve, Retrieve::showing))
                }
                Implementation::Lookup => Arc::new(Lookup::new(spec, knowledge, retrieve.clone())),
                Implementation::Calculate => Arc::new(Calculate::over(spec, knowledge)),
                Implementation::Finish => Arc::new(Finish::new(spec)),
                Implementation::NotFound => Arc::new(Finish::not_found(spec)),
                Implementation::Command { program, args, env, sandbox } => Arc::new(Command::new(spec, program, args, env, sandbox)),
                Implementation::Other { kind, .. } => unreachable!("`{kind}` made its tool when the file was read"),
            }
        };
        let tools: Vec<Arc<dyn Tool>> = entries.iter().map(make).collect();
        let specs = entries.iter().map(|entry| entry.spec().clone()).collect();
        ToolLibrary { entries, specs, tools, knowledge, sets: Vec::new(), data: Vec::new() }
    }

    /// The sandboxes of its programs, by tool.
    pub fn sandboxes(&self) -> impl Iterator<Item = (&str, &Sandbox)> {
        self.tools.iter().filter_map(|tool| Some((tool.spec().name.as_str(), tool.sandbox()?)))
    }

    /// The tools that run a program, or parse a page, without a sandbox.
    pub fn trusted(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().filter(|tool| tool.is_trusted()).map(|tool| tool.spec().name.as_str())
    }

    /// By this name a task asks for the group's own corpus; empty: there is none.
    pub fn corpus_name(&self) -> &str {
        self.knowledge.name()
    }

    /// The sets of tools that come from elsewhere.
    pub fn sets(&self) -> &[ToolSet] {
        &self.sets
    }

    /// The files beside its own that it was made of: documents of sets, and data that entries name,
    /// such as tables. Of a directory of tables those that are there now.
    pub fn files(&self) -> Vec<PathBuf> {
        let of_sets = self.sets.iter().flat_map(|set| set.files.iter().cloned());
        of_sets.chain(data_files(&self.data)).collect()
    }

    /// What its specs and what else is known of its tools take in a message, about.
    fn bytes(&self) -> usize {
        let spec = |spec: &ToolSpec| {
            let schema = spec.schema.as_ref().map_or(0, |schema| schema.as_str().len());
            let examples: usize = spec.examples.iter().map(String::len).sum();
            2 * spec.name.len() + spec.definition.len() + spec.usage.len() + schema + examples + SPEC_BYTES
        };
        let background = |known: &ToolBackground| known.title.len() + known.about.len() + known.details.len();
        let known = self.sets.iter().flat_map(|set| set.background.values().map(background));
        self.specs.iter().map(spec).chain(known).sum()
    }

    /// Every tool's spec, in the order of the file.
    pub fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }

    /// The tools that a task can do without, and what else is known of them: where there are many, it
    /// is given those that fit its question. In the order of the file.
    pub fn optional(&self) -> impl Iterator<Item = (&str, ToolBackground)> {
        let optional = |entry: &&Entry| match entry {
            Entry::Defined(definition) => !definition.always && !definition.spec.is_terminal(),
            Entry::Added(tool, _) => !tool.spec().is_terminal(),
        };
        let background = |name: &str| self.sets.iter().find_map(|set| set.background.get(name)).cloned().unwrap_or_default();
        self.entries.iter().filter(optional).map(move |entry| {
            let name = entry.spec().name.as_str();
            (name, background(name))
        })
    }

    /// A tool's spec.
    pub fn spec(&self, name: &str) -> Option<&ToolSpec> {
        self.specs.iter().find(|spec| spec.name == name)
    }

    /// Every tool's name, in the order of the file.
    pub fn names(&self) -> Vec<&str> {
        self.specs.iter().map(|spec| spec.name.as_str()).collect()
    }

    /// T_s: the named tools and the terminal ones, in the order of the file. No names: all tools.
    pub fn select<S: AsRef<str>>(&self, names: &[S]) -> Result<Vec<ToolSpec>, UnknownTool> {
        if let Some(unknown) = names.iter().map(AsRef::as_ref).find(|name| self.spec(name).is_none()) {
            return Err(self.unknown(unknown));
        }
        let chosen = |spec: &&ToolSpec| names.is_empty() || spec.is_terminal() || names.iter().any(|name| name.as_ref() == spec.name);
        Ok(self.specs.iter().filter(chosen).cloned().collect())
    }

    /// Runs an action. Whatever goes wrong becomes an observation that says so; `trajectory` is the
    /// history up to the action.
    pub fn execute(&self, action: &Action, trajectory: &Trajectory) -> Observation {
        self.execute_as(Caller::default(), action, trajectory)
    }

    /// The same for a call of somebody: a tenant's, with a name.
    pub fn execute_as(&self, Caller { tenant, key, deadline }: Caller<'_>, action: &Action, trajectory: &Trajectory) -> Observation {
        let Some((entry, tool)) = self.entries.iter().zip(&self.tools).find(|(_, tool)| tool.spec().name == action.tool) else {
            let text = one_line(&self.unknown(&action.tool).to_string());
            return Observation { text, is_error: true, ..Observation::default() };
        };
        if !entry.runs_again()
            && let Some(earlier) = earlier(trajectory, action)
        {
            return Observation { text: told(&earlier), refers_back: true, ..Observation::default() };
        }
        let ran = checked(entry, &action.params).and_then(|(params, arguments)| {
            let params = params.as_deref().unwrap_or(&action.params);
            tool.run(&ToolCall { tenant, key, deadline, params, arguments: arguments.as_ref(), trajectory })
        });
        let (ToolOutput { text, artifacts, sources }, is_error) = match ran {
            Ok(output) => {
                let form = if tool.spec().multiline { several_lines } else { one_line };
                (ToolOutput { text: form(&output.text), ..output }, false)
            }
            Err(ToolError::Params(told)) => (one_line(&told).into(), true),
            Err(error) => (one_line(&format!("{}{error}", failure(&action.tool))).into(), true),
        };
        let text = if text.is_empty() { "(nothing)".to_owned() } else { text };
        let (text, truncated) = cut(text, tool.spec().max_observation_bytes);
        Observation { text, is_error, truncated, refers_back: false, artifacts, sources: bound_sources(sources, MAX_SOURCES_BYTES) }
    }

    fn unknown(&self, name: &str) -> UnknownTool {
        let known: Vec<String> = self.names().into_iter().map(str::to_owned).collect();
        let folded: Vec<String> = known.iter().map(|name| crate::text::fold(name)).collect();
        let similar = similar(name, folded.iter().map(String::as_str), 3).into_iter().map(|at| known[at].clone()).collect();
        UnknownTool { name: name.to_owned(), known, similar }
    }
}

/// The arguments of a tool with a schema, and their canonical line where they are a JSON object.
/// What violates the schema is refused before anything is run.
fn checked(entry: &Entry, params: &str) -> Result<(Option<String>, Option<Arguments>), ToolError> {
    let spec = entry.spec();
    let (Some(schema), Some(validator)) = (&spec.schema, entry.validator()) else { return Ok((None, None)) };
    let refused = |reason: String| ToolError::Params(format!("{} was not run: {reason}. Its usage is {}", spec.name, spec.usage));
    let arguments = schema.arguments(params).map_err(|error| refused(error.to_string()))?;
    validator.check(&arguments).map_err(refused)?;
    let line = schema.line_property().is_none().then(|| arguments_line(&arguments));
    Ok((line, Some(arguments)))
}

/// What a file says; `None` for a file that only adds and is not there.
fn read(path: &Path, kinds: &dyn Kinds, adds: bool) -> Result<Option<Parsed>, LibraryError> {
    let origin = path.display().to_string();
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if adds && error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(LibraryError::new(&origin, vec![format!("cannot read it: {error}")])),
    };
    Reader { origin: &origin, base: path.parent(), kinds, adds }.read(&text).map(Some)
}

fn entries(definitions: Vec<Definition>) -> Vec<Entry> {
    definitions.into_iter().map(|definition| Entry::Defined(Box::new(definition))).collect()
}
