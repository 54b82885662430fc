//! `autoact model convert`: a model's weights in another number format.

use std::path::PathBuf;

use anyhow::ensure;
use autoact_model::{Format, ModelDir, convert};
use clap::Args;
use serde_json::json;

use crate::exit;
use crate::out;

/// `autoact model convert`
#[derive(Debug, Args)]
pub(crate) struct ConvertOptions {
    /// The model: a Hugging Face directory.
    model: PathBuf,
    /// The directory that is written.
    #[arg(long)]
    out: PathBuf,
    /// `f32`, `bf16`, or `q8_0`: GGUF's blocks of 32 signed bytes with one scale.
    #[arg(long)]
    weights: Format,
    /// One JSON object instead of text.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: &ConvertOptions) -> anyhow::Result<u8> {
    let model = ModelDir::open(&options.model)?;
    let same = options.out.canonicalize().is_ok_and(|out| options.model.canonicalize().is_ok_and(|model| out == model));
    ensure!(!same, "`{}` would overwrite itself; name another directory with --out", options.model.display());
    let done = convert(&model, &options.out, options.weights)?;
    if options.json {
        let out = options.out.display().to_string();
        let counts = json!({ "bytes_before": done.before, "bytes": done.after, "matrices": done.matrices, "left": done.left });
        out::line(json!({ "out": out, "weights": options.weights.to_string(), "sizes": counts }))?;
        return Ok(exit::OK);
    }
    let mb = |bytes: u64| bytes as f64 / 1e6;
    out::line(format_args!(
        "{}: {} matrices in {}, {:.1} MB → {:.1} MB",
        options.out.display(),
        done.matrices,
        options.weights,
        mb(done.before),
        mb(done.after)
    ))?;
    if done.left > 0 {
        out::line(format_args!("{} matrices stayed as they were: their rows are no multiple of 32", done.left))?;
    }
    out::line(format_args!(
        "adapters trained for `{}` fit it: start an agent with `--model {}`",
        options.model.display(),
        options.out.display()
    ))?;
    Ok(exit::OK)
}
