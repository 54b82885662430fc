//! Why a document, or one of its operations, is not imported; and what was simplified.

use crate::operation::OperationError;

/// A document that cannot be imported at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// It is longer than a document may be.
    #[error("the document has {bytes} bytes, expected at most {}", super::parse::MAX_BYTES)]
    TooLarge {
        /// Its length.
        bytes: usize,
    },
    /// It is not UTF-8.
    #[error("the document is not text in UTF-8")]
    NotText,
    /// It is neither JSON nor YAML; the reason names line and column.
    #[error("the document is neither JSON nor YAML: {reason}")]
    Syntax {
        /// What the parser says.
        reason: String,
    },
    /// It is nested too deeply.
    #[error("the document is nested too deeply")]
    TooDeep,
    /// It has too many values, or aliases make them too many.
    #[error("the document has too many values")]
    TooManyValues,
    /// It is no OpenAPI document.
    #[error("not an OpenAPI document: expected `openapi` or `swagger` and `paths`")]
    NotADocument,
    /// Its version is none of 2.0, 3.0 and 3.1.
    #[error("the version `{found}` is not supported; expected 2.0, 3.0 or 3.1")]
    Version {
        /// What it says.
        found: String,
    },
    /// It has too many operations.
    #[error("the document has more than {limit} operations")]
    TooManyOperations {
        /// The bound.
        limit: usize,
    },
    /// An option cannot be used.
    #[error("the server `{server}`: {reason}")]
    Server {
        /// The option.
        server: String,
        /// What is wrong.
        reason: String,
    },
}

/// Why an operation is not imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SkipReason {
    /// It is deprecated, and such ones were not wanted.
    #[error("it is deprecated")]
    Deprecated,
    /// A reference leads out of the document.
    #[error("the reference `{0}` leads out of the document")]
    ExternalRef(String),
    /// A reference leads nowhere.
    #[error("the reference `{0}` leads nowhere")]
    MissingRef(String),
    /// A part of it has not the form that OpenAPI gives it.
    #[error("`{0}` has not its form")]
    Malformed(String),
    /// The body has no media type that can be written.
    #[error("a body of `{0}` is not supported")]
    Body(String),
    /// The body needs a file.
    #[error("the file `{0}` is needed; files are not supported")]
    File(String),
    /// A needed header cannot be set.
    #[error("the header `{0}` is needed, and is not for tools to set")]
    Header(String),
    /// There is no server with an absolute URL.
    #[error("its server `{0}` is no absolute URL of http or https")]
    Server(String),
    /// Its security scheme is not supported.
    #[error("the security scheme `{0}` is not supported")]
    Security(String),
    /// The method is not supported.
    #[error("the method `{0}` is not supported")]
    Method(String),
    /// Its schema is too large, after everything that can be left out.
    #[error("its schema has {0} bytes after all that can be left out")]
    SchemaTooLarge(usize),
    /// Its schema does not compile.
    #[error("its schema does not compile: {0}")]
    Schema(String),
    /// No request can be built.
    #[error(transparent)]
    Operation(#[from] OperationError),
}

/// What was simplified. The server may refuse what the schema allows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Note {
    /// A schema refers to itself; the inner one allows everything.
    #[error("`{0}` refers to itself")]
    Cycle(String),
    /// A keyword was dropped.
    #[error("`{0}` was dropped")]
    Dropped(String),
    /// What is nested more deeply, or is too much, allows everything.
    #[error("what is nested deeply was dropped")]
    Deep,
    /// Descriptions were shortened or dropped for the schema's size.
    #[error("descriptions were shortened")]
    Descriptions,
    /// An optional part was left out: a file, a header, a body.
    #[error("the optional `{0}` was left out")]
    LeftOut(String),
    /// The path has a place that no parameter declares; it is a required string.
    #[error("`{0}` is in the path and not declared")]
    Undeclared(String),
    /// A security scheme is needed that the document does not define.
    #[error("the security scheme `{0}` is not defined")]
    UndefinedSecurity(String),
    /// A fragment of the path was dropped: it is never sent.
    #[error("the path's fragment `{0}` is not sent")]
    Fragment(String),
}
