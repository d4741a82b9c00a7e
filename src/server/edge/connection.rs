//! One connection, from its first byte to its last.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::BytesMut;
use futures_util::future::{Either, Ready, ready};
use http::header::{CONNECTION, CONTENT_LENGTH};
use http::{HeaderValue, Method, Request, Response, Version};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::admit::admit;
use super::drain::{Phase, Watch};
use super::fault::Fault;
use super::progress::{Progress, Timer, UNSTATED};
use super::wire::Wire;
use super::{Body, Edge, Handler};

/// How an HTTP/2 client begins.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// hyper's smallest read buffer.
const SMALLEST_BUFFER: usize = 8 * 1024;

/// Requests at a time on one HTTP/2 connection.
const STREAMS: u32 = 100;

/// Serves one connection to its end.
pub(super) async fn serve<H: Handler>(edge: Arc<Edge<H>>, mut stream: TcpStream, peer: SocketAddr) {
    let progress = Arc::new(Progress::new(&edge.limits));
    let mut watch = edge.drain.watch();
    let at_start = watch.see();
    let mut first = BytesMut::with_capacity(1024);
    match greet(&mut stream, &mut first, &progress, &mut watch).await {
        None => {}
        Some(Protocol::Http1) => {
            let wire = Wire::http1(stream, first, Arc::clone(&progress), edge.limits.max_head);
            serve_http1(&edge, wire, peer, &progress, Seen { watch, at_start }).await;
        }
        Some(Protocol::Http2) => {
            let wire = Wire::http2(stream, first, Arc::clone(&progress), edge.limits.max_head);
            Box::pin(serve_http2(&edge, wire, peer, &progress, Seen { watch, at_start })).await;
        }
    }
}

// === The first bytes ===

enum Protocol {
    Http1,
    Http2,
}

/// Waits for the first bytes; none if they do not come in time, or the end does.
async fn greet(stream: &mut TcpStream, first: &mut BytesMut, progress: &Progress, watch: &mut Watch) -> Option<Protocol> {
    let late = async {
        match progress.first_head_due() {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        protocol = protocol_of(stream, first) => protocol.ok(),
        () = watch.news() => None,
        () = late => None,
    }
}

async fn protocol_of(stream: &mut TcpStream, first: &mut BytesMut) -> io::Result<Protocol> {
    loop {
        if stream.read_buf(first).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if first.starts_with(PREFACE) {
            return Ok(Protocol::Http2);
        }
        if !PREFACE.starts_with(first) {
            return Ok(Protocol::Http1);
        }
    }
}

// === HTTP/1.1 ===

async fn serve_http1<H: Handler>(edge: &Edge<H>, wire: Wire, peer: SocketAddr, progress: &Arc<Progress>, seen: Seen) {
    let (handler, shared) = (edge.handler.clone(), Arc::clone(progress));
    let service = service_fn(move |request: Request<Incoming>| {
        let length = request.body().size_hint().exact();
        shared.begin(length.unwrap_or(UNSTATED));
        let (handler, progress) = (handler.clone(), Arc::clone(&shared));
        begun(async move {
            let version = request.version();
            let mut response = match admit(&request) {
                Ok(()) => guarded(pin!(handler.handle(request, peer)), version).await,
                Err(fault) => fault.response(version),
            };
            if length.is_none() {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            progress.answered();
            Ok::<_, Infallible>(response)
        })
    });
    let connection = http1::Builder::new()
        .keep_alive(seen.at_start == Phase::Open)
        .header_read_timeout(None)
        .max_buf_size(edge.limits.max_head.saturating_add(SMALLEST_BUFFER))
        .serve_connection(TokioIo::new(wire), service);
    drive(connection, progress, seen.watch).await;
}

/// Begins an answer at once, where hyper would first look for a client that hangs up: it makes room for 8 KiB to read into, and as
/// long as a request lives, its head holds the room there was. One that has to wait is polled again when hyper is done with that.
fn begun<F: Future>(answer: F) -> Either<Ready<F::Output>, Pin<Box<F>>> {
    let mut answer = Box::pin(answer);
    match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Either::Left(ready(answer)),
        Poll::Pending => Either::Right(answer),
    }
}

// === HTTP/2 ===

async fn serve_http2<H: Handler>(edge: &Edge<H>, wire: Wire, peer: SocketAddr, progress: &Arc<Progress>, seen: Seen) {
    let (handler, shared) = (edge.handler.clone(), Arc::clone(progress));
    let service = service_fn(move |request: Request<Incoming>| {
        let (handler, running) = (handler.clone(), Running::new(Arc::clone(&shared)));
        async move {
            let (version, bodiless) = (request.version(), request.method() == Method::HEAD);
            let mut response = match admit(&request) {
                Ok(()) => guarded(pin!(handler.handle(request, peer)), version).await,
                Err(fault) => fault.response(version),
            };
            // A stream ends by itself.
            response.headers_mut().remove(CONNECTION);
            if bodiless {
                response = without_body(response);
            }
            drop(running);
            Ok::<_, Infallible>(response)
        }
    });
    let streams = Streams { tasks: edge.tasks.clone(), watch: seen.watch.clone() };
    let connection = http2::Builder::new(streams)
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(u32::try_from(edge.limits.max_head).unwrap_or(u32::MAX))
        .serve_connection(TokioIo::new(wire), service);
    drive(connection, progress, seen.watch).await;
}

/// An answer to HEAD: hyper leaves the body out on HTTP/1.1 only.
fn without_body(response: Response<Body>) -> Response<Body> {
    let (mut head, body) = response.into_parts();
    if let Some(length) = body.size_hint().exact() {
        head.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    Response::from_parts(head, Body::default())
}

/// One request of several on a connection.
struct Running(Arc<Progress>);

impl Running {
    fn new(progress: Arc<Progress>) -> Self {
        progress.enter();
        Self(progress)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// Runs HTTP/2's tasks where the drain waits for them.
#[derive(Clone)]
struct Streams {
    tasks: TaskTracker,
    watch: Watch,
}

impl<F> Executor<F> for Streams
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, task: F) {
        let mut watch = self.watch.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                _ = task => {}
                () = watch.cut() => {}
            }
        });
    }
}

