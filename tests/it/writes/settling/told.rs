//! Who is told of it: the log, the webhook, the audit log.

use serde_json::{Value as Json, json};

use super::super::{PRICE, hello, send};
use super::{id, listed, unknown};
use crate::support::client::Client;
use crate::support::gate::{ADMIN_TOKEN, KEY};
use crate::support::process::Process;
use crate::support::routes::sms;
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

#[tokio::test]
async fn an_alert_names_the_first_of_an_hour_and_the_rest_is_in_the_list() {
    let (upstream, receiver) = (FakeUpstream::start(Step::close()).await, FakeUpstream::start(Step::ok(json!({}))).await);
    let mut setup = sms("breaker = { failures = 9 }", "");
    setup.body += &format!("[alerts]\nwebhook = \"{}/hook\"\n", receiver.url());
    let gate = setup.start(&upstream).await;
    send(&gate.client, "k-1", hello()).await;
    receiver.wait_for_calls(1).await;
    let first = id(&gate, "unknown").await;
    let mut alert: Json = serde_json::from_slice(&receiver.last().body).unwrap();
    alert.as_object_mut().unwrap().remove("id");
    let message = format!(
        "a write of route:sms was sent, and nobody knows what came of it: once the provider has said whether it was done, \
         tollgate writes settle {first}"
    );
    assert_eq!(
        alert,
        json!({ "at": 1_796_040_000, "kind": "write_unknown", "subject": "route:sms", "write": first, "message": message })
    );
    send(&gate.client, "k-2", hello()).await;
    gate.advance(3600);
    send(&gate.client, "k-3", hello()).await;
    receiver.wait_for_calls(2).await;
    let writes = listed(&gate, "unknown").await;
    let second: Json = serde_json::from_slice(&receiver.last().body).unwrap();
    assert_eq!((writes.len(), &second["write"]), (3, &writes[2]["id"]), "the oldest stands first");
    assert_eq!((receiver.calls(), upstream.calls(), gate.spent().await), (2, 3, 3 * PRICE));
}

#[tokio::test]
async fn the_log_has_each_and_the_audit_log_what_became_of_it() {
    let upstream = FakeUpstream::start(Step::close()).await;
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("tollgate.toml");
    std::fs::write(&config, sms("", "").render(dir.path(), &upstream.url())).unwrap();
    let mut process = Process::start(&["serve", "-c", config.to_str().unwrap()], &[]);
    let (gateway, admin) = (process.listening("gateway").await, process.listening("admin").await);
    let client = Client::new(format!("http://{gateway}")).with("x-api-key", KEY);
    let admin = Client::new(format!("http://{admin}")).with("authorization", &format!("Bearer {ADMIN_TOKEN}"));
    assert_eq!(send(&client, "k-1", hello()).await.code(), "outcome_unknown");
    let write = admin.get("/v1/writes").await.json()["writes"][0].clone();
    let id = write["id"].as_str().unwrap();
    let line = process.err.wait_for("a write was sent, and nobody knows what came of it").await;
    assert!(line.contains("ERROR") && line.contains(id) && line.contains("route=\"sms\""), "{line}");
    let settled = admin.post(&format!("/v1/writes/{id}/settle"), json!({ "outcome": "sent", "status": 201 })).await;
    assert_eq!(settled.status, 200, "{settled:?}");
    let line = process.err.wait_for("an unknown write was settled").await;
    for part in ["tollgate::audit", id, "route=\"sms\"", "outcome=\"sent\"", "status=201"] {
        assert!(line.contains(part), "{part}: {line}");
    }
    process.signal("TERM");
    assert_eq!(process.ended().await, Some(0));
    assert_eq!(upstream.calls(), 1);
}

#[tokio::test]
async fn nothing_of_the_message_is_told_to_anybody() {
    let (_upstream, gate) = unknown().await;
    let list = gate.admin.get("/v1/writes").await.text();
    for private in ["Your table", "491701234567", "k-1"] {
        assert!(!list.contains(private), "{private}: {list}");
    }
}
