//! Behind a proxy that loses a reply and lets all that follow pass, so that each seems to answer the question after its own; or
//! that lets nothing pass any more, and does not say so.

use std::sync::atomic::{AtomicBool, AtomicU32};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::super::super::conformance::shared::{listening, next};
use super::outage::{recovery, short};
use super::*;

/// The proxy. It ends with its runtime.
pub struct Proxy {
    port: u16,
    faults: Arc<Faults>,
}

/// What it does wrong.
#[derive(Default)]
struct Faults {
    /// The next reply that is a list is lost.
    hungry: AtomicBool,
    /// Nothing that the server says on this connection passes any more; counted from one.
    silent: AtomicU32,
    accepted: AtomicU32,
}

impl Proxy {
    pub async fn before(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, faults) = (listener.local_addr().unwrap().port(), Arc::<Faults>::default());
        tokio::spawn(serve(listener, server, Arc::clone(&faults)));
        Self { port, faults }
    }

    /// Loses the next reply that is a list of two.
    pub fn lose_a_reply(&self) {
        self.faults.hungry.store(true, Ordering::SeqCst);
    }

    /// Has the reply been lost?
    pub fn has_lost_it(&self) -> bool {
        !self.faults.hungry.load(Ordering::SeqCst)
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

async fn serve(listener: TcpListener, server: u16, faults: Arc<Faults>) {
    while let Ok((client, _)) = listener.accept().await {
        let server = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
        let ((mut from_client, mut to_client), (mut from_server, mut to_server)) = (client.into_split(), server.into_split());
        tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
        let (faults, number) = (Arc::clone(&faults), faults.accepted.fetch_add(1, Ordering::SeqCst) + 1);
        tokio::spawn(async move {
            let mut buffer = vec![0; 65_536];
            while let Ok(read @ 1..) = from_server.read(&mut buffer).await {
                let rest = lose(&buffer[..read], &faults.hungry);
                if faults.silent.load(Ordering::SeqCst) == number {
                    continue;
                }
                if to_client.write_all(&rest).await.is_err() {
                    break;
                }
            }
        });
    }
}

/// What is left of some replies when one was swallowed: a list of two short strings, wherever it stands.
fn lose(replies: &[u8], hungry: &AtomicBool) -> Vec<u8> {
    let start = replies.windows(5).position(|bytes| bytes == b"*2\r\n$");
    let Some((before, rest)) = start.and_then(|start| replies.split_at_checked(start)) else { return replies.to_vec() };
    if !hungry.swap(false, Ordering::SeqCst) {
        return replies.to_vec();
    }
    let lines = rest.split_inclusive(|byte| *byte == b'\n').take(5).map(<[u8]>::len).sum();
    [before, &rest[lines..]].concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_to_another_question_is_never_given() {
    let (server, clock) = (Server::start(), Clock::system());
    let proxy = Proxy::before(server.port).await;
    let (store, _events) = RedisStore::open(short(proxy.url()), clock.clone()).unwrap();
    assert!(store.connected(TIMEOUT).await);
    let mut right = [0, 0];
    for (place, route) in [(0, "a"), (1, "b")] {
        right[place] = store.raise_generation(OpId::random(), route).await.unwrap();
        // The next is another number for certain.
        right[1] = store.raise_generation(OpId::random(), "b").await.unwrap();
    }
    assert_ne!(right[0], right[1]);
    let before = *store.link.connections().borrow();
    proxy.lose_a_reply();
    let ask = |n: u64| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let route = if n.is_multiple_of(2) { "a" } else { "b" };
            (store.generation(route).await, right[usize::try_from(n % 2).unwrap()])
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
    assert_eq!((store.generation("a").await, store.generation("b").await), (Ok(right[0]), Ok(right[1])));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_that_has_gone_silent_is_replaced_and_nothing_is_missed() {
    let server = Server::start();
    let proxy = Proxy::before(server.port).await;
    let (store, mut events) = RedisStore::open(short(proxy.url()), Clock::system()).unwrap();
    listening(&mut events).await;
    assert_eq!(proxy.faults.accepted.load(Ordering::SeqCst), 2, "one for calls, one that listens");
    proxy.faults.silent.store(2, Ordering::SeqCst);
    let raised = store.raise_generation(OpId::random(), "geo").await.unwrap();
    let heard = |event| if let Event::Generation { generation, .. } = event { Some(generation) } else { None };
    assert_eq!(next(&mut events, heard).await, raised, "from the log");
    assert_eq!(proxy.faults.accepted.load(Ordering::SeqCst), 3, "and another listens now");
    assert_eq!(*store.link.connections().borrow(), 1, "the calls are as they were");
}