// === Both ===

/// The drain, and how far it was when the connection began.
struct Seen {
    watch: Watch,
    at_start: Phase,
}

enum Turn {
    Over,
    News,
}

/// Polls the connection to its end: its own, its timer's or the drain's.
async fn drive<C: GracefulConnection>(connection: C, progress: &Progress, mut watch: Watch) {
    let mut connection = pin!(connection);
    let sleep = pin!(tokio::time::sleep_until(Instant::now()));
    let mut timer = Timer::new(progress, sleep);
    // hyper takes a connection it has read nothing from for an idle one; what has come already is a request.
    if std::future::poll_fn(|cx| Poll::Ready(connection.as_mut().poll(cx))).await.is_ready() {
        return;
    }
    while let Turn::News = turn(connection.as_mut(), &mut timer, &mut watch).await {
        if watch.see() == Phase::Cut {
            return;
        }
        connection.as_mut().graceful_shutdown();
    }
}

/// Until something other than a request happens. The drain's waker is registered once, not with every poll.
async fn turn<C: GracefulConnection>(mut connection: Pin<&mut C>, timer: &mut Timer<'_>, watch: &mut Watch) -> Turn {
    let flag = watch.clone();
    let mut news = pin!(watch.news());
    let mut registered = false;
    std::future::poll_fn(move |cx: &mut Context<'_>| {
        // First, so that an answer given in this poll says that the connection closes.
        if (!registered || flag.is_news()) && news.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Turn::News);
        }
        registered = true;
        if connection.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Turn::Over);
        }
        if timer.poll(cx).is_ready() {
            // Once more, to say so to a client that is late with its head.
            let _ = connection.as_mut().poll(cx);
            return Poll::Ready(Turn::Over);
        }
        Poll::Pending
    })
    .await
}

/// The handler's answer; ours where it panics. Takes the future where it lies: a request is too large to be moved for nothing.
async fn guarded(mut answer: Pin<&mut (impl Future<Output = Response<Body>> + Send)>, version: Version) -> Response<Body> {
    std::future::poll_fn(|cx| {
        let polled = std::panic::catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(cx)));
        polled.unwrap_or_else(|_panic| {
            tracing::error!("a request handler panicked");
            Poll::Ready(Fault::Panicked.response(version))
        })
    })
    .await
}
