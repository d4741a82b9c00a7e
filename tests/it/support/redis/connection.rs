//! A client that sends what it is told and hides nothing: no reconnects, no retries, no script cache.

use std::io;
use std::net::SocketAddr;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::support::resp::{self, Frames, Reply};
use crate::support::soon;

/// One connection to Redis. RESP2 until `HELLO 3`.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    frames: Frames,
}

impl Connection {
    pub async fn to(addr: SocketAddr) -> io::Result<Self> {
        let stream = soon("a connection to Redis", TcpStream::connect(addr)).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, frames: Frames::default() })
    }

    /// Sends a command and waits for the next reply; an error if the connection ends.
    pub async fn command(&mut self, words: &[&str]) -> io::Result<Reply> {
        self.send(words).await?;
        soon(&format!("a reply to {words:?}"), self.reply()).await
    }

    /// Sends a command and does not wait.
    pub async fn send(&mut self, words: &[&str]) -> io::Result<()> {
        self.stream.write_all(&resp::command(words)).await
    }

    /// The next reply, whatever it answers. Waits for ever.
    pub async fn reply(&mut self) -> io::Result<Reply> {
        loop {
            if let Some(frame) = self.frames.cut().map_err(io::Error::other)? {
                return resp::parse(&frame).map_err(io::Error::other);
            }
            if !self.frames.fill(&mut self.stream).await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}
