//! Replies, read with mistrust: whatever has not the shape asked for was an answer to something else.

use bytes::Bytes;
use redis::Value;

use crate::clock::Timestamp;

/// The parts of a reply, from the first to the last. Each reader returns nothing when the part is not of its kind.
pub(super) struct Parts(std::vec::IntoIter<Value>);

impl Parts {
    /// The parts after `nonce`, if the reply begins with it.
    pub(super) fn of(reply: Value, nonce: &str) -> Option<Self> {
        let mut parts = Self::list_of(reply)?;
        (parts.bytes()? == nonce.as_bytes()).then_some(parts)
    }

    fn list_of(value: Value) -> Option<Self> {
        match value {
            Value::Array(parts) => Some(Self(parts.into_iter())),
            // As RESP3 may give a hash.
            Value::Map(pairs) => Some(Self(pairs.into_iter().flat_map(|(k, v)| [k, v]).collect::<Vec<_>>().into_iter())),
            _ => None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    pub(super) fn list(&mut self) -> Option<Self> {
        Self::list_of(self.0.next()?)
    }

    pub(super) fn bytes(&mut self) -> Option<Bytes> {
        match self.0.next()? {
            Value::BulkString(bytes) => Some(bytes.into()),
            Value::SimpleString(text) => Some(text.into()),
            Value::Okay => Some(Bytes::from_static(b"OK")),
            _ => None,
        }
    }

    pub(super) fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.into()).ok()
    }

    pub(super) fn int(&mut self) -> Option<i64> {
        match self.0.next()? {
            Value::Int(number) => Some(number),
            _ => None,
        }
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        u64::try_from(self.int()?).ok()
    }

    pub(super) fn flag(&mut self) -> Option<bool> {
        self.int().map(|number| number != 0)
    }

    pub(super) fn time(&mut self) -> Option<Timestamp> {
        self.number().map(Timestamp)
    }

    /// A number spelt out: those that may be longer than the store's own.
    pub(super) fn spelt(&mut self) -> Option<u64> {
        self.text()?.parse().ok()
    }
}
