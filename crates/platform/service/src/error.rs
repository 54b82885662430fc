//! Why a service did not start, or stopped by itself: one line that names the cause and the fix.

use std::error::Error;
use std::fmt;
use std::net::SocketAddr;

type Cause = Box<dyn Error + Send + Sync>;

/// Why a service did not start. Shown as `cause: its cause; fix: what to do`, on one line.
#[derive(Debug)]
pub struct StartError {
    cause: Cause,
    fix: Option<String>,
}

impl StartError {
    /// Something a service needs is missing or broken.
    pub fn new(cause: impl Into<Cause>) -> StartError {
        StartError { cause: cause.into(), fix: None }
    }

    /// `what` failed because of `cause`, whose own causes are told too.
    pub fn because(what: impl fmt::Display, cause: &(dyn Error + 'static)) -> StartError {
        StartError::new(format!("{what}: {}", one_line(cause)))
    }

    /// Says what to do about it.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<String>) -> StartError {
        self.fix = Some(fix.into());
        self
    }

    pub(crate) fn bind(what: &str, addr: SocketAddr, error: &std::io::Error) -> StartError {
        let flag = if what == "metrics" { "--metrics-listen" } else { "--listen" };
        StartError::new(format!("cannot listen on `{addr}` for {what}: {error}"))
            .fix(format!("stop what uses that address, or choose another with `{flag} HOST:PORT` (port 0 takes a free one)"))
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&one_line(self.cause.as_ref()))?;
        match &self.fix {
            Some(fix) => write!(f, "; fix: {fix}"),
            None => Ok(()),
        }
    }
}

impl Error for StartError {}

/// Why a running service stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The gRPC server failed.
    #[error("the gRPC server failed")]
    Serve(#[source] tonic::transport::Error),
    /// A background task without which the service is useless failed.
    #[error("the task `{name}` failed: {cause}")]
    Task {
        /// The task's name.
        name: &'static str,
        /// Its error.
        cause: String,
    },
}

/// An error and its chain of causes on one line, without what is said twice.
pub(crate) fn one_line(error: &dyn Error) -> String {
    let text = autoact_base::error::chain(error);
    let mut line = String::new();
    for part in text.lines().map(str::trim).filter(|part| !part.is_empty()) {
        if !line.is_empty() {
            line.push_str(if line.ends_with([':', ',', ';']) { " " } else { "; " });
        }
        line.push_str(part);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_with_its_fix() {
        let error = StartError::new("the file has 2 mistakes:\n  no name\n  no end\n").fix("set `model`");
        assert_eq!(error.to_string(), "the file has 2 mistakes: no name; no end; fix: set `model`");
    }
}
