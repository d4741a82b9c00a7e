//! What Redis speaks: replies as values, and where one ends on the wire. RESP2 and RESP3, for the client of the tests and the fault proxy.

use bytes::Bytes;

mod frames;
#[cfg(test)]
mod tests;

use frames::Head;
pub use frames::{Frames, Malformed};

/// One reply, or one command as it was sent (an array of bulk strings).
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// `+` or a bulk string, whatever its bytes.
    Text(Bytes),
    /// `-` or `!`, with its code: `READONLY You can't …`.
    Error(String),
    Int(i64),
    Null,
    Bool(bool),
    Double(f64),
    BigNumber(String),
    /// Its format (`txt`, `mkd`) and its text.
    Verbatim(String, String),
    /// An array or a set.
    List(Vec<Self>),
    Map(Vec<(Self, Self)>),
    /// What nobody asked for.
    Push(Vec<Self>),
}

impl Reply {
    pub fn ok() -> Self {
        "OK".into()
    }

    pub fn int(&self) -> i64 {
        let Self::Int(int) = self else { panic!("not a number: {self:?}") };
        *int
    }

    pub fn text(&self) -> String {
        let Self::Text(text) = self else { panic!("not a text: {self:?}") };
        String::from_utf8_lossy(text).into_owned()
    }

    pub fn list(&self) -> &[Self] {
        let (Self::List(list) | Self::Push(list)) = self else { panic!("not a list: {self:?}") };
        list
    }

    /// The code of an error, `NOSCRIPT`; of anything else none.
    pub fn code(&self) -> Option<&str> {
        let Self::Error(error) = self else { return None };
        error.split(' ').next()
    }
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        Self::Text(Bytes::copy_from_slice(text.as_bytes()))
    }
}

/// The value of a whole frame; attributes are left out.
pub fn parse(frame: &[u8]) -> Result<Reply, Malformed> {
    let mut rest = frame;
    let value = value(&mut rest)?;
    if rest.is_empty() { Ok(value) } else { Err(Malformed("more than one value".into())) }
}

fn value(from: &mut &[u8]) -> Result<Reply, Malformed> {
    let short = || Malformed("it ends too early".into());
    let head = Head::read(from)?.ok_or_else(short)?;
    let (kind, text) = (head.kind, head.rest.to_owned());
    let odd = || Malformed(text.clone());
    let (payload, values, length) = (head.payload, head.values, head.length);
    *from = &from[length..];
    if let Some(payload) = payload {
        let bytes = from.get(..payload).ok_or_else(short)?;
        let reply = blob(kind, bytes)?;
        *from = from.get(payload + 2..).ok_or_else(short)?;
        return Ok(reply);
    }
    let mut list = (0..values).map(|_| value(from)).collect::<Result<Vec<_>, _>>()?;
    Ok(match kind {
        b'+' => Reply::from(text.as_str()),
        b'-' => Reply::Error(text),
        b':' => Reply::Int(text.parse().map_err(|_| odd())?),
        b',' => Reply::Double(text.parse().map_err(|_| odd())?),
        b'#' => Reply::Bool(text == "t"),
        b'(' => Reply::BigNumber(text),
        b'*' | b'~' if text != "-1" => Reply::List(list),
        b'>' => Reply::Push(list),
        b'|' => list.pop().ok_or_else(short)?,
        b'%' => Reply::Map(pairs(list)),
        _ => Reply::Null,
    })
}

fn blob(kind: u8, bytes: &[u8]) -> Result<Reply, Malformed> {
    let text = || String::from_utf8_lossy(bytes).into_owned();
    match kind {
        b'!' => Ok(Reply::Error(text())),
        b'=' => {
            let text = text();
            let (format, text) = text.split_once(':').ok_or_else(|| Malformed(text.clone()))?;
            Ok(Reply::Verbatim(format.to_owned(), text.to_owned()))
        }
        _ => Ok(Reply::Text(Bytes::copy_from_slice(bytes))),
    }
}

fn pairs(list: Vec<Reply>) -> Vec<(Reply, Reply)> {
    let mut values = list.into_iter();
    std::iter::from_fn(|| Some((values.next()?, values.next()?))).collect()
}

/// A command, as clients send it.
pub fn command(words: &[&str]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend(format!("${}\r\n{word}\r\n", word.len()).into_bytes());
    }
    out
}
