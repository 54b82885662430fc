//! `autoact corpus import`: the files of a directory as a collection, or as a file of pages.

mod collection;
mod file;
mod progress;
mod summary;

use std::sync::Arc;

use anyhow::Context as _;
use autoact_documents::{Importer, Limits, READER_THREAD, Reader};

use crate::args::ImportOptions;
use crate::{exit, out};

pub(super) async fn run(options: &ImportOptions) -> anyhow::Result<u8> {
    let limits = Limits::of_files(options.max_file_bytes);
    let reader = match options.unconfined {
        true => Reader::here(limits),
        false => Reader::confined(limits).context(
            "files cannot be read in a confined process; fix: trust them with `--unconfined`, or, as root, put `autoact` where every \
             user can read it",
        )?,
    };
    leave_panics_to_the_summary();
    let importer = Importer::open(&options.path, reader)?;
    let is_empty = match &options.out {
        Some(path) => file::run(options, path, &importer)?,
        None => collection::run(options, Arc::new(importer)).await?,
    };
    if is_empty {
        out::error(format_args!("nothing to import in `{}`; expected PDF, HTML, Markdown or text files", options.path.display()));
        return Ok(exit::FAILED);
    }
    Ok(exit::OK)
}

/// A panic of a parser is an error of its file, and is named there: not on standard error as well.
fn leave_panics_to_the_summary() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().name() != Some(READER_THREAD) {
            before(panic);
        }
    }));
}
