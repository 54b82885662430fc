//! Shared by the tests: the committed schemas, and the real tools over a knowledge base's pages.

#![allow(dead_code)] // each test uses some of it

use std::path::PathBuf;
use std::sync::Arc;

use autoact_synthetic_kb::{Atlas, Environment, KnowledgeBase, NameMaker, Schema, World, WorldSize};
use autoact_tools::{Corpus, Page, ToolLibrary};
use autoact_trajectory::{Action, Trajectory};

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

pub(crate) fn atlas() -> Atlas {
    Atlas::load(&root().join("corpora/atlas")).unwrap()
}

pub(crate) fn schema(file: &str) -> Arc<Schema> {
    Arc::new(Schema::load_for_training(&root().join(file)).unwrap())
}

pub(crate) const WORLDS: &str = "models/stem/recipe/worlds.toml";
pub(crate) const ATLAS: &str = "corpora/atlas/schema.toml";

pub(crate) fn world(schema: &Arc<Schema>, names: &NameMaker, seed: u64) -> KnowledgeBase {
    World::invent(schema, names, seed, WorldSize::default())
}

/// An invented world with the atlas's schema and spelling.
pub(crate) fn invented(seed: u64) -> KnowledgeBase {
    world(&schema(ATLAS), &NameMaker::fit(atlas().base()), seed)
}

pub(crate) struct RealTools(pub(crate) ToolLibrary);

impl RealTools {
    pub(crate) fn over(base: &KnowledgeBase) -> RealTools {
        let pages = base.pages().into_iter().enumerate().map(|(id, (title, text))| (Page { title, text }, base.aliases(id).to_vec()));
        let corpus = Arc::new(Corpus::with_aliases(pages).unwrap());
        RealTools(ToolLibrary::bundled(corpus).unwrap())
    }
}

impl Environment for RealTools {
    fn run(&mut self, action: &Action, trajectory: &Trajectory) -> String {
        self.0.execute(action, trajectory).text
    }
}
