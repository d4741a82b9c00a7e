//! What the edge itself answers. Each of them ends the connection.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Response, StatusCode, Version};

use super::Body;
use crate::server::respond::{request_id, written};

const PROBLEM: &str = "application/problem+json";

/// Why the edge would not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Malformed,
    BadHost,
    Connect,
    Timeout,
    UriTooLong,
    HeadTooLarge,
    Panicked,
}

impl Fault {
    fn words(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::Malformed => (StatusCode::BAD_REQUEST, "bad_request", "The request is not well framed HTTP"),
            Self::BadHost => (StatusCode::BAD_REQUEST, "bad_request", "One Host header must name the target's authority"),
            Self::Connect => (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "This is not a tunnel"),
            Self::Timeout => (StatusCode::REQUEST_TIMEOUT, "request_timeout", "The request head did not come in time"),
            Self::UriTooLong => (StatusCode::URI_TOO_LONG, "uri_too_long", "The request target is too long"),
            Self::HeadTooLarge => {
                (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "head_too_large", "The request head is too large")
            }
            Self::Panicked => (StatusCode::INTERNAL_SERVER_ERROR, "internal", "The gateway failed"),
        }
    }

    fn body(self, id: &str) -> String {
        let (status, code, title) = self.words();
        let status = status.as_u16();
        // Every word of it is ours, and an id needs no escape.
        format!(
            r#"{{"type":"urn:tollgate:{code}","title":"{title}","status":{status},"detail":"{title}","code":"{code}","request_id":"{id}"}}"#
        )
    }

    /// As an answer to a request of that version.
    pub(super) fn response(self, version: Version) -> Response<Body> {
        let id = new_id();
        let mut response = Response::new(Body::new(Bytes::from(self.body(text(&id)))));
        *response.status_mut() = self.words().0;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
        headers.insert("x-request-id", id);
        if version < Version::HTTP_2 {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    /// As bytes, for a head that never became a request.
    pub(super) fn bytes(self) -> Vec<u8> {
        let id = new_id();
        let (status, body) = (self.words().0, self.body(text(&id)));
        let reason = status.canonical_reason().unwrap_or_default();
        format!(
            "HTTP/1.1 {} {reason}\r\ncontent-type: {PROBLEM}\r\ncache-control: private, no-store\r\nx-request-id: {}\r\n\
             connection: close\r\ncontent-length: {}\r\n\r\n{body}",
            status.as_u16(),
            text(&id),
            body.len()
        )
        .into_bytes()
    }
}

/// An id of our own: what the client called the request is not read from a head that is not trusted.
fn new_id() -> HeaderValue {
    written(&request_id(&HeaderMap::new()))
}

fn text(id: &HeaderValue) -> &str {
    id.to_str().unwrap_or_default()
}
