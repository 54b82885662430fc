//! `autoact corpus`: users' files as collections, and the atlas's pages and questions from its tables.

mod collections;
mod import;
mod pages;

use std::path::Path;

use anyhow::Context as _;
use autoact_synthetic_kb::Atlas;

use crate::args::CorpusCommand;
use crate::exit;
use crate::out;

pub(crate) async fn run(command: CorpusCommand) -> anyhow::Result<u8> {
    match command {
        CorpusCommand::Import(options) => import::run(&options).await,
        CorpusCommand::List { store, json } => collections::list(&store, json).await,
        CorpusCommand::Files { collection, store, json } => collections::list_files(&store, &collection, json).await,
        CorpusCommand::Search { collections, query, limit, strategy, store, json } => {
            collections::search(&store, &collections, &query, limit, strategy, json).await
        }
        CorpusCommand::Delete { collection, paths, store } => collections::delete(&store, &collection, &paths).await,
        CorpusCommand::Build { dir, check } => build(&dir, check),
    }
}

fn build(dir: &Path, check: bool) -> anyhow::Result<u8> {
    let atlas = Atlas::load(dir)?;
    let mut stale = Vec::new();
    for (name, text) in atlas.files()? {
        let path = dir.join(name);
        if check {
            if std::fs::read_to_string(&path).ok().as_deref() != Some(&text) {
                stale.push(path.display().to_string());
            }
        } else {
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(&path, text).with_context(|| format!("cannot write `{}`", path.display()))?;
            out::line(path.display())?;
        }
    }
    anyhow::ensure!(stale.is_empty(), "not what the tables make: {}; fix: `autoact corpus build`", stale.join(", "));
    Ok(exit::OK)
}
