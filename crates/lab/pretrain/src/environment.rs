//! The tools as the environment of the training data. Searches are real, over the pages of a
//! synthetic knowledge base.

use std::sync::Arc;

use autoact_synthetic_kb::{Environment, KnowledgeBase};
use autoact_tools::{Corpus, CorpusError, LibraryError, Page, ToolLibrary};
use autoact_trajectory::{Action, ToolSpec, Trajectory};

/// A tool library over one knowledge base.
#[derive(Clone)]
pub struct Tools {
    library: Arc<ToolLibrary>,
}

impl Tools {
    /// The bundled tools over a placeholder corpus of one page. [`Tools::over`] replaces the corpus.
    pub fn bundled() -> Result<ToolLibrary, ToolsError> {
        let nothing = Page { title: "Nothing".to_owned(), text: "Nothing is known.".to_owned() };
        Ok(ToolLibrary::bundled(Arc::new(Corpus::from_pages(vec![nothing])?))?)
    }

    /// The tools of `library` over the pages of `world`.
    pub fn over(library: &ToolLibrary, world: &KnowledgeBase) -> Result<Tools, ToolsError> {
        let pages = world.pages().into_iter().enumerate().map(|(id, (title, text))| (Page { title, text }, world.aliases(id).to_vec()));
        Ok(Tools { library: Arc::new(library.with_corpus(&Arc::new(Corpus::with_aliases(pages)?))) })
    }

    /// The tools' specifications, as prompts show them.
    pub fn specs(&self) -> &[ToolSpec] {
        self.library.specs()
    }
}

impl Environment for Tools {
    fn run(&mut self, action: &Action, trajectory: &Trajectory) -> String {
        self.library.execute(action, trajectory).text
    }
}

/// The tools cannot be used with a knowledge base.
#[derive(Debug, thiserror::Error)]
pub enum ToolsError {
    /// The knowledge base's pages cannot be indexed.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// The bundled tool library is invalid.
    #[error(transparent)]
    Library(#[from] LibraryError),
}
