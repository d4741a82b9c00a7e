//! One answer as a provider makes it, before a fault gets at it.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde_json::Value;

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers, without those of the transfer.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
    /// How often the provider's list price is billed for it.
    pub units: u64,
}

impl Answer {
    /// A JSON answer, billed once if its status is below 400.
    pub fn json(status: StatusCode, body: &Value) -> Self {
        Self::text(status, "application/json; charset=utf-8", body.to_string())
    }

    /// An answer of any type, billed once if its status is below 400.
    pub fn text(status: StatusCode, content_type: &str, body: impl Into<Bytes>) -> Self {
        let units = u64::from(status.as_u16() < 400);
        let answer = Self { status, headers: HeaderMap::new(), body: body.into(), units };
        answer.with(header::CONTENT_TYPE, content_type)
    }

    /// 200 and JSON.
    pub fn ok(body: &Value) -> Self {
        Self::json(StatusCode::OK, body)
    }

    /// The same answer, billed so many times.
    #[must_use]
    pub fn billed(mut self, units: u64) -> Self {
        self.units = units;
        self
    }

    /// The same answer with a header set; a value that no header can hold is left out.
    #[must_use]
    pub fn with(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
            self.headers.insert(name, value);
        }
        self
    }
}
