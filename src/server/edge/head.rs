//! The bytes of one request head, looked at before hyper parses them: where it ends, how large it is, and what a lenient
//! parser would let pass. Not a parser: a head that passes here is still refused by hyper if it is not HTTP.

use super::fault::Fault;

/// Header lines of one head; hyper stops at the same number.
const MAX_HEADERS: usize = 100;

/// The longest name that matters here.
const LONGEST: usize = b"transfer-encoding:".len();

/// What the bytes so far amount to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Scan {
    /// The head goes on.
    More,
    /// The head ends after that many of the bytes just seen.
    End(usize),
    /// It will not be served.
    Bad(Fault),
}

/// A head in the making.
#[derive(Debug, Default)]
pub(super) struct Head {
    size: usize,
    lines: usize,
    framed: bool,
    line: Line,
}

impl Head {
    /// Nothing of it has come.
    pub(super) fn is_empty(&self) -> bool {
        self.size == 0
    }

    /// Looks at the next bytes.
    pub(super) fn scan(&mut self, bytes: &[u8], max: usize) -> Scan {
        let mut rest = bytes;
        while !rest.is_empty() {
            let piece = next_line(&mut rest);
            self.size = self.size.saturating_add(piece.len());
            if self.size > max {
                return Scan::Bad(if self.lines == 0 { Fault::UriTooLong } else { Fault::HeadTooLarge });
            }
            self.line.add(piece);
            if !piece.ends_with(b"\n") {
                return Scan::More;
            }
            match self.end_line() {
                Ok(false) => {}
                Ok(true) => return Scan::End(bytes.len().saturating_sub(rest.len())),
                Err(fault) => return Scan::Bad(fault),
            }
        }
        Scan::More
    }

    /// A line is complete: was it the empty one at the end?
    fn end_line(&mut self) -> Result<bool, Fault> {
        let line = std::mem::take(&mut self.line);
        if line.tail != *b"\r\n" {
            return Err(Fault::Malformed);
        }
        if line.length == 2 {
            // Empty lines before the request line are no end.
            return Ok(self.lines > 0);
        }
        if self.lines > MAX_HEADERS {
            return Err(Fault::HeadTooLarge);
        }
        if self.lines > 0 && line.is_framing() && std::mem::replace(&mut self.framed, true) {
            return Err(Fault::Malformed);
        }
        self.lines = self.lines.saturating_add(1);
        Ok(false)
    }
}

/// A line as far as it has come, in however many pieces.
#[derive(Debug, Default)]
struct Line {
    length: usize,
    start: [u8; LONGEST],
    tail: [u8; 2],
}

impl Line {
    fn add(&mut self, piece: &[u8]) {
        match (self.length, piece.first_chunk()) {
            // Nearly every line comes in one piece.
            (0, Some(start)) => self.start = *start,
            _ => self.start.iter_mut().skip(self.length).zip(piece).for_each(|(to, from)| *to = *from),
        }
        self.length = self.length.saturating_add(piece.len());
        self.tail = match *piece {
            [.., a, b] => [a, b],
            [b] => [self.tail[1], b],
            [] => self.tail,
        };
    }

    /// It says how long the body is.
    fn is_framing(&self) -> bool {
        match self.start[0] {
            b'c' | b'C' => starts_with(&self.start, b"content-length:"),
            b't' | b'T' => starts_with(&self.start, b"transfer-encoding:"),
            _ => false,
        }
    }
}

fn starts_with(start: &[u8], name: &[u8]) -> bool {
    start.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
}

/// Takes the bytes up to the next LF, or all of them.
fn next_line<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let length = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at.saturating_add(1));
    let (line, tail) = rest.split_at_checked(length).unwrap_or((rest, &[]));
    *rest = tail;
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 1000;

    fn whole(head: &[u8]) -> Scan {
        Head::default().scan(head, MAX)
    }

    /// The same verdict, however the bytes are cut.
    fn bytewise(head: &[u8]) -> Scan {
        let mut scan = Head::default();
        for (at, byte) in head.iter().enumerate() {
            match scan.scan(std::slice::from_ref(byte), MAX) {
                Scan::More => {}
                Scan::End(n) => return Scan::End(at + n),
                bad @ Scan::Bad(_) => return bad,
            }
        }
        Scan::More
    }

    #[test]
    fn a_head_ends_at_its_empty_line() {
        let head = b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\nrest";
        assert_eq!(whole(head), Scan::End(head.len() - 4));
        assert_eq!(bytewise(head), Scan::End(head.len() - 4));
        assert_eq!(whole(b"GET / HTTP/1.1\r\nHost: a\r\n"), Scan::More);
    }

    #[test]
    fn what_a_lenient_parser_lets_pass_is_refused() {
        for head in [
            "GET / HTTP/1.1\nHost: a\n\n",
            "GET / HTTP/1.1\r\nHost: a\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n\n",
            "\nGET / HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\nCONTENT-LENGTH: 5\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
        ] {
            assert_eq!(whole(head.as_bytes()), Scan::Bad(Fault::Malformed), "{head:?}");
            assert_eq!(bytewise(head.as_bytes()), Scan::Bad(Fault::Malformed), "{head:?}");
        }
    }

    #[test]
    fn size_and_number_are_bounded() {
        let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(MAX));
        assert_eq!(whole(long.as_bytes()), Scan::Bad(Fault::UriTooLong));
        assert_eq!(bytewise(long.as_bytes()), Scan::Bad(Fault::UriTooLong));
        let wide = format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "a".repeat(MAX));
        assert_eq!(whole(wide.as_bytes()), Scan::Bad(Fault::HeadTooLarge));
        let lines = |n| format!("GET / HTTP/1.1\r\n{}\r\n", "a:b\r\n".repeat(n));
        assert_eq!(whole(lines(MAX_HEADERS).as_bytes()), Scan::End(lines(MAX_HEADERS).len()));
        assert_eq!(whole(lines(MAX_HEADERS + 1).as_bytes()), Scan::Bad(Fault::HeadTooLarge));
    }
}
