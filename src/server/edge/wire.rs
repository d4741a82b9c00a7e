//! The socket of one connection as hyper sees it.
//!
//! hyper is given one head at a time: what came behind it is held back until the request's framing is known, so that every
//! head is looked at ([`Head`]) before it is parsed, and so that it is known at all times what the connection waits for.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::fault::Fault;
use super::head::{Head, Scan};
use super::progress::{Progress, Stage, UNSTATED};

/// Answers up to this size, head and body, leave in one piece: the system takes longer to gather pieces than we to copy them.
const ONE_PIECE: usize = 4 * 1024;

thread_local! {
    /// Room for an answer in one piece. All connections of a thread take turns, so that it is in the processor's cache.
    static PIECE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The socket, and what has been read from it too early.
#[derive(Debug)]
pub(super) struct Wire {
    stream: TcpStream,
    progress: Arc<Progress>,
    held: BytesMut,
    reading: Reading,
    max_head: usize,
    /// hyper was told to wait for bytes that are here.
    starved: bool,
    /// The client has said its last.
    ended: bool,
}

#[derive(Debug)]
enum Reading {
    /// A head; the flag: its time is running.
    Head(Head, bool),
    /// A head has ended; hyper is about to say what it asks.
    Parsed,
    /// That much of a body, then the next head.
    Body(u64),
    /// Bytes without end, HTTP/2 or a chunked body.
    Open,
    /// Nothing more; what still comes is thrown away.
    Refused,
}

impl Wire {
    /// HTTP/1.1 on a socket of which `first` has been read.
    pub(super) fn http1(stream: TcpStream, first: BytesMut, progress: Arc<Progress>, max_head: usize) -> Self {
        Self { reading: Reading::Head(Head::default(), true), ..Self::http2(stream, first, progress, max_head) }
    }

    /// HTTP/2 on a socket of which `first` has been read: nothing is looked at.
    pub(super) fn http2(stream: TcpStream, first: BytesMut, progress: Arc<Progress>, max_head: usize) -> Self {
        Self { stream, progress, held: first, reading: Reading::Open, max_head, starved: false, ended: false }
    }

    /// Reads into `buf`, first what was held back: at most `most` bytes.
    fn fill(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>, most: u64) -> Poll<io::Result<usize>> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        if !self.held.is_empty() {
            let n = self.held.len().min(buf.remaining()).min(most);
            buf.put_slice(&self.held.split_to(n));
            if self.held.is_empty() {
                self.held = BytesMut::new();
            }
            return Poll::Ready(Ok(n));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        let got = buf.filled().len().saturating_sub(before);
        self.ended |= got == 0;
        Poll::Ready(Ok(self.hold_back(buf, before, got.min(most))))
    }

    /// Leaves `keep` bytes after `before` in `buf` and holds the others back, before those held already.
    fn hold_back(&mut self, buf: &mut ReadBuf<'_>, before: usize, keep: usize) -> usize {
        let end = before.saturating_add(keep);
        if let Some(surplus) = buf.filled().get(end..).filter(|surplus| !surplus.is_empty()) {
            let mut held = BytesMut::from(surplus);
            held.extend_from_slice(&self.held);
            self.held = held;
            buf.set_filled(end);
        }
        keep
    }

    fn poll_head(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let got = match self.fill(cx, buf, u64::MAX) {
            Poll::Ready(got) => got?,
            Poll::Pending if self.is_late() => return self.refuse(cx, buf, before, Fault::Timeout),
            Poll::Pending => return Poll::Pending,
        };
        let Reading::Head(head, timed) = &mut self.reading else { return Poll::Ready(Ok(())) };
        match head.scan(buf.filled().get(before..).unwrap_or_default(), self.max_head) {
            Scan::More if got > 0 && !*timed => {
                *timed = true;
                self.progress.head_begins();
            }
            Scan::More => {}
            Scan::End(keep) => {
                self.reading = Reading::Parsed;
                self.hold_back(buf, before, keep);
            }
            Scan::Bad(fault) => return self.refuse(cx, buf, before, fault),
        }
        Poll::Ready(Ok(()))
    }

    /// Part of a head is here, and the time for the rest is over.
    fn is_late(&self) -> bool {
        matches!(&self.reading, Reading::Head(head, _) if !head.is_empty()) && self.progress.has_expired()
    }

    fn poll_body(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>, left: u64) -> Poll<io::Result<()>> {
        if left > 0 {
            let got = ready!(self.fill(cx, buf, left))?;
            self.reading = Reading::Body(left.saturating_sub(u64::try_from(got).unwrap_or(u64::MAX)));
            return Poll::Ready(Ok(()));
        }
        if self.progress.stage() == Stage::Waiting {
            self.reading = Reading::Head(Head::default(), false);
            return self.poll_head(cx, buf);
        }
        self.poll_hang_up(cx, buf)
    }

    /// While a request is answered: tells hyper when the client has gone, and keeps back what it sends.
    fn poll_hang_up(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.held.is_empty() {
            let before = buf.filled().len();
            if ready!(self.fill(cx, buf, u64::MAX))? == 0 {
                return Poll::Ready(Ok(()));
            }
            self.hold_back(buf, before, 0);
        }
        self.starved = true;
        Poll::Pending
    }

    /// Answers in hyper's place and reads no more. Only while a head is awaited: nothing else is being written then.
    fn refuse(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>, before: usize, fault: Fault) -> Poll<io::Result<()>> {
        buf.set_filled(before);
        self.held = BytesMut::new();
        self.reading = Reading::Refused;
        self.progress.lingers();
        // A fresh answer fits into the send buffer; a client that left it full gets none.
        if let Err(error) = self.stream.try_write(&fault.bytes()) {
            tracing::debug!(%error, "a refusal was not sent");
        }
        ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        self.poll_discard(cx)
    }

    /// A head is here, whole or in part, no request came of it, and yet hyper writes: it says no by itself, in fewer words
    /// than we owe.
    fn is_hypers_own(&self) -> bool {
        match &self.reading {
            Reading::Head(head, _) => !head.is_empty(),
            Reading::Parsed => !self.progress.has_request(),
            Reading::Body(_) | Reading::Open | Reading::Refused => false,
        }
    }

    /// Says that the request is malformed, in hyper's place.
    fn answer_for_hyper(&mut self, cx: &mut Context<'_>) {
        self.held = BytesMut::new();
        self.reading = Reading::Refused;
        self.progress.lingers();
        if let Err(error) = self.stream.try_write(&Fault::Malformed.bytes()) {
            tracing::debug!(%error, "a refusal was not sent");
        }
        // Of a TCP stream it is done at once; the rest is discarded when hyper ends the connection.
        let _ = Pin::new(&mut self.stream).poll_shutdown(cx);
    }

    /// Writes to the socket, in one piece what is small.
    fn send(&mut self, cx: &mut Context<'_>, bufs: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let stream = Pin::new(&mut self.stream);
        if length(bufs) > ONE_PIECE {
            return stream.poll_write_vectored(cx, bufs);
        }
        PIECE.with_borrow_mut(|piece| {
            piece.clear();
            for buf in bufs {
                piece.extend_from_slice(buf);
            }
            stream.poll_write(cx, piece)
        })
    }

    /// Reads to the client's end, so that closing does not destroy an answer it has not read yet.
    fn poll_discard(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut scratch = [0; 4096];
        while !self.ended {
            let mut buf = ReadBuf::new(&mut scratch);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buf))?;
            self.ended = buf.filled().is_empty();
        }
        Poll::Ready(Ok(()))
    }

    /// The client may still be sending what nobody will read.
    fn is_unread(&self) -> bool {
        let mid = match &self.reading {
            Reading::Head(head, _) => !head.is_empty(),
            Reading::Body(left) => *left > 0,
            Reading::Parsed | Reading::Open | Reading::Refused => true,
        };
        !self.ended && (mid || !self.held.is_empty())
    }
}

