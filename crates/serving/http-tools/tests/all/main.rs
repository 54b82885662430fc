//! Tools against real servers on this machine, and the import of documents.

// helpers of tests are no tests to clippy
#![allow(clippy::unwrap_used)]

mod calls;
mod documents;
mod httpbin;
mod import;
mod injection;
mod openapi_forms;
mod redirects;
mod secure;
mod server;
mod ssrf;
