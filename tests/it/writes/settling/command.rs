//! `tollgate writes`, as a process, in front of a running gateway.

use serde_json::Value as Json;

use super::super::{PRICE, hello, send};
use super::{id, unknown};
use crate::support::command::{Ran, at, beside};
use crate::support::gate::Gate;
use crate::support::routes::{message, sms};
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

async fn writes(gate: &Gate, arguments: &[&str]) -> Ran {
    at(gate, &[&["writes"], arguments].concat()).await
}

#[tokio::test]
async fn it_lists_what_is_unknown_and_settles_it() {
    let upstream = FakeUpstream::start([Step::close(), Step::close(), Step::ok(message(8)).status(201)]).await;
    let gate = sms("", "").start(&upstream).await;
    let none = writes(&gate, &[]).await;
    let known = "No write is unknown: of all that was sent it is known what came of it.\n";
    assert_eq!((none.code, none.out.as_str(), none.err.as_str()), (Some(0), known, ""));
    assert_eq!(writes(&gate, &["--state", "sending"]).await.out, "No write is being sent.\n");
    let client = gate.client.clone().with("x-request-id", "order-17");
    send(&client, "k-1", hello()).await;
    let first = id(&gate, "unknown").await;
    let listed = writes(&gate, &["--state", "unknown"]).await;
    let width = first.len();
    let table = format!(
        "{:width$}  sent                  settle from           route  provider  caller      price  sends  request   provider key\n\
         {first}  2026-11-30T12:00:00Z  2026-11-30T12:00:06Z  sms    sms       web     0.008 USD      1  order-17\n\n\
         Ask the provider what came of it, then: tollgate writes settle ID --sent | --not-sent\n",
        "id"
    );
    assert_eq!((listed.code, listed.out.as_str(), listed.err.as_str()), (Some(0), table.as_str(), ""));
    let json: Json = serde_json::from_str(&writes(&gate, &["--json"]).await.out).unwrap();
    assert_eq!(json, gate.admin.get("/v1/writes").await.json());

    std::fs::write(gate.dir.path().join("sms.json"), "{\"id\": 7}\n").unwrap();
    let sent = writes(&gate, &["settle", &first, "--sent", "--status", "201", "--body", "@sms.json"]).await;
    let told = format!("{first} of sms is settled as sent: whoever asks again gets the answer.\nPaid for it: 0.008 USD.\n");
    assert_eq!((sent.code, sent.out.as_str(), sent.err.as_str()), (Some(0), told.as_str(), ""));
    let again = send(&client, "k-1", hello()).await;
    assert_eq!((again.status, again.text().as_str()), (201, "{\"id\": 7}\n"));
    assert_eq!(again.header("content-type"), Some("application/json"));

    send(&client, "k-2", hello()).await;
    let second = id(&gate, "unknown").await;
    gate.advance(6);
    let not_sent = writes(&gate, &["settle", &second, "--not-sent"]).await;
    let told = format!("{second} of sms is settled as not sent: whoever asks again sends it.\nPaid for it: nothing.\n");
    assert_eq!((not_sent.code, not_sent.out.as_str()), (Some(0), told.as_str()), "{}", not_sent.err);
    assert_eq!(send(&client, "k-2", hello()).await.status, 201);
    assert_eq!(upstream.calls(), 3);
    gate.ledger_says(2 * PRICE).await;
}

#[tokio::test]
async fn what_goes_wrong_is_said_in_words() {
    let (upstream, gate) = unknown().await;
    let id = id(&gate, "unknown").await;
    writes(&gate, &["settle", &id]).await.failed(2, "<--sent|--not-sent>");
    writes(&gate, &["settle", &id, "--sent", "--not-sent"]).await.failed(2, "cannot be used with");
    writes(&gate, &["settle", &id, "--not-sent", "--status", "200"]).await.failed(2, "cannot be used with");
    writes(&gate, &["settle", &id, "--not-sent", "--body", "x"]).await.failed(2, "cannot be used with");
    writes(&gate, &["settle", "--sent"]).await.failed(2, "<ID>");
    writes(&gate, &["--state", "done"]).await.failed(2, "possible values: unknown, sending");
    writes(&gate, &["settle", "../switches", "--sent"]).await.failed(2, "an id is 32 hexadecimal digits");
    writes(&gate, &["settle", &id, "--sent", "--status", "500"]).await.failed(2, "2xx or 4xx");
    writes(&gate, &["settle", &id, "--sent", "--body", "@none.json"]).await.failed(2, "none.json: No such file");
    let stranger = format!("{}-00000000", &id[..32]);
    writes(&gate, &["settle", &stranger, "--sent"]).await.failed(1, "refuses (404): no write");
    beside(gate.dir.path(), &["writes"]).await.failed(1, "say --admin URL");
    beside(gate.dir.path(), &["writes", "-c", "none.toml"]).await.failed(78, "none.toml:1:1: cannot be read");
    beside(gate.dir.path(), &["writes", "--admin", "http://127.0.0.1:9"]).await.failed(1, "no gateway answers");
    assert_eq!(send(&gate.client, "k-1", hello()).await.status, 409, "nothing was settled");
    assert_eq!((upstream.calls(), gate.spent().await), (1, PRICE));
}