fn length(bufs: &[io::IoSlice<'_>]) -> usize {
    bufs.iter().fold(0, |sum, buf| buf.len().saturating_add(sum))
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if let Reading::Parsed = self.reading {
            self.reading = match self.progress.take_body() {
                Some(UNSTATED) => Reading::Open,
                Some(length) => Reading::Body(length),
                // hyper wants more of a head that has ended: we do not agree about it, so nobody shall act on it.
                None => return Poll::Ready(Err(io::ErrorKind::InvalidData.into())),
            };
        }
        match self.reading {
            Reading::Head(..) | Reading::Parsed => self.poll_head(cx, buf),
            Reading::Body(left) => self.poll_body(cx, buf, left),
            Reading::Open => self.fill(cx, buf, u64::MAX).map_ok(|_| ()),
            Reading::Refused => self.poll_discard(cx),
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[io::IoSlice::new(buf)])
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bufs: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        if self.is_hypers_own() {
            self.answer_for_hyper(cx);
        }
        if let Reading::Refused = self.reading {
            return Poll::Ready(Ok(length(bufs)));
        }
        let written = self.send(cx, bufs);
        if written.is_pending() {
            self.progress.blocked();
        }
        written
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.progress.flushed() && std::mem::take(&mut self.starved) {
            cx.waker().wake_by_ref();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Reading::Refused = self.reading {
            return self.poll_discard(cx);
        }
        ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        if !self.is_unread() {
            return Poll::Ready(Ok(()));
        }
        self.held = BytesMut::new();
        self.reading = Reading::Refused;
        self.progress.lingers();
        self.poll_discard(cx)
    }
}
