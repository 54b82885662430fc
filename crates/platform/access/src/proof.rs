//! What let a caller in, for as long as its call lasts. A stream may last for hours: it ends when
//! the door would no longer open for its caller.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use autoact_wire::status::to_status;
use http::HeaderMap;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::watch;
use tonic::Status;
use tonic::body::Body;

use crate::authority::Authority;
use crate::caller::Principal;
use crate::error::AccessError;

/// How often the clock is looked at: it may jump, and a timer does not notice.
const LOOK: Duration = Duration::from_secs(2);
/// The least time between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// Whom a token stands for, and until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Admitted {
    pub(crate) principal: Principal,
    /// `None`: without end.
    pub(crate) until: Option<SystemTime>,
}

/// A token that opened the door.
#[derive(Clone)]
pub(crate) struct Proof {
    pub(crate) authority: Arc<Authority>,
    pub(crate) token: Box<str>,
    pub(crate) admitted: Admitted,
    /// The file of tokens, and the issuer's keys, as they were before the token was looked at.
    pub(crate) changes: Changes,
}

/// Tells of what may end a token before its time.
#[derive(Clone)]
pub(crate) struct Changes {
    pub(crate) tokens: watch::Receiver<crate::tokens::Tokens>,
    pub(crate) keys: Option<watch::Receiver<u64>>,
}

impl Changes {
    async fn next(&mut self) {
        let keys = async {
            match &mut self.keys {
                Some(keys) => keys.changed().await.is_ok(),
                None => false,
            }
        };
        let told = tokio::select! {
            told = self.tokens.changed() => told.is_ok(),
            true = keys => true,
        };
        if !told {
            // nobody follows them any more: the service stops
            std::future::pending::<()>().await;
        }
    }
}

impl Proof {
    /// Waits until the token no longer stands for the same tenant with as high a role, and says why.
    pub(crate) async fn ended(mut self) -> AccessError {
        loop {
            let due = async {
                match self.admitted.until {
                    Some(until) => {
                        let left = until.duration_since(SystemTime::now()).unwrap_or_default();
                        tokio::time::sleep(left.clamp(PAUSE, LOOK)).await;
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.changes.next() => {}
                () = due => if self.admitted.until.is_some_and(|until| SystemTime::now() < until) {
                    continue;
                },
            }
            let before = &self.admitted.principal;
            match self.authority.admit(&self.token).await {
                Ok(now) if now.principal.tenant == before.tenant && now.principal.roles.last() >= before.roles.last() => {
                    self.admitted.until = now.until;
                }
                Ok(_) => return AccessError::Changed,
                // the keys that were read last stay
                Err(AccessError::NoKeys) => {}
                Err(error) => return error,
            }
        }
    }
}

/// A request or a reply that ends with its caller's token.
pub(crate) struct Lasting {
    body: Body,
    side: Side,
    ended: Option<Pin<Box<dyn Future<Output = AccessError> + Send>>>,
}

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// What is received of it becomes an error of its reader.
    Request,
    /// It ends with a status.
    Reply,
}

impl Lasting {
    pub(crate) fn new(body: Body, side: Side, ended: impl Future<Output = AccessError> + Send + 'static) -> Lasting {
        Lasting { body, side, ended: Some(Box::pin(ended)) }
    }
}

impl HttpBody for Lasting {
    type Data = <Body as HttpBody>::Data;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Self::Data>, Status>>> {
        let this = &mut *self;
        // first: what was taken back sees nothing more
        if let Some(ended) = &mut this.ended
            && let Poll::Ready(error) = ended.as_mut().poll(cx)
        {
            (this.ended, this.body) = (None, Body::empty());
            metrics::counter!("autoact_access_refused_total", "reason" => autoact_wire::status::ServiceError::reason(&error)).increment(1);
            tracing::info!(%error, "a stream was ended: its caller's token no longer holds");
            if this.side == Side::Request {
                return Poll::Ready(Some(Err(to_status(&error))));
            }
            let mut trailers = HeaderMap::new();
            // an error means that a status of ours is no header: then there are none, which is an
            // error for the client too
            let _ = to_status(&error).add_header(&mut trailers);
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        let frame = Pin::new(&mut this.body).poll_frame(cx);
        if let Poll::Ready(None | Some(Err(_))) = &frame {
            this.ended = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
