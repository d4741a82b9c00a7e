//! The HTTP edge: what a connection may cost before anybody has asked a question.
//!
//! [`serve`] accepts HTTP/1.1 and, by prior knowledge, HTTP/2 on one listener and hands each request to a [`Handler`]. It
//! refuses here what no handler should see:
//!
//! | what | how |
//! |---|---|
//! | a head that is not there within `head_timeout` of the connection, or of its first byte | 408 if part of it came; closed |
//! | a connection idle for `idle_timeout` between requests | closed |
//! | an answer that is not taken within `idle_timeout` | closed |
//! | a head above `max_head`, or with more than 100 headers | 414 if the request line alone is too long, else 431; closed |
//! | two framing headers (`Content-Length`, `Transfer-Encoding`), a coding that is not `chunked`, a bare LF | 400; closed |
//! | no Host or several, or not the authority of the target | 400; closed |
//! | CONNECT | 405; closed. `Upgrade` is not heard |
//! | more than `max_connections` | the listener's backlog holds the next one until one ends |
//! | a handler that panics | 500; closed |
//!
//! An HTTP/1.1 connection ends after a chunked request: nothing behind a body of unstated length is ever read as a request.
//! Reading the body in time and in bounds is the handler's part, as is the time it takes to answer.
//!
//! `wire` sees the bytes before hyper does and keeps the times, `admit` looks at the parsed request, `connection` drives one
//! connection, `drain` ends them all.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

mod accept;
mod admit;
mod connection;
mod drain;
mod fault;
mod head;
mod progress;
#[cfg(test)]
mod tests;
mod wire;

pub use drain::Drain;

/// Body of an answer: one piece, known in full.
pub type Body = Full<Bytes>;

/// What one listener allows.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For one request head: from the connection's start, later from the head's first byte.
    pub head_timeout: Duration,
    /// Between two requests, and for the client to take an answer.
    pub idle_timeout: Duration,
    /// Bytes of one request head.
    pub max_head: usize,
    /// Connections at a time; zero lets nobody in.
    pub max_connections: usize,
}

/// Answers requests.
pub trait Handler: Clone + Send + Sync + 'static {
    /// Answers one request of `peer`. Dropped when the client hangs up: what must go on is spawned. Written as an `async fn`,
    /// so that a panic can only happen inside the future, where it is answered with 500.
    fn handle(&self, request: Request<Incoming>, peer: SocketAddr) -> impl Future<Output = Response<Body>> + Send;
}

/// Serves the listener until `drain` has been told to stop and the last connection has ended or been cut.
pub async fn serve(listener: TcpListener, limits: Limits, handler: impl Handler, drain: Drain) {
    let edge = Arc::new(Edge { limits, handler, drain, tasks: TaskTracker::new() });
    let mut stop = edge.drain.watch();
    tokio::select! {
        () = stop.stopped() => {}
        () = edge.accept(&listener) => {}
    }
    drop(listener);
    edge.tasks.close();
    edge.drain.see_off(edge.tasks.wait()).await;
}

/// One listener with all that its connections share.
struct Edge<H> {
    limits: Limits,
    handler: H,
    drain: Drain,
    tasks: TaskTracker,
}

impl<H: Handler> Edge<H> {
    /// Accepts for ever, one connection per free place.
    async fn accept(self: &Arc<Self>, listener: &TcpListener) {
        let room = Arc::new(Semaphore::new(self.limits.max_connections.min(Semaphore::MAX_PERMITS)));
        while let Ok(place) = Arc::clone(&room).acquire_owned().await {
            let (stream, peer) = accept::next(listener).await;
            let edge = Arc::clone(self);
            self.tasks.spawn(async move {
                edge.serve_one(stream, peer).await;
                drop(place);
            });
        }
    }

    async fn serve_one(self: Arc<Self>, stream: TcpStream, peer: SocketAddr) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY refused");
        }
        connection::serve(self, stream, peer).await;
    }
}
