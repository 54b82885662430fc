//! The tools for a question.

use std::sync::Arc;

use autoact_tools::{Corpus, ToolLibrary, UnknownTool};
use autoact_trajectory::{FINISH, ToolSpec};

/// A tool library and the tools selected from it, T_s. The terminal tools are always among them.
#[derive(Debug, Clone)]
pub struct Toolbox {
    library: Arc<ToolLibrary>,
    specs: Vec<ToolSpec>,
}

impl Toolbox {
    /// All tools of a library.
    pub fn all(library: Arc<ToolLibrary>) -> Toolbox {
        let specs = library.specs().to_vec();
        Toolbox { library, specs }
    }

    /// Selects tools by name.
    ///
    /// # Errors
    /// The library lacks one of them.
    pub fn select<S: AsRef<str>>(library: Arc<ToolLibrary>, names: &[S]) -> Result<Toolbox, UnknownTool> {
        let specs = library.select(names)?;
        Ok(Toolbox { library, specs })
    }

    /// The same tools over another corpus.
    pub fn over(&self, corpus: &Arc<Corpus>) -> Toolbox {
        Toolbox { library: Arc::new(self.library.with_corpus(corpus)), specs: self.specs.clone() }
    }

    /// The library.
    pub fn library(&self) -> &Arc<ToolLibrary> {
        &self.library
    }

    /// The selected tools.
    pub fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }

    /// The name of the terminal tool that answers.
    pub(crate) fn finish(&self) -> &str {
        self.specs.iter().find(|spec| spec.is_answer()).map_or(FINISH, |spec| spec.name.as_str())
    }

    /// Whether a tool is terminal.
    pub(crate) fn is_finish(&self, tool: &str) -> bool {
        self.specs.iter().any(|spec| spec.is_terminal() && spec.name == tool)
    }

    /// All tools but the terminal ones.
    pub(crate) fn working(&self) -> impl Iterator<Item = &ToolSpec> {
        self.specs.iter().filter(|spec| !spec.is_terminal())
    }
}
