//! A provider made of a socket and a script. It counts what would have been billed.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::soon;
use super::step::{Act, Script, Step};
use super::wire::{Framing, Wire, find};

/// A request as it was received, in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    pub method: String,
    pub target: String,
    /// In order, names in the sender's spelling.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Which connection it came on, and as which request of it; both from 1.
    pub connection: usize,
    pub nth_on_connection: usize,
}

impl Recorded {
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// The provider. Dropping it ends it and its connections.
#[derive(Debug)]
pub struct FakeUpstream {
    addr: SocketAddr,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    script: Mutex<(Script, usize)>,
    requests: Mutex<Vec<Recorded>>,
    calls: watch::Sender<usize>,
    gate: Semaphore,
}

impl FakeUpstream {
    pub async fn start(script: impl Into<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let shared = Arc::new(Shared {
            script: Mutex::new((script.into(), 0)),
            requests: Mutex::default(),
            calls: watch::Sender::new(0),
            gate: Semaphore::new(0),
        });
        let addr = listener.local_addr().unwrap();
        let serving = tokio::spawn(serve(listener, shared.clone()));
        Self { addr, shared, serving }
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://127.0.0.1:PORT`
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Requests received in full so far.
    pub fn calls(&self) -> usize {
        *self.shared.calls.borrow()
    }

    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// The last request received.
    pub fn last(&self) -> Recorded {
        self.requests().pop().expect("no call has come")
    }

    /// Begins another script with the next call.
    pub fn set_script(&self, script: impl Into<Script>) {
        *self.shared.script.lock().unwrap() = (script.into(), 0);
    }

    /// Lets so many gated steps go on, now or when they come.
    pub fn release(&self, steps: usize) {
        self.shared.gate.add_permits(steps);
    }

    /// Waits until at least so many calls have come.
    pub async fn wait_for_calls(&self, calls: usize) {
        let mut seen = self.shared.calls.subscribe();
        let there = seen.wait_for(|n| *n >= calls);
        soon(&format!("{calls} calls, {} so far", self.calls()), there).await.unwrap();
    }
}

impl Drop for FakeUpstream {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    let mut number = 0;
    loop {
        tokio::select! {
            Ok((stream, _)) = listener.accept() => {
                number += 1;
                connections.spawn(converse(stream, shared.clone(), number));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Serves one connection until the script or the client ends it.
async fn converse(stream: TcpStream, shared: Arc<Shared>, connection: usize) {
    let _ = stream.set_nodelay(true);
    let mut wire = Wire::new(stream);
    for nth in 1.. {
        let Ok(Some(recorded)) = receive(&mut wire, connection, nth).await else { return };
        let step = shared.take(&recorded);
        match shared.play(&mut wire, step, &recorded).await {
            Ok(Next::KeepAlive) => {}
            Ok(Next::Close) | Err(_) => return,
        }
    }
}

async fn receive(wire: &mut Wire, connection: usize, nth_on_connection: usize) -> io::Result<Option<Recorded>> {
    let Some(head) = wire.head().await? else { return Ok(None) };
    if head.header("expect").is_some() {
        wire.send("HTTP/1.1 100 Continue\r\n\r\n").await?;
    }
    let body = wire.body(head.framing().unwrap_or(Framing::Length(0))).await?;
    let mut words = head.line.split(' ').map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    Ok(Some(Recorded { method, target, headers: head.headers, body, connection, nth_on_connection }))
}

enum Next {
    KeepAlive,
    Close,
}

impl Shared {
    /// Counts a call and takes its step.
    fn take(&self, recorded: &Recorded) -> Step {
        let mut script = self.script.lock().unwrap();
        let step = script.0.step(script.1, recorded);
        script.1 += 1;
        self.requests.lock().unwrap().push(recorded.clone());
        self.calls.send_modify(|calls| *calls += 1);
        step
    }

    async fn play(&self, wire: &mut Wire, mut step: Step, recorded: &Recorded) -> io::Result<Next> {
        tokio::time::sleep(step.delay).await;
        if step.gated {
            self.gate.acquire().await.map_err(io::Error::other)?.forget();
        }
        match step.act {
            Act::Hang => std::future::pending().await,
            Act::Close => return Ok(Next::Close),
            Act::Reset => return wire.stream.set_zero_linger().map(|()| Next::Close),
            Act::Raw => return wire.send(&step.body).await.map(|()| Next::Close),
            Act::Echo => step.body = echo(recorded),
            Act::Answer | Act::Cut(_) | Act::Drip(_) => {}
        }
        // In one piece where it can be: a client must not be able to tell the head's arrival from the body's.
        let mut out = head(&step);
        let no_body = recorded.method == "HEAD" || matches!(step.status, 204 | 304);
        match step.act {
            _ if no_body => {}
            Act::Cut(at) => {
                out.extend(frame(&step, at.min(step.body.len())));
                return wire.send(out).await.map(|()| Next::Close);
            }
            Act::Drip(every) => {
                wire.send(&out).await?;
                return drip(wire, &step, every).await;
            }
            _ => {
                out.extend(frame(&step, step.body.len()));
                out.extend_from_slice(if step.chunked { b"0\r\n\r\n" } else { b"" });
            }
        }
        wire.send(out).await?;
        let closes = step.headers.iter().any(|(name, value)| name.eq_ignore_ascii_case("connection") && value == b"close");
        Ok(if closes { Next::Close } else { Next::KeepAlive })
    }
}

fn head(step: &Step) -> Vec<u8> {
    let reason = http::StatusCode::from_u16(step.status).ok().and_then(|status| status.canonical_reason());
    let mut head = format!("HTTP/1.1 {} {}\r\n", step.status, reason.unwrap_or("Odd")).into_bytes();
    for (name, value) in &step.headers {
        head.extend_from_slice(&[name.as_bytes(), b": ", value, b"\r\n"].concat());
    }
    let framing = match step.chunked {
        true => "Transfer-Encoding: chunked\r\n\r\n".to_owned(),
        false if matches!(step.status, 204 | 304) => "\r\n".to_owned(),
        false => format!("Content-Length: {}\r\n\r\n", step.body.len()),
    };
    head.extend(framing.into_bytes());
    head
}

/// The first `n` bytes of the body as they go over the wire.
fn frame(step: &Step, n: usize) -> Vec<u8> {
    match step.chunked {
        true if n > 0 => [format!("{n:x}\r\n").as_bytes(), &step.body[..n], b"\r\n"].concat(),
        true => Vec::new(),
        false => step.body[..n].to_vec(),
    }
}

async fn drip(wire: &mut Wire, step: &Step, every: std::time::Duration) -> io::Result<Next> {
    for byte in &step.body {
        tokio::time::sleep(every).await;
        let one = Step { body: vec![*byte], ..step.clone() };
        wire.send(frame(&one, 1)).await?;
    }
    if step.chunked {
        wire.send("0\r\n\r\n").await?;
    }
    Ok(Next::KeepAlive)
}

fn echo(recorded: &Recorded) -> Vec<u8> {
    json!({
        "method": recorded.method, "target": recorded.target, "headers": recorded.headers, "body": recorded.text(),
    })
    .to_string()
    .into_bytes()
}
