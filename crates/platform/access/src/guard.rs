//! A door: asks callers who they are before a gRPC service sees their call.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use autoact_tls::Peer;
use autoact_wire::status::{ServiceError, to_status};
use http::header::AUTHORIZATION;
use http::{HeaderMap, Request, Response};
use tonic::Status;
use tonic::body::Body;
use tonic::server::NamedService;
use tower::Service;

use crate::authority::Authority;
use crate::caller::{Caller, Principal, TENANT_HEADER};
use crate::error::{AccessError, Problem};
use crate::proof::{Lasting, Proof, Side};

/// What becomes of callers without a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Anonymous {
    /// They are refused, but for services of the group, which their certificates prove ([`Peer`]).
    Refused,
    /// They are taken for this.
    As(Caller),
}

/// A gRPC service behind a door.
#[derive(Debug, Clone)]
pub struct Guard<S> {
    inner: S,
    /// `None`: nobody can prove anything, and tokens are passed over.
    authority: Option<Arc<Authority>>,
    anonymous: Arc<Anonymous>,
}

impl<S> Guard<S> {
    /// Puts a service behind a door.
    pub fn new(inner: S, authority: Option<Arc<Authority>>, anonymous: Anonymous) -> Guard<S> {
        Guard { inner, authority, anonymous: Arc::new(anonymous) }
    }
}

impl<S: NamedService> NamedService for Guard<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<Request<Body>> for Guard<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        // the one that is ready is the one that is called
        let next = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, next);
        let (authority, anonymous) = (self.authority.clone(), self.anonymous.clone());
        Box::pin(async move {
            let peer = request.extensions().get::<Peer>().cloned();
            match identify(request.headers(), peer, authority.as_ref(), &anonymous).await {
                Ok((caller, proof)) => {
                    request.headers_mut().remove(AUTHORIZATION);
                    request.extensions_mut().insert(caller);
                    let Some(proof) = proof else { return inner.call(request).await };
                    // an upload ends as a watch does; a request that is there as a whole is answered
                    let ended = proof.clone().ended();
                    let request = request.map(|body| Body::new(Lasting::new(body, Side::Request, ended)));
                    let response = inner.call(request).await?;
                    Ok(response.map(|body| Body::new(Lasting::new(body, Side::Reply, proof.ended()))))
                }
                Err(error) => {
                    metrics::counter!("autoact_access_refused_total", "reason" => error.reason()).increment(1);
                    tracing::debug!(reason = error.reason(), "a caller was refused at the door");
                    Ok(to_status(&error).into_http())
                }
            }
        })
    }
}

async fn identify(
    headers: &HeaderMap,
    peer: Option<Peer>,
    authority: Option<&Arc<Authority>>,
    anonymous: &Anonymous,
) -> Result<(Caller, Option<Proof>), AccessError> {
    let (caller, proof) = match (bearer(headers)?, authority) {
        (Some(token), Some(authority)) => {
            let proof = authority.prove(token).await?;
            (Caller::User(proof.admitted.principal.clone()), Some(proof))
        }
        _ => match anonymous {
            _ if peer.is_some() => (Caller::Service, None),
            Anonymous::As(caller) => (caller.clone(), None),
            Anonymous::Refused => return Err(AccessError::Missing),
        },
    };
    let Some(asked) = headers.get(TENANT_HEADER) else { return Ok((caller, proof)) };
    let asked = asked.to_str().unwrap_or("?");
    match caller {
        Caller::User(principal) => Ok((Caller::User(principal.acting_for(asked)?), proof)),
        Caller::Service => Ok((Caller::Service, proof)),
    }
}

/// The token of a call, if it has one.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, AccessError> {
    let malformed = AccessError::Invalid(Problem::Malformed);
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    // two could be read as either
    if values.next().is_some() {
        return Err(malformed);
    }
    let (scheme, token) = value.to_str().ok().and_then(|value| value.split_once(' ')).ok_or(malformed.clone())?;
    if !scheme.eq_ignore_ascii_case("bearer") || token.trim().is_empty() {
        return Err(malformed);
    }
    Ok(Some(token.trim()))
}

/// Who makes a call that came through a [`Guard`].
///
/// # Errors
/// It came through none: then nobody may do anything.
pub fn caller<T>(request: &tonic::Request<T>) -> Result<Caller, Status> {
    request.extensions().get::<Caller>().cloned().ok_or_else(|| to_status(&AccessError::Missing))
}

/// The user who makes a call that came through a [`Guard`].
///
/// # Errors
/// It came through none, or a service makes it: a service has no tenant.
pub fn principal<T>(request: &tonic::Request<T>) -> Result<Principal, Status> {
    match caller(request)? {
        Caller::User(principal) => Ok(principal),
        Caller::Service => Err(to_status(&AccessError::Missing)),
    }
}
