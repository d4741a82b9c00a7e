//! Faults: what goes wrong with which call.
//!
//! A fault names a provider, a path, both or neither, the calls it applies to (counted from when it was set), and one or more
//! things that go wrong. Of several that apply to a call the one set first is used; all of them count the call.
//!
//! | key | the call |
//! |---|---|
//! | `status`, `body`, `content_type`, `headers`, `retry_after` | is answered so; without `body` a status of 400 or more has the provider's own error body |
//! | `malformed = "json"`, `"html"` | is answered with half of its JSON, or with a page |
//! | `delay = "400ms"` | is answered so much later |
//! | `hang = true` | is never answered; with `cut`, the answer stops after n bytes and never ends |
//! | `cut = n` | gets a `Content-Length` for the whole, n bytes, and the end of the connection (with n at or past the end it is whole) |
//! | `cut_chunked = n` | gets n bytes in chunks, no last chunk, and the end of the connection |
//! | `drip = { bytes = n, every = "50ms" }` | gets its body n bytes at a time |
//! | `close = true` | is read whole, then the connection is closed |
//! | `reset = true` | is read whole, then the connection is reset |
//! | `refuse = true` | is reset as soon as its head is there |
//!
//! `refuse` is the nearest thing one listener can do to a refused connection: the client has connected, but nothing was read.
//! For a connection that is truly refused, point the client at a port where nobody listens.
//!
//! A call counts on the meter whatever its fault. It is billed as if nothing had gone wrong (a provider that has done its work
//! charges for it, whether or not the answer arrives) except with `refuse` or a `status` of 400 or more: then the provider
//! did nothing, and nothing is billed or remembered.

use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::provider::Provider;

pub mod board;
pub mod calls;
pub mod script;
pub mod wait;

use calls::Calls;
use wait::Wait;

/// One fault.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a key of the script")]
pub struct Fault {
    /// Only calls to this provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Provider>,
    /// Only calls whose path begins so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Which of those calls.
    pub calls: Calls,
    /// Answers with this status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Answers with this body: a text as it is, anything else as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// The type of the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Headers set on the answer.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// `Retry-After` headers, as they are.
    #[serde(skip_serializing_if = "Texts::is_empty")]
    pub retry_after: Texts,
    /// Spoils the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub malformed: Option<Malformed>,
    /// Answers so much later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Wait>,
    /// Sends the body in small pieces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drip: Option<Drip>,
    /// Breaks off after so many bytes of the body; the length of the whole was announced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<usize>,
    /// The same, with a chunked body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_chunked: Option<usize>,
    /// Never answers, or never ends.
    #[serde(skip_serializing_if = "is_false")]
    pub hang: bool,
    /// Closes the connection instead of an answer.
    #[serde(skip_serializing_if = "is_false")]
    pub close: bool,
    /// Resets the connection instead of an answer.
    #[serde(skip_serializing_if = "is_false")]
    pub reset: bool,
    /// Resets the connection before the request is read.
    #[serde(skip_serializing_if = "is_false")]
    pub refuse: bool,
}

/// How a body is spoiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Malformed {
    /// Half of it.
    Json,
    /// A page of a proxy in its place.
    Html,
}

/// A body in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Drip {
    /// Bytes of a piece.
    pub bytes: usize,
    /// Time between two.
    pub every: Wait,
}

/// One text or several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "Value")]
pub struct Texts(pub Vec<String>);

impl Texts {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl TryFrom<Value> for Texts {
    type Error = String;

    fn try_from(given: Value) -> Result<Self, String> {
        let texts = match &given {
            Value::String(text) => Some(vec![text.clone()]),
            Value::Array(items) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
            _ => None,
        };
        texts.map(Self).ok_or_else(|| format!("{given} is not a text; write \"120\" or [\"120\", \"60\"]"))
    }
}

/// What is wrong with a fault as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The key.
    pub key: &'static str,
    /// What is wrong with it, and what would be right.
    pub what: String,
}

impl Fault {
    /// Does it concern this call, whatever its number?
    pub fn concerns(&self, provider: Provider, path: &str) -> bool {
        self.provider.is_none_or(|only| only == provider) && self.path.as_deref().is_none_or(|prefix| path.starts_with(prefix))
    }

