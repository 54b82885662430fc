//! The one place where a failed gRPC call becomes a [`Failure`] with its class.
//!
//! What matters is who made the status. One that came over the wire was written by the receiver,
//! and its code says what the receiver did. One that was made here has the transport's error as its
//! source: the call did not reach anybody, or its connection broke.

use std::error::Error;

use autoact_planning::{Failure, FailureClass};
use autoact_wire::status::{self, REQUEST_TOO_LARGE, STALE_EPOCH};
use tonic::{Code, Status};

/// The failure of a call to `who` that ended with `status`.
pub(crate) fn failure(who: String, status: Status) -> Failure {
    let class = classify(&status);
    let retry_after = status::retry_after(&status);
    let too_long = status::prompt_size(&status);
    Failure { class, who, retry_after, too_long, source: Box::new(Said(status)) }
}

/// A status, shown as its message alone: the code is in the class.
#[derive(Debug, thiserror::Error)]
#[error("{}", message(.0))]
struct Said(#[source] Status);

fn message(status: &Status) -> String {
    match status.message() {
        "" => format!("{:?}", status.code()),
        message => message.to_owned(),
    }
}

fn classify(status: &Status) -> FailureClass {
    match transport(status) {
        Some(class) => class,
        None => answered(status),
    }
}

/// The class of a call that the transport ended; `None` for a status that the receiver wrote.
fn transport(status: &Status) -> Option<FailureClass> {
    let mut cause = status.source();
    // a status that was made here always has a source; one that was read from the wire never has
    cause?;
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            // the receiver says that it did not begin with this stream
            let refused = error.reason() == Some(h2::Reason::REFUSED_STREAM);
            return Some(if refused { FailureClass::NotSent } else { FailureClass::MayHaveRun });
        }
        // given back before it was written to a connection
        let is_unsent = error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_canceled);
        if is_unsent || error.downcast_ref::<tonic::ConnectError>().is_some() {
            return Some(FailureClass::NotSent);
        }
        if error.downcast_ref::<tonic::TimeoutExpired>().is_some() {
            return Some(FailureClass::TimedOut);
        }
        cause = error.source();
    }
    Some(FailureClass::MayHaveRun)
}

/// The class of a status that the receiver wrote.
fn answered(status: &Status) -> FailureClass {
    // our own services say `UNAVAILABLE` with a reason, and only before they begin; a proxy on the
    // way may say it at any time
    let reason = status::reason(status);
    let ours = reason.is_some();
    match status.code() {
        Code::FailedPrecondition if reason.as_deref() == Some(STALE_EPOCH) => FailureClass::Fenced,
        Code::Unavailable if ours => FailureClass::NotSent,
        Code::Unavailable | Code::Cancelled => FailureClass::MayHaveRun,
        // the same call is as large the next time
        Code::ResourceExhausted if reason.as_deref() == Some(REQUEST_TOO_LARGE) => FailureClass::Refused,
        Code::ResourceExhausted => FailureClass::Busy,
        Code::DeadlineExceeded => FailureClass::TimedOut,
        Code::Internal | Code::Unknown | Code::DataLoss | Code::Ok => FailureClass::Broken,
        Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::FailedPrecondition
        | Code::Aborted
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::Unauthenticated => FailureClass::Refused,
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

    use super::*;

    /// The type of the frame that begins a request.
    const HEADERS: u8 = 1;

    /// A client's side of a connection whose other side has greeted it.
    async fn connected() -> (hyper::client::conn::http2::SendRequest<tonic::body::Body>, DuplexStream, tokio::task::JoinHandle<()>) {
        let (ours, mut theirs) = tokio::io::duplex(64 * 1024);
        let executor = hyper_util::rt::TokioExecutor::new();
        let shaken = hyper::client::conn::http2::handshake(executor, hyper_util::rt::TokioIo::new(ours));
        let (sender, connection) = shaken.await.unwrap();
        let driven = tokio::spawn(async move {
            let _ = connection.await;
        });
        // an empty SETTINGS frame
        theirs.write_all(b"\0\0\0\x04\0\0\0\0\0").await.unwrap();
        (sender, theirs, driven)
    }

    fn request() -> http::Request<tonic::body::Body> {
        http::Request::post("http://agent/execute").body(tonic::body::Body::empty()).unwrap()
    }

    #[tokio::test]
    async fn a_request_that_was_never_written_was_not_sent() {
        let (mut sender, theirs, driven) = connected().await;
        drop(theirs);
        driven.await.unwrap();
        let error = sender.send_request(request()).await.unwrap_err();
        assert_eq!(classify(&Status::from_error(Box::new(error))), FailureClass::NotSent);
    }

    #[tokio::test]
    async fn a_request_that_was_written_may_have_run() {
        let (mut sender, mut theirs, _driven) = connected().await;
        let answer = tokio::spawn(async move { sender.send_request(request()).await });
        // the preface, and frames up to the one with the request's headers
        let mut preface = [0; 24];
        theirs.read_exact(&mut preface).await.unwrap();
        let mut kind = 0;
        while kind != HEADERS {
            let mut head = [0; 9];
            theirs.read_exact(&mut head).await.unwrap();
            let mut payload = vec![0; (usize::from(head[1]) << 8) | usize::from(head[2])];
            theirs.read_exact(&mut payload).await.unwrap();
            kind = head[3];
        }
        drop(theirs);
        let error = answer.await.unwrap().unwrap_err();
        assert_eq!(classify(&Status::from_error(Box::new(error))), FailureClass::MayHaveRun);
    }
}
