//! Twilio's and Stripe's clients through the presets: what they send, what goes out for it, and what it costs in the end.

mod stripe;
mod twilio;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::support::client::{Client, Reply};
use crate::support::gate::{Gate, KEY};

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

async fn post(client: &Client, key: &str, path: &str, form: &str) -> Reply {
    client.clone().with("idempotency-key", key).form(path, form).await
}

/// Status, code and whether it is a replay.
fn said(reply: &Reply) -> (u16, String, bool) {
    (reply.status, reply.code(), reply.header("idempotent-replayed") == Some("true"))
}

/// A client that has nothing but the caller's key, where the SDK puts it.
fn sdk(gate: &Gate, authorization: impl Fn(&str) -> String) -> Client {
    gate.stranger().with("authorization", &authorization(KEY))
}
