//! A client that sends the bytes it is given. Libraries normalise paths and headers, and hide the bug.

use std::io;
use std::net::SocketAddr;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::soon;
use super::wire::{Framing, Wire, find};

/// One connection, kept until it is dropped.
#[derive(Debug)]
pub struct Raw(Wire);

/// A response as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Raw {
    pub async fn connect(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self(Wire::new(stream))
    }

    /// Sends these bytes. That the other side has closed by then shows when the response is read.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let _ = soon("sending", self.0.send(bytes)).await;
        self
    }

    /// Says that nothing more will be sent.
    pub async fn end(&mut self) -> &mut Self {
        let _ = self.0.stream.shutdown().await;
        self
    }

    /// The next response (an interim one too); none at the end of the connection.
    pub async fn response(&mut self) -> Option<Response> {
        self.try_response("GET").await.unwrap_or_else(|error| panic!("no whole response: {error}"))
    }

    /// The next response to a request of that method; an error if the connection ends in the middle of it.
    pub async fn try_response(&mut self, method: &str) -> io::Result<Option<Response>> {
        soon("a response", read(&mut self.0, method)).await
    }

    /// Everything until the connection ends, however it ends.
    pub async fn rest(&mut self) -> Vec<u8> {
        soon("the end of the connection", self.0.rest()).await.unwrap_or_default()
    }

    /// Waits for the other side to close, and expects no bytes before.
    pub async fn closed(&mut self) {
        let rest = self.rest().await;
        assert!(rest.is_empty(), "more came: {}", String::from_utf8_lossy(&rest));
    }
}

/// Sends the bytes on a connection of their own and reads responses until the other side closes.
pub async fn exchange(addr: SocketAddr, bytes: impl AsRef<[u8]>) -> Vec<Response> {
    let mut raw = Raw::connect(addr).await;
    raw.send(bytes).await;
    let mut responses = Vec::new();
    while let Ok(Some(response)) = raw.try_response("GET").await {
        responses.push(response);
    }
    responses
}

async fn read(wire: &mut Wire, method: &str) -> io::Result<Option<Response>> {
    let Some(head) = wire.head().await? else { return Ok(None) };
    let status = head.line.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.ok_or_else(|| io::Error::other(format!("not a status line: {:?}", head.line)))?;
    let framing = match status {
        100..200 | 204 | 304 => Framing::Length(0),
        _ if method == "HEAD" => Framing::Length(0),
        _ => head.framing().unwrap_or(Framing::Close),
    };
    let body = wire.body(framing).await?;
    Ok(Some(Response { status, headers: head.headers, body }))
}
