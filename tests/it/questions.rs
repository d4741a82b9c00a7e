//! What a question is: which requests are the same one, what the provider is sent for it, and what is none.

mod addresses;
mod bodies;
mod cases;
mod fields;
mod forms;
mod native;

use crate::support::client::Reply;
use crate::support::upstream::FakeUpstream;

/// The query the upstream was sent last, decoded.
fn sent(upstream: &FakeUpstream) -> Vec<(String, String)> {
    let target = upstream.last().target;
    let query = target.split_once('?').map(|(_, query)| query.to_owned()).unwrap_or_default();
    let pairs = tollgate::question::wire::parse_query(&query).unwrap();
    pairs.into_iter().map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

/// The values of one parameter the upstream was sent last.
fn sent_values(upstream: &FakeUpstream, name: &str) -> Vec<String> {
    sent(upstream).into_iter().filter(|(known, _)| known == name).map(|(_, value)| value).collect()
}

/// Status, code and field of a refusal on a route of one's own shape.
fn problem(reply: &Reply) -> (u16, String, String) {
    let body = reply.json();
    let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    (reply.status, text("code"), text("field"))
}

fn hit(reply: &Reply) -> bool {
    reply.header("cache-status").is_some_and(|status| status.starts_with("tollgate; hit"))
}