    /// The status it answers with, if it sets one.
    pub fn status(&self) -> Option<StatusCode> {
        self.status.and_then(|status| StatusCode::from_u16(status).ok())
    }

    /// Finds what types alone cannot.
    pub fn check(&self) -> Result<(), Wrong> {
        let wrong = |key, what: &str| Err(Wrong { key, what: what.to_owned() });
        let ends = [self.hang, self.close, self.reset, self.refuse].into_iter().filter(|end| *end).count();
        if self.status.is_some_and(|status| !(200..=599).contains(&status)) {
            return wrong("status", "no status a call can end with; write 200 to 599");
        }
        if self.path.as_deref().is_some_and(|path| !path.starts_with('/')) {
            return wrong("path", "no path begins so; write the beginning of a path, such as \"/geocode\"");
        }
        if ends > 1 {
            return wrong(self.ending(), "a call ends in one way only; keep one of hang, close, reset and refuse");
        }
        if self.cut.is_some() && self.cut_chunked.is_some() {
            return wrong("cut_chunked", "the body is cut in one way only; keep cut or cut_chunked");
        }
        if self.drip.is_some_and(|drip| drip.bytes == 0) {
            return wrong("drip", "nothing would ever be sent; write bytes = 1 or more");
        }
        let effects = Self { provider: None, path: None, calls: Calls::default(), ..self.clone() };
        if effects == Self::default() {
            return wrong("calls", "nothing goes wrong with these calls; add status, delay, hang, cut, close or another fault");
        }
        self.check_headers()
    }

    fn check_headers(&self) -> Result<(), Wrong> {
        let wrong = |key, what: String| Err(Wrong { key, what });
        if let Some(name) = self.headers.keys().find(|name| HeaderName::from_bytes(name.as_bytes()).is_err()) {
            return wrong("headers", format!("{name:?} is not a header name; use letters, digits and hyphens"));
        }
        let values = self.headers.values().map(|value| ("headers", value));
        let values = values.chain(self.retry_after.0.iter().map(|value| ("retry_after", value)));
        let mut values = values.chain(self.content_type.iter().map(|value| ("content_type", value)));
        match values.find(|(_, value)| HeaderValue::from_bytes(value.as_bytes()).is_err()) {
            Some((key, value)) => {
                wrong(key, format!("{value:?} cannot be a header's value; leave out line ends and control characters"))
            }
            None => Ok(()),
        }
    }

    fn ending(&self) -> &'static str {
        match self {
            Self { refuse: true, .. } => "refuse",
            Self { reset: true, .. } => "reset",
            Self { close: true, .. } => "close",
            _ => "hang",
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(value: &bool) -> bool {
    !value
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(fault: Value) -> Result<Fault, String> {
        let fault: Fault = serde_json::from_value(fault).map_err(|wrong| wrong.to_string())?;
        fault.check().map_err(|wrong| format!("{}: {}", wrong.key, wrong.what))?;
        Ok(fault)
    }

    #[test]
    fn a_fault_is_written_back_as_it_was_read() {
        let written = json!({
            "provider": "opencage", "path": "/geocode", "calls": "3..", "status": 503, "retry_after": ["120", "60"],
            "delay": "400ms", "drip": {"bytes": 1, "every": "50ms"}, "headers": {"X-Via": "sandbox"},
        });
        assert_eq!(serde_json::to_value(read(written.clone()).unwrap()).unwrap(), written);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_key() {
        for (fault, key) in [
            (json!({"status": 199}), "status"),
            (json!({"path": "geocode", "hang": true}), "path"),
            (json!({"hang": true, "refuse": true}), "refuse"),
            (json!({"cut": 1, "cut_chunked": 1}), "cut_chunked"),
            (json!({"drip": {"bytes": 0, "every": "1s"}}), "drip"),
            (json!({"provider": "stripe", "calls": [1]}), "calls"),
            (json!({"headers": {"a b": "c"}}), "headers"),
            (json!({"retry_after": "1\r\n2"}), "retry_after"),
        ] {
            let wrong = read(fault).unwrap_err();
            assert!(wrong.starts_with(&format!("{key}: ")), "{wrong}");
        }
        assert!(read(json!({"stauts": 503})).unwrap_err().contains("unknown field `stauts`"));
        assert!(read(json!({"provider": "acme", "hang": true})).unwrap_err().contains("unknown variant `acme`"));
    }
}
