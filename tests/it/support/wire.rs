//! HTTP/1.1 messages off a socket, with nothing put right: for the fake upstream (requests) and the raw client (responses).

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A socket and what has been read from it too early.
#[derive(Debug)]
pub struct Wire {
    pub stream: TcpStream,
    buffer: Vec<u8>,
}

/// Start line and headers as they came, names in the sender's spelling, bytes as Latin-1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    pub line: String,
    pub headers: Vec<(String, String)>,
}

impl Head {
    /// The first value under that name, in whatever case.
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// How the body is framed; none if the head does not say.
    pub fn framing(&self) -> Option<Framing> {
        if self.header("transfer-encoding").is_some_and(|coding| coding.to_ascii_lowercase().ends_with("chunked")) {
            return Some(Framing::Chunked);
        }
        self.header("content-length")?.trim().parse().ok().map(Framing::Length)
    }
}

/// The first value under `name`.
pub fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

/// Where a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    Length(usize),
    Chunked,
    /// Where the connection ends.
    Close,
}

impl Wire {
    pub fn new(stream: TcpStream) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref()).await
    }

    /// The next head; none at the end of the connection.
    pub async fn head(&mut self) -> io::Result<Option<Head>> {
        let mut head = Head::default();
        loop {
            let Some(line) = self.line().await? else { return Ok(None) };
            match (line.is_empty(), head.line.is_empty()) {
                (true, true) => {}
                (true, false) => return Ok(Some(head)),
                (false, true) => head.line = line,
                (false, false) => head.headers.push(header(&line)),
            }
        }
    }

    pub async fn body(&mut self, framing: Framing) -> io::Result<Vec<u8>> {
        match framing {
            Framing::Length(length) => self.exactly(length).await,
            Framing::Chunked => self.chunks().await,
            Framing::Close => self.rest().await,
        }
    }

    /// Everything until the end of the connection.
    pub async fn rest(&mut self) -> io::Result<Vec<u8>> {
        while self.more().await? {}
        Ok(std::mem::take(&mut self.buffer))
    }

    async fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let size = self.line().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
            let digits = size.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(digits, 16).map_err(io::Error::other)?;
            if size == 0 {
                while self.line().await?.is_some_and(|trailer| !trailer.is_empty()) {}
                return Ok(body);
            }
            body.extend(self.exactly(size).await?);
            self.line().await?;
        }
    }

    async fn exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < length {
            if !self.more().await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(self.buffer.drain(..length).collect())
    }

    async fn line(&mut self) -> io::Result<Option<String>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: String = self.buffer.drain(..=end).map(char::from).collect();
                return Ok(Some(line.trim_end_matches(['\r', '\n']).to_owned()));
            }
            if !self.more().await? {
                return if self.buffer.is_empty() { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            }
        }
    }

    async fn more(&mut self) -> io::Result<bool> {
        Ok(self.stream.read_buf(&mut self.buffer).await? > 0)
    }
}

fn header(line: &str) -> (String, String) {
    let (name, value) = line.split_once(':').unwrap_or((line, ""));
    (name.to_owned(), value.trim().to_owned())
}
