//! The tools that need no program: on a corpus, and arithmetic.

mod calculate;
mod finish;
mod lookup;
mod retrieve;
mod search;

pub use calculate::Calculate;
pub use finish::Finish;
pub use lookup::Lookup;
pub use retrieve::{LEAD_SENTENCES, Retrieve};
pub use search::Search;
