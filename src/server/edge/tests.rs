//! The edge, seen from a raw socket: libraries would put right what these tests send wrong.

use std::sync::atomic::{AtomicUsize, Ordering};

use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::*;

mod ending;
mod framing;
mod time;

/// Nothing here takes that long unless it hangs.
const HANG: Duration = Duration::from_secs(10);

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

fn limits() -> Limits {
    Limits { head_timeout: HANG * 2, idle_timeout: HANG * 2, max_head: 32 * 1024, max_connections: 100 }
}

/// Answers with the body it was sent, or as the path says.
#[derive(Clone)]
struct Echo(Arc<Shared>);

struct Shared {
    calls: AtomicUsize,
    gate: Semaphore,
}

impl Handler for Echo {
    async fn handle(&self, request: Request<Incoming>, _peer: SocketAddr) -> Response<Body> {
        self.0.calls.fetch_add(1, Ordering::SeqCst);
        match request.uri().path() {
            "/panic" => panic!("as asked"),
            "/big" => return Response::new(Body::from(vec![b'x'; 64 << 20])),
            "/gated" => self.0.gate.acquire().await.unwrap().forget(),
            "/refuse" => return Response::builder().status(413).body(Body::default()).unwrap(),
            _ => {}
        }
        match request.into_body().collect().await {
            Ok(body) => Response::new(Body::new(body.to_bytes())),
            Err(_) => Response::builder().status(400).body(Body::default()).unwrap(),
        }
    }
}

/// A listener under test.
struct Edge {
    addr: SocketAddr,
    drain: Drain,
    shared: Arc<Shared>,
    served: JoinHandle<()>,
}

impl Edge {
    async fn start(limits: Limits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (addr, drain) = (listener.local_addr().unwrap(), Drain::new());
        let shared = Arc::new(Shared { calls: AtomicUsize::new(0), gate: Semaphore::new(0) });
        let served = tokio::spawn(serve(listener, limits, Echo(shared.clone()), drain.clone()));
        Self { addr, drain, shared, served }
    }

    async fn connect(&self) -> Client {
        Client(TcpStream::connect(self.addr).await.unwrap())
    }

    /// Sends it on a connection of its own and returns all that comes until the edge closes.
    async fn exchange(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut client = self.connect().await;
        client.send(bytes).await;
        client.rest().await
    }

    fn calls(&self) -> usize {
        self.shared.calls.load(Ordering::SeqCst)
    }

    async fn wait_for_calls(&self, calls: usize) {
        let there = async {
            while self.calls() < calls {
                tokio::task::yield_now().await;
            }
        };
        within(there).await;
    }
}

/// One raw connection.
struct Client(TcpStream);

impl Client {
    async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        // The edge may have closed before it has read everything.
        let _ = self.0.write_all(bytes.as_ref()).await;
    }

    /// Everything until the end.
    async fn rest(&mut self) -> String {
        let mut all = Vec::new();
        if let Err(error) = within(self.0.read_to_end(&mut all)).await {
            all.extend_from_slice(format!("[{}]", error.kind()).as_bytes());
        }
        String::from_utf8(all).unwrap()
    }

    /// Everything up to `mark`.
    async fn until(&mut self, mark: &str) -> String {
        let mut all = String::new();
        while !all.ends_with(mark) {
            let mut byte = [0];
            assert_eq!(within(self.0.read(&mut byte)).await.unwrap(), 1, "closed after {all:?}");
            all.push(char::from(byte[0]));
        }
        all
    }
}

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(HANG, future).await.expect("it hangs")
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or(answer)
}

fn answers(all: &str) -> usize {
    all.matches("HTTP/1.").count()
}
