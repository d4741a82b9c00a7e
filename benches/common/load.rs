//! The generator: 64 connections, one request in flight on each, two system calls a request.
//!
//! It waits on the connections in turn instead of polling them all. While it waits on one, the server has the other 63 to work on, so a
//! server is kept busy at a fraction of its own cost, and nothing here decides how many requests it sees at once.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

const CONNECTIONS: usize = 64;
/// Distinct questions, each warm before anything is measured.
pub const QUESTIONS: usize = 1_000;
/// Distinct caller keys.
pub const CALLERS: usize = 100;

/// What the `index`th caller sends in `X-Api-Key`.
pub fn caller_key(index: usize) -> String {
    format!("bench-caller-key-{index:03}")
}

/// A question of a route by one of the callers. Every `question` is another one.
pub fn request(route: &str, question: usize) -> Vec<u8> {
    let key = caller_key(question % CALLERS);
    format!(
        "GET /{route}/v1/json?q={question}%20Residency%20Road%2C%20Bengaluru&language=en HTTP/1.1\r\n\
         Host: gateway.test\r\nX-Api-Key: {key}\r\nAccept: application/json\r\n\r\n"
    )
    .into_bytes()
}

/// One request a question, its callers taken in turn.
pub fn requests() -> Vec<Vec<u8>> {
    (0..QUESTIONS).map(|question| request("geocode", question)).collect()
}

/// Asks every request once, one after the other.
pub fn each_once(address: SocketAddr, requests: &[Vec<u8>]) -> Result<()> {
    let mut connection = Connection::open(address)?;
    requests.iter().try_for_each(|request| connection.ask(request))
}

/// The connections, each with a request on its way.
pub struct Herd<'a> {
    connections: Vec<Connection>,
    requests: std::iter::Cycle<std::slice::Iter<'a, Vec<u8>>>,
}

impl<'a> Herd<'a> {
    pub fn connect(address: SocketAddr, requests: &'a [Vec<u8>]) -> Result<Self> {
        let mut requests = requests.iter().cycle();
        let mut connections = Vec::with_capacity(CONNECTIONS);
        for request in requests.by_ref().take(CONNECTIONS) {
            let mut connection = Connection::open(address)?;
            connection.send(request)?;
            connections.push(connection);
        }
        Ok(Self { connections, requests })
    }

    /// Takes one answer from every connection and asks the next question on it.
    pub fn sweep(&mut self) -> Result<()> {
        for connection in &mut self.connections {
            connection.receive()?;
            connection.send(self.requests.next().context("no requests")?)?;
        }
        Ok(())
    }

    /// Answers received, and the time it really took.
    pub fn run_for(&mut self, time: Duration) -> Result<(u64, Duration)> {
        let start = Instant::now();
        let mut answers = 0;
        while start.elapsed() < time {
            self.sweep()?;
            answers += CONNECTIONS as u64;
        }
        Ok((answers, start.elapsed()))
    }
}

/// A kept-alive connection.
pub struct Connection {
    stream: TcpStream,
    buffer: Box<[u8]>,
}

impl Connection {
    pub fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        Ok(Self { stream, buffer: vec![0; 8192].into() })
    }

    /// Waits for the answer.
    pub fn ask(&mut self, request: &[u8]) -> Result<()> {
        self.send(request)?;
        self.receive()
    }

    fn send(&mut self, request: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(request)?)
    }

    fn receive(&mut self) -> Result<()> {
        let mut filled = 0;
        loop {
            let room = self.buffer.get_mut(filled..).unwrap_or_default();
            match self.stream.read(room)? {
                0 => bail!("the server closed the connection, or its answer is above 8 KiB"),
                read => filled += read,
            }
            let so_far = self.buffer.get(..filled).unwrap_or_default();
            if answer_length(so_far)?.is_some_and(|whole| filled >= whole) {
                return Ok(());
            }
        }
    }
}

/// Head and body together, once the head is complete. Anything but 200 ends the run: a refusal is cheap and would flatter.
fn answer_length(answer: &[u8]) -> Result<Option<usize>> {
    let Some(head_end) = answer.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let head = answer.get(..head_end).unwrap_or_default();
    if !head.starts_with(b"HTTP/1.1 200") {
        bail!("not a 200: {}", String::from_utf8_lossy(answer));
    }
    let body = head.split(|byte| *byte == b'\n').find_map(content_length).context("an answer without Content-Length")?;
    Ok(Some(head_end + 4 + body))
}

fn content_length(line: &[u8]) -> Option<usize> {
    let (name, value) = line.split_at_checked("content-length:".len())?;
    name.eq_ignore_ascii_case(b"content-length:").then_some(())?;
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}
