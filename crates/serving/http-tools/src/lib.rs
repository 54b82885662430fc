//! Tools that are HTTP requests, and OpenAPI documents as sets of such tools.
//!
//! An [`Operation`] says what is fixed in a request and where each argument goes. [`HttpTool`] makes
//! it: to allowed hosts alone, at addresses that were checked, with secrets that are never shown,
//! within bounds of time and bytes. What comes back is an observation of bounded length, JSON stays
//! JSON. A failure is an [`HttpFailure`].
//!
//! An [`Endpoint`] is for other protocols over HTTP: the same checks, and an answer that is read piece
//! by piece. [`remote`] has what all definitions that come from others go through.
//!
//! A [`Visit`] is for URLs that somebody writes when the request is made, such as a model.
//!
//! [`openapi::import`] reads an OpenAPI document (2.0, 3.0, 3.1) into specs and operations.
//! [`repair()`] tells a model what was wrong with a call.

mod address;
mod client;
mod connect;
mod encode;
mod endpoint;
mod failure;
mod hosts;
mod html;
mod multipart;
mod observe;
pub mod openapi;
mod operation;
pub mod remote;
mod repair;
mod request;
mod secret;
mod send;
mod style;
mod template;
mod tool;
mod trim;
mod visit;

pub use address::{AddressClass, classify};
pub use client::{HttpClient, HttpClientOptions, Resolve, Resolving, SystemResolver};
pub use endpoint::{Endpoint, Opened};
pub use failure::{HttpFailure, RedirectRefusal, Refusal, StatusClass};
pub use hosts::HostRule;
pub use operation::{Argument, BodyForm, Limits, Method, Operation, OperationError, Place, Style};
pub use repair::{Refused, repair};
pub use secret::{Credential, Hidden, Secret, SecretPlace};
pub use template::UrlTemplate;
pub use tool::HttpTool;
pub use trim::trimmed;
pub use visit::{Seen, Visit, Visited};
