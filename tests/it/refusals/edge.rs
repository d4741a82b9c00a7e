//! Refusals of the HTTP edge, before there is a request.

use std::time::Duration;

use crate::support::gate::{Gate, quote};
use crate::support::raw::{Raw, Response};
use crate::support::routes::routes_found;
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

/// What holds for each of them. The id is new, since none was read.
fn refused(reply: &Response, status: u16, code: &str) {
    assert_eq!(reply.status, status, "{reply:?}");
    assert_eq!(reply.header("content-type"), Some("application/problem+json"), "{reply:?}");
    assert_eq!(reply.header("cache-control"), Some("private, no-store"), "{reply:?}");
    assert_eq!(reply.header("connection"), Some("close"), "{reply:?}");
    assert_eq!((reply.header("retry-after"), reply.header("cache-status")), (None, None), "{reply:?}");
    let body = reply.json();
    let id = reply.header("x-request-id").unwrap_or_else(|| panic!("no id: {reply:?}"));
    assert_eq!((id.len(), body["request_id"].as_str()), (36, Some(id)), "{body}");
    assert_eq!((body["code"].as_str(), &body["status"]), (Some(code), &status.into()), "{body}");
    assert_eq!(body["type"], format!("urn:tollgate:{code}"));
    assert!(body["title"].is_string() && body["detail"].is_string(), "{body}");
}

async fn ask(gate: &Gate, bytes: impl AsRef<[u8]>) -> Response {
    Raw::connect(gate.addr).await.send(bytes).await.response().await.unwrap()
}

#[tokio::test]
async fn heads_that_are_no_request() {
    let upstream = FakeUpstream::start(Step::ok(routes_found())).await;
    let gate = quote("", "").server("max_head = \"8KiB\"\nhead_timeout = \"500ms\"").start(&upstream).await;
    let host = gate.addr;
    let long = "x".repeat(9_000);
    refused(&ask(&gate, format!("GET /v1/quote?from={long} HTTP/1.1\r\nHost: {host}\r\n\r\n")).await, 414, "uri_too_long");
    refused(&ask(&gate, format!("GET /v1/quote HTTP/1.1\r\nHost: {host}\r\nX: {long}\r\n\r\n")).await, 431, "head_too_large");
    refused(&ask(&gate, format!("GET /v1/quote HTTP/1.1\r\nHost: {host}\r\nX-Api")).await, 408, "request_timeout");
    refused(&ask(&gate, "GET /v1/quote HTTP/1.1\r\n\r\n").await, 400, "bad_request");
    refused(&ask(&gate, format!("GET /v1/quote HTTP/1.1\r\nHost: {host}\r\nHost: {host}\r\n\r\n")).await, 400, "bad_request");
    refused(&ask(&gate, format!("GET /v1/quote HTTP/1.1\nHost: {host}\n\n")).await, 400, "bad_request");
    refused(&ask(&gate, format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n")).await, 405, "method_not_allowed");
    assert_eq!((upstream.calls(), gate.spent().await), (0, 0));
}

#[tokio::test]
async fn a_body_that_breaks_off() {
    let upstream = FakeUpstream::start(Step::ok(routes_found())).await;
    let question = "q = { in = \"json\", type = \"text\", required = true }";
    let gate = crate::support::routes::own("POST /own", "", question).start(&upstream).await;
    let mut raw = Raw::connect(gate.addr).await;
    let head = format!("POST /own HTTP/1.1\r\nHost: {}\r\nX-Api-Key: caller-key\r\nContent-Length: 50\r\n\r\n{{", gate.addr);
    raw.send(head).await.end().await;
    let _ = tokio::time::timeout(Duration::from_secs(20), raw.rest()).await.unwrap();
    assert_eq!((upstream.calls(), gate.spent().await), (0, 0));
}
