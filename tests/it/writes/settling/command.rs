//! `tollgate writes`, as a process, in front of a running gateway.

use std::path::Path;
use std::process::Command;

use serde_json::Value as Json;

use super::super::{PRICE, hello, send};
use super::{id, unknown};
use crate::support::gate::{ADMIN_TOKEN, Gate};
use crate::support::routes::{message, sms};
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

async fn writes(dir: &Path, arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.current_dir(dir).env_clear().arg("writes").args(arguments);
    let ran = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: ran.status.code(), out: text(ran.stdout), err: text(ran.stderr) }
}

/// As `tollgate.toml` has port 0, it is said where the gateway is.
async fn at(gate: &Gate, arguments: &[&str]) -> Ran {
    let admin = format!("http://{}/", gate.admin_addr);
    let all: Vec<&str> = arguments.iter().copied().chain(["--admin", &admin]).collect();
    writes(gate.dir.path(), &all).await
}

#[tokio::test]
async fn it_lists_what_is_unknown_and_settles_it() {
    let upstream = FakeUpstream::start([Step::close(), Step::close(), Step::ok(message(8)).status(201)]).await;
    let gate = sms("", "").start(&upstream).await;
    let none = at(&gate, &[]).await;
    let known = "No write is unknown: of all that was sent it is known what came of it.\n";
    assert_eq!((none.code, none.out.as_str(), none.err.as_str()), (Some(0), known, ""));
    assert_eq!(at(&gate, &["--state", "sending"]).await.out, "No write is being sent.\n");
    let client = gate.client.clone().with("x-request-id", "order-17");
    send(&client, "k-1", hello()).await;
    let first = id(&gate, "unknown").await;
    let listed = at(&gate, &["--state", "unknown"]).await;
    let width = first.len();
    let table = format!(
        "{:width$}  sent                  settle from           route  provider  caller      price  sends  request   provider key\n\
         {first}  2026-11-30T12:00:00Z  2026-11-30T12:00:06Z  sms    sms       web     0.008 USD      1  order-17\n\n\
         Ask the provider what came of it, then: tollgate writes settle ID --sent | --not-sent\n",
        "id"
    );
    assert_eq!((listed.code, listed.out.as_str(), listed.err.as_str()), (Some(0), table.as_str(), ""));
    let json: Json = serde_json::from_str(&at(&gate, &["--json"]).await.out).unwrap();
    assert_eq!(json, gate.admin.get("/v1/writes").await.json());

    std::fs::write(gate.dir.path().join("sms.json"), "{\"id\": 7}\n").unwrap();
    let sent = at(&gate, &["settle", &first, "--sent", "--status", "201", "--body", "@sms.json"]).await;
    let told = format!("{first} of sms is settled as sent: whoever asks again gets the answer.\nPaid for it: 0.008 USD.\n");
    assert_eq!((sent.code, sent.out.as_str(), sent.err.as_str()), (Some(0), told.as_str(), ""));
    let again = send(&client, "k-1", hello()).await;
    assert_eq!((again.status, again.text().as_str()), (201, "{\"id\": 7}\n"));
    assert_eq!(again.header("content-type"), Some("application/json"));

    send(&client, "k-2", hello()).await;
    let second = id(&gate, "unknown").await;
    gate.advance(6);
    let not_sent = at(&gate, &["settle", &second, "--not-sent"]).await;
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
    let says = |ran: Ran, code: i32, words: &str| {
        assert!(!ran.err.contains(ADMIN_TOKEN), "{}", ran.err);
        assert_eq!((ran.code, ran.out.as_str()), (Some(code), ""), "{}", ran.err);
        assert!(ran.err.contains(words), "{words}: {}", ran.err);
    };
    says(at(&gate, &["settle", &id]).await, 2, "<--sent|--not-sent>");
    says(at(&gate, &["settle", &id, "--sent", "--not-sent"]).await, 2, "cannot be used with");
    says(at(&gate, &["settle", &id, "--not-sent", "--status", "200"]).await, 2, "cannot be used with");
    says(at(&gate, &["settle", &id, "--not-sent", "--body", "x"]).await, 2, "cannot be used with");
    says(at(&gate, &["settle", "--sent"]).await, 2, "<ID>");
    says(at(&gate, &["--state", "done"]).await, 2, "possible values: unknown, sending");
    says(at(&gate, &["settle", "../switches", "--sent"]).await, 2, "an id is 32 hexadecimal digits");
    says(at(&gate, &["settle", &id, "--sent", "--status", "500"]).await, 2, "2xx or 4xx");
    says(at(&gate, &["settle", &id, "--sent", "--body", "@none.json"]).await, 2, "none.json: No such file");
    let stranger = format!("{}-00000000", &id[..32]);
    says(at(&gate, &["settle", &stranger, "--sent"]).await, 1, "refuses (404): no write");
    says(writes(gate.dir.path(), &[]).await, 1, "say --admin URL");
    says(writes(gate.dir.path(), &["-c", "none.toml"]).await, 78, "none.toml:1:1: cannot be read");
    says(writes(gate.dir.path(), &["--admin", "http://127.0.0.1:9"]).await, 1, "no gateway answers");
    assert_eq!(send(&gate.client, "k-1", hello()).await.status, 409, "nothing was settled");
    assert_eq!((upstream.calls(), gate.spent().await), (1, PRICE));
}
