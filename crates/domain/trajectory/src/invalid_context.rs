//! What can be wrong with what a client says beside the question.

/// Of the name of a knowledge base, in bytes.
pub(crate) const MAX_KNOWLEDGE_BYTES: usize = 64;

/// A field of a [`TaskContext`](crate::TaskContext) that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidContext {
    /// A text is too long.
    #[error("`{field}` has {bytes} bytes; at most {most} are allowed")]
    TooLong {
        /// The field's path in a request.
        field: &'static str,
        /// Its length.
        bytes: usize,
        /// The bound.
        most: usize,
    },
    /// A list has too many entries.
    #[error("`{field}` has {count} entries; at most {most} are allowed")]
    TooMany {
        /// The field's path in a request.
        field: &'static str,
        /// Its length.
        count: usize,
        /// The bound.
        most: usize,
    },
    /// An entry of a list says nothing.
    #[error("`{field}` has an empty entry; leave it out")]
    Empty {
        /// The field's path in a request.
        field: &'static str,
    },
    /// A text has a control character that is no line break or tab.
    #[error("`{field}` has the control character U+{code:04X} at byte {at}; remove it")]
    Control {
        /// The field's path in a request.
        field: &'static str,
        /// The character.
        code: u32,
        /// Where it is, in bytes.
        at: usize,
    },
    /// A text that cannot name a knowledge base.
    #[error(
        "`context.knowledge` has `{shown}`; expected names of 1 to {MAX_KNOWLEDGE_BYTES} characters of A-Z, a-z, 0-9, `.`, `_` and `-`"
    )]
    Knowledge {
        /// The beginning of the text.
        shown: String,
    },
    /// A text that cannot be a time zone.
    #[error("`context.time_zone` is `{shown}`; expected a name of the IANA database, such as `Europe/Paris` or `UTC`")]
    TimeZone {
        /// The beginning of the text.
        shown: String,
    },
    /// A point in time without a calendar date of four digits.
    #[error("`context.now` is not in the years 1 to 9999")]
    Now,
}

impl InvalidContext {
    /// The path of the field in a request.
    pub fn field(&self) -> &'static str {
        match self {
            InvalidContext::TooLong { field, .. }
            | InvalidContext::TooMany { field, .. }
            | InvalidContext::Empty { field }
            | InvalidContext::Control { field, .. } => field,
            InvalidContext::Knowledge { .. } => "context.knowledge",
            InvalidContext::TimeZone { .. } => "context.time_zone",
            InvalidContext::Now => "context.now",
        }
    }
}
