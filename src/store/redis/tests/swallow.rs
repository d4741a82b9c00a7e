//! A proxy that loses a reply and lets all that follow pass: each then seems to answer the question after its own.

use std::sync::atomic::AtomicBool;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::outage::{recovery, short};
use super::*;

/// The proxy. It ends with its runtime.
struct Swallower {
    port: u16,
    hungry: Arc<AtomicBool>,
}

impl Swallower {
    async fn before(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, hungry) = (listener.local_addr().unwrap().port(), Arc::new(AtomicBool::new(false)));
        tokio::spawn(serve(listener, server, Arc::clone(&hungry)));
        Self { port, hungry }
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The next reply that is a list is lost.
    fn swallow_one(&self) {
        self.hungry.store(true, Ordering::SeqCst);
    }
}

async fn serve(listener: TcpListener, server: u16, hungry: Arc<AtomicBool>) {
    while let Ok((client, _)) = listener.accept().await {
        let server = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
        let ((mut from_client, mut to_client), (mut from_server, mut to_server)) = (client.into_split(), server.into_split());
        tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
        let hungry = Arc::clone(&hungry);
        tokio::spawn(async move {
            let mut buffer = vec![0; 65_536];
            while let Ok(read @ 1..) = from_server.read(&mut buffer).await {
                let rest = lose(&buffer[..read], &hungry);
                if to_client.write_all(rest).await.is_err() {
                    break;
                }
            }
        });
    }
}

/// What is left of some replies when the first was swallowed: a list of two short strings, as it stands at the beginning.
fn lose<'a>(replies: &'a [u8], hungry: &AtomicBool) -> &'a [u8] {
    if !replies.starts_with(b"*2\r\n$") || !hungry.swap(false, Ordering::SeqCst) {
        return replies;
    }
    let lines = replies.split_inclusive(|byte| *byte == b'\n').take(5).map(<[u8]>::len).sum();
    &replies[lines..]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_to_another_question_is_never_given() {
    let (server, clock) = (Server::start(), Clock::system());
    let swallower = Swallower::before(server.port).await;
    let (store, _events) = RedisStore::open(short(swallower.url()), clock.clone()).unwrap();
    assert!(store.connected(TIMEOUT).await);
    for route in ["a", "b", "b"] {
        store.raise_generation(OpId::random(), route).await.unwrap();
    }
    let before = *store.link.connections().borrow();
    swallower.swallow_one();
    let ask = |n: u64| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let route = if n.is_multiple_of(2) { "a" } else { "b" };
            (store.generation(route).await, 1 + n % 2)
        })
    };
    let mut noticed = false;
    while !noticed {
        let replies = futures_util::future::try_join_all((0..40).map(ask)).await.unwrap();
        noticed = replies.iter().any(|(reply, _)| reply.is_err());
        for (reply, right) in replies {
            assert!(reply.is_err() || reply == Ok(right), "{reply:?} is the answer to another question");
        }
    }
    recovery(&store, &clock).await;
    assert!(*store.link.connections().borrow() > before);
    assert_eq!((store.generation("a").await, store.generation("b").await), (Ok(1), Ok(2)));
}
