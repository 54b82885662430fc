//! HTML reports: one file with SVG plots that loads nothing from elsewhere (no script, font or
//! image). It supports light and dark mode. All text from models and users is escaped.
//!
//! ```
//! use autoact_plot::{Axis, Page, Plot, Series};
//!
//! let mut page = Page::new("a title");
//! page.section("Loss");
//! page.push(&Plot::new("loss", Axis::linear("step"), Axis::linear("loss")).with(Series::new("training", [(1.0, 2.0), (2.0, 1.5)])).svg());
//! assert!(page.finish().ends_with("</html>\n"));
//! ```

mod axis;
mod bars;
mod page;
mod plot;

pub use axis::Axis;
pub use bars::{IntervalRow, Stack, StackRow, intervals};
pub use page::{Page, Table, escape};
pub use plot::{Plot, Series};

/// The CSS colour of the series at `index`; colours repeat after ten.
pub fn colour(index: usize) -> String {
    format!("var(--c{})", index % 10)
}
