//! The bar that shows how far an evaluation is.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar of `total` questions; a hidden one if `quiet`.
pub(super) fn progress(total: u64, quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(total);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} questions  {msg}  {eta} left") {
        bar.set_style(style);
    }
    bar
}
