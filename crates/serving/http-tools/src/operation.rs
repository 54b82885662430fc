//! A request as a tool's entry describes it: what is fixed, and where each argument goes.

use std::time::Duration;

use autoact_trajectory::{Effect, ParameterSchema};
use http::header::{HeaderName, HeaderValue};

use crate::hosts::HostRule;
use crate::secret::{Credential, SecretPlace};
use crate::template::UrlTemplate;

/// The method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // HTTP's own names
pub enum Method {
    Get,
    Head,
    Options,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    /// Its name in any case, as documents write it.
    pub fn parse(name: &str) -> Option<Method> {
        Some(match name.to_ascii_lowercase().as_str() {
            "get" => Method::Get,
            "head" => Method::Head,
            "options" => Method::Options,
            "post" => Method::Post,
            "put" => Method::Put,
            "patch" => Method::Patch,
            "delete" => Method::Delete,
            _ => return None,
        })
    }

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Options => "OPTIONS",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
        }
    }

    /// What HTTP says that it does to the world.
    pub fn effect(self) -> Effect {
        match self {
            Method::Get | Method::Head | Method::Options => Effect::ReadOnly,
            Method::Put | Method::Delete => Effect::Idempotent,
            Method::Post | Method::Patch => Effect::SideEffect,
        }
    }
}

/// Where an argument goes in the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// A `{name}` of the URL's path.
    Path,
    /// The query.
    Query,
    /// A header.
    Header,
    /// A cookie.
    Cookie,
    /// The whole body.
    Body,
    /// A member of the body: of a JSON object or of a form.
    Field,
}

/// How a list or an object becomes text: OpenAPI's `style`, and the `collectionFormat` of its
/// version 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Style {
    /// `a,b`; with `explode` an object is `k=v,k=v`. Of paths and headers.
    Simple,
    /// `.a.b`, in paths.
    Label,
    /// `;x=a;x=b`, in paths.
    Matrix,
    /// `x=a,b`; with `explode` `x=a&x=b`. Of queries, cookies and forms.
    Form,
    /// `x=a b`
    Space,
    /// `x=a|b`
    Pipe,
    /// `x=a`, a tab, `b`
    Tab,
    /// `x[k]=v`
    Deep,
    /// `x={"k":"v"}`
    Json,
}

/// One argument of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// Its name in the schema.
    pub name: String,
    /// Its name in the request.
    pub wire: String,
    /// Where it goes.
    pub place: Place,
    /// How a list or an object is written.
    pub style: Style,
    /// Whether each item or member stands on its own.
    pub explode: bool,
}

impl Argument {
    /// An argument with the same name in the request, in the style that is usual in its place.
    pub fn new(name: impl Into<String>, place: Place) -> Argument {
        let name = name.into();
        let style = match place {
            Place::Path | Place::Header => Style::Simple,
            _ => Style::Form,
        };
        Argument { wire: name.clone(), name, place, style, explode: style == Style::Form }
    }
}

/// The form of a request's body.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum BodyForm {
    /// JSON with this media type: one argument in [`Place::Body`], or the [`Place::Field`]s.
    Json(String),
    /// `application/x-www-form-urlencoded` of the fields.
    Form,
    /// `multipart/form-data` of the fields; no files.
    Multipart,
    /// The text of the argument in [`Place::Body`], with this media type.
    Text(String),
    /// There is none.
    #[default]
    None,
}

/// The bounds of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The whole call: waiting, connecting, redirects, retries and reading.
    pub time: Duration,
    /// The bytes of a response's body.
    pub response_bytes: usize,
    /// Redirects that are followed.
    pub redirects: u8,
    /// Calls of this tool at once.
    pub concurrency: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { time: Duration::from_secs(20), response_bytes: 4 << 20, redirects: 3, concurrency: 4 }
    }
}

/// A request with places for arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// The method.
    pub method: Method,
    /// The URL, with places in its path.
    pub url: UrlTemplate,
    /// Where each argument goes.
    pub arguments: Vec<Argument>,
    /// The body's form.
    pub body: BodyForm,
    /// Headers that are always the same.
    pub headers: Vec<(String, String)>,
    /// Secrets by reference.
    pub credentials: Vec<Credential>,
    /// Where requests and redirects may go; none: to the URL's host.
    pub hosts: Vec<HostRule>,
    /// Whether the addresses of one's own networks are open ([`crate::AddressClass`]).
    pub allow_private: bool,
    /// The bounds of a call.
    pub limits: Limits,
}

