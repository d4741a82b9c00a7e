//! Every way to be refused: status, code, words, `Retry-After`; and that it costs nothing.
//!
//! `cost_too_high` cannot be met from outside while costs stand in the config alone: `check` refuses such a config
//! (`config_faults`).

mod edge;
mod native;
mod order;
mod own;

use std::fmt::Write as _;

use crate::support::client::{Client, Reply};

/// The id of every request here, so that bodies can be compared.
const ID: &str = "request-1";

fn with_id(client: &Client) -> Client {
    client.clone().with("x-request-id", ID)
}

/// What holds for every refusal, whatever its shape. `wait` is the `Retry-After`.
fn plain(reply: &Reply, status: u16, wait: Option<u64>) {
    assert_eq!(reply.status, status, "{reply:?}");
    assert_eq!(reply.header("retry-after").map(str::to_owned), wait.map(|wait| wait.to_string()), "{reply:?}");
    assert_eq!((reply.header("cache-status"), reply.header("age")), (None, None), "{reply:?}");
    assert_eq!(reply.header("cache-control"), Some("private, no-store"), "{reply:?}");
    assert_eq!(reply.header("x-request-id"), Some(ID), "{reply:?}");
}

/// A refusal on a route of one's own shape (RFC 9457).
fn refused(reply: &Reply, status: u16, code: &str, wait: Option<u64>) {
    plain(reply, status, wait);
    assert_eq!(reply.header("content-type"), Some("application/problem+json"), "{reply:?}");
    assert_eq!(reply.header("proxy-status"), None);
    let body = reply.json();
    for (member, right) in [("type", format!("urn:tollgate:{code}")), ("code", code.to_owned()), ("request_id", ID.to_owned())] {
        assert_eq!(body[member].as_str(), Some(right.as_str()), "{body}");
    }
    assert_eq!(body["status"], status, "{body}");
    for member in ["title", "detail"] {
        assert!(body[member].as_str().is_some_and(|text| !text.is_empty()), "{member}: {body}");
    }
}

/// A refusal as it came, for a snapshot.
fn shown(reply: &Reply) -> String {
    let mut text = format!("{}\n", reply.status);
    let mut headers: Vec<(&str, &str)> =
        reply.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    headers.retain(|(name, _)| !["date", "content-length"].contains(name));
    headers.sort_unstable();
    for (name, value) in headers {
        writeln!(text, "{name}: {value}").unwrap();
    }
    let body = if reply.body.is_empty() { String::new() } else { serde_json::to_string_pretty(&reply.json()).unwrap() };
    text + "\n" + &body
}
