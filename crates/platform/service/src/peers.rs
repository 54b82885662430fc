//! Who may call: the names in the caller's certificate, before anything of the call is looked at.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use autoact_config::TlsConfig;
use autoact_tls::{Connection, Peer};
use autoact_wire::status::{ServiceError, to_status};
use http::{Request, Response};
use tonic::Code;
use tonic::body::Body;
use tower::{Layer, Service};

/// Who made a request, if its connection showed a certificate.
pub fn peer<T>(request: &tonic::Request<T>) -> Option<&Peer> {
    request.extensions().get::<Peer>()
}

/// A caller whose certificate is genuine, and who has no business here.
#[derive(Debug, thiserror::Error)]
#[error("`{peer}` may not call `{service}`; fix: use the certificate of one who may ({}), or add its name to `tls.peers` of `{service}`", .allowed.join(", "))]
struct NotAllowed {
    peer: String,
    service: &'static str,
    allowed: Arc<[String]>,
}

impl ServiceError for NotAllowed {
    fn code(&self) -> Code {
        Code::PermissionDenied
    }

    fn reason(&self) -> &'static str {
        "PEER_NOT_ALLOWED"
    }

    fn metadata(&self) -> Vec<(&'static str, String)> {
        vec![("peer", self.peer.clone()), ("service", self.service.to_owned())]
    }
}

/// Lets those in who may call. A connection without a certificate is one that needs none: plain
/// text, or a gateway whose clients show tokens.
#[derive(Debug, Clone)]
pub(crate) struct PeersLayer {
    service: &'static str,
    allowed: Arc<[String]>,
}

impl PeersLayer {
    pub(crate) fn new(service: &'static str, tls: &TlsConfig) -> PeersLayer {
        let needed = || autoact_tls::callers(service).iter().map(|name| (*name).to_owned()).collect();
        PeersLayer { service, allowed: tls.peers.clone().unwrap_or_else(needed).into() }
    }
}

impl<S> Layer<S> for PeersLayer {
    type Service = PeersService<S>;

    fn layer(&self, inner: S) -> PeersService<S> {
        PeersService { inner, peers: self.clone() }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct PeersService<S> {
    inner: S,
    peers: PeersLayer,
}

impl<S> Service<Request<Body>> for PeersService<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        if let Some(Connection { tcp, peer, .. }) = request.extensions().get::<Connection>().cloned() {
            // where tonic looks for the caller's address
            request.extensions_mut().insert(tcp);
            if let Some(peer) = peer {
                let PeersLayer { service, allowed } = &self.peers;
                if !peer.is_one_of(allowed) {
                    let refusal = NotAllowed { peer: peer.to_string(), service, allowed: Arc::clone(allowed) };
                    let response = to_status(&refusal).into_http();
                    return Box::pin(async move { Ok(response) });
                }
                request.extensions_mut().insert(peer);
            }
        }
        Box::pin(self.inner.call(request))
    }
}