/// An operation that cannot be a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OperationError {
    /// The URL cannot be used.
    #[error("the URL `{url}`: {reason}")]
    Url {
        /// The URL.
        url: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A host rule cannot be used.
    #[error("the host `{0}` is not a host such as `api.example.com`, `*.example.com` or `example.com:8443`")]
    Host(String),
    /// A header cannot be sent, or is not for tools to set.
    #[error("the header `{0}` cannot be set")]
    Header(String),
    /// An argument is no property of the schema, or a place in the URL has no argument.
    #[error("`{0}` needs a property of the schema and a place in the request")]
    Argument(String),
    /// The arguments do not make a body of this form.
    #[error("the arguments do not make a body: {0}")]
    Body(&'static str),
    /// A bound is zero.
    #[error("the limit `{0}` is zero")]
    Limit(&'static str),
}

/// Headers that belong to the connection or to the credentials: no entry and no argument sets them.
const RESERVED: [&str; 15] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "proxy-authenticate",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "cookie",
    "accept-encoding",
    "content-encoding",
];

/// A name that a header may have.
pub(crate) fn header_name(name: &str) -> Option<HeaderName> {
    let name = HeaderName::try_from(name).ok()?;
    (!RESERVED.contains(&name.as_str())).then_some(name)
}

impl Operation {
    /// A request without arguments, with the usual bounds.
    pub fn new(method: Method, url: UrlTemplate) -> Operation {
        Operation {
            method,
            url,
            arguments: Vec::new(),
            body: BodyForm::None,
            headers: Vec::new(),
            credentials: Vec::new(),
            hosts: Vec::new(),
            allow_private: false,
            limits: Limits::default(),
        }
    }

    /// Whether requests of it can be built.
    pub(crate) fn check(&self, schema: &ParameterSchema) -> Result<(), OperationError> {
        for (name, value) in &self.headers {
            if header_name(name).is_none() || HeaderValue::try_from(value).is_err() {
                return Err(OperationError::Header(name.clone()));
            }
        }
        for credential in &self.credentials {
            if let SecretPlace::Header(name) = &credential.place
                && header_name(name).is_none()
            {
                return Err(OperationError::Header(name.clone()));
            }
        }
        for argument in &self.arguments {
            if argument.place == Place::Header && header_name(&argument.wire).is_none() {
                return Err(OperationError::Header(argument.wire.clone()));
            }
            let in_path = self.url.names().any(|name| name == argument.wire);
            let known = schema.properties().any(|(name, _)| name == argument.name);
            if !known || (argument.place == Place::Path) && !in_path {
                return Err(OperationError::Argument(argument.name.clone()));
            }
        }
        let placed = |name: &str| self.arguments.iter().any(|one| one.place == Place::Path && one.wire == name);
        if let Some(name) = self.url.names().find(|name| !placed(name)) {
            return Err(OperationError::Argument(name.to_owned()));
        }
        if let Some((name, _)) = schema.properties().find(|(name, _)| !self.arguments.iter().any(|one| one.name == *name)) {
            return Err(OperationError::Argument(name.to_owned()));
        }
        self.check_body()?;
        let Limits { time, response_bytes, concurrency, .. } = self.limits;
        for (zero, name) in [(time.is_zero(), "time"), (response_bytes == 0, "response_bytes"), (concurrency == 0, "concurrency")] {
            if zero {
                return Err(OperationError::Limit(name));
            }
        }
        Ok(())
    }

    fn check_body(&self) -> Result<(), OperationError> {
        let count = |place| self.arguments.iter().filter(|one| one.place == place).count();
        let (whole, fields) = (count(Place::Body), count(Place::Field));
        let wrong = match &self.body {
            BodyForm::None if whole + fields > 0 => "there is none",
            BodyForm::Json(_) if whole > 1 || whole == 1 && fields > 0 => "expected one argument that is the whole, or fields",
            BodyForm::Form | BodyForm::Multipart if whole > 0 => "a form has fields",
            BodyForm::Text(_) if whole != 1 || fields > 0 => "a text is one argument",
            _ => match &self.body {
                BodyForm::Json(media) | BodyForm::Text(media) if HeaderValue::try_from(media).is_err() => "its media type cannot be sent",
                _ => return Ok(()),
            },
        };
        Err(OperationError::Body(wrong))
    }
}
