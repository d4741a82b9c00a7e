//! Where one reply ends and the next begins, however the stream is split.

use std::{fmt, io};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Bytes that are no RESP.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed(pub(super) String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not RESP: {}", self.0)
    }
}

impl std::error::Error for Malformed {}

/// Cuts a stream into whole replies (or commands), each with the attributes ahead of it.
#[derive(Debug, Default)]
pub struct Frames {
    buffer: BytesMut,
    /// How far the frame has been read.
    read: usize,
    /// How many values it lacks, the first aside.
    more: usize,
}

impl Frames {
    /// Reads what has come; false at the end of the stream.
    pub async fn fill(&mut self, from: &mut (impl AsyncRead + Unpin)) -> io::Result<bool> {
        Ok(from.read_buf(&mut self.buffer).await? > 0)
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame, if it is there.
    pub fn cut(&mut self) -> Result<Option<Bytes>, Malformed> {
        loop {
            let Some(head) = Head::read(&self.buffer[self.read..])? else { return Ok(None) };
            let end = self.read + head.length + head.payload.map_or(0, |payload| payload + 2);
            if self.buffer.len() < end {
                return Ok(None);
            }
            self.read = end;
            self.more += head.values;
            if self.more == 0 {
                self.read = 0;
                return Ok(Some(self.buffer.split_to(end).freeze()));
            }
            self.more -= 1;
        }
    }
}

/// The line a value begins with.
pub(super) struct Head<'a> {
    pub kind: u8,
    pub rest: &'a str,
    /// Of the line, its end included.
    pub length: usize,
    /// Bytes that follow, their line end aside.
    pub payload: Option<usize>,
    /// Values that follow and belong to this one. Attributes are followed by the value they belong to.
    pub values: usize,
}

impl<'a> Head<'a> {
    pub fn read(bytes: &'a [u8]) -> Result<Option<Self>, Malformed> {
        let malformed = |bytes: &[u8]| Malformed(String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned());
        let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
        let (kind, rest) = bytes[..end].split_first().ok_or_else(|| malformed(bytes))?;
        let rest = std::str::from_utf8(rest).map_err(|_| malformed(bytes))?;
        // -1 is the null of RESP2.
        let count = || if rest == "-1" { Ok(None) } else { rest.parse().map(Some).map_err(|_| malformed(bytes)) };
        let (payload, values) = match kind {
            b'+' | b'-' | b':' | b'_' | b',' | b'#' | b'(' => (None, 0),
            b'$' | b'!' | b'=' => (count()?, 0),
            b'*' | b'~' | b'>' => (None, count()?.unwrap_or(0)),
            b'%' => (None, count()?.unwrap_or(0) * 2),
            b'|' => (None, count()?.unwrap_or(0) * 2 + 1),
            _ => return Err(malformed(bytes)),
        };
        Ok(Some(Self { kind: *kind, rest, length: end + 2, payload, values }))
    }
}
