//! The HTTP port: `/metrics`, `/livez` and `/readyz` for whoever reaches it. One request without a
//! body on each connection, in little time.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use autoact_config::DoorConfig;
use autoact_tls::{Listener, Seat, SeatBounds, Seats};
use axum::Router;
use axum::response::IntoResponse as _;
use http::{Request, Response, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tower::ServiceExt as _;

/// Bytes of a request: a probe's has 200. hyper takes no less.
const MAX_REQUEST: usize = 8 * 1024;

/// Serves until it is dropped, and its connections with it.
pub(crate) async fn serve(listener: TcpListener, router: Router, door: DoorConfig) -> io::Result<()> {
    // no connection is ever busy for the table: when there are too many, the oldest goes
    let bounds = SeatBounds { most: door.max_http_connections, per_address: None, first_call: door.http_time };
    let mut listener = Listener::new(listener, Seats::new("http", bounds));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            (stream, seat) = listener.accept() => {
                connections.spawn(connection(stream, seat, router.clone(), door.http_time));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(stream: TcpStream, seat: Seat, router: Router, limit: Duration) {
    let service = service_fn(move |request| answer(request, router.clone()));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limit).max_buf_size(MAX_REQUEST).keep_alive(false).half_close(true);
    let served = tokio::time::timeout(limit, http.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        () = seat.close().cancelled_owned() => {}
        served = served => match served {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "a connection to the HTTP port failed"),
            Err(_) => tracing::debug!("a connection to the HTTP port took too long"),
        },
    }
}

async fn answer(request: Request<Incoming>, router: Router) -> Result<Response<axum::body::Body>, Infallible> {
    if !request.body().is_end_stream() {
        return Ok((StatusCode::PAYLOAD_TOO_LARGE, "this port takes no bodies\n").into_response());
    }
    router.oneshot(request).await
}
