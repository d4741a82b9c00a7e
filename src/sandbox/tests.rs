//! Over real sockets.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

const BERLIN: &str = "/geocode/v1/json?q=Berlin&key=k";

fn sandbox(faults: Value) -> Sandbox {
    let script = Some(Script { faults: serde_json::from_value(faults).unwrap() });
    Sandbox::start(Options { listen: ([127, 0, 0, 1], 0).into(), script }).unwrap()
}

async fn get(sandbox: &Sandbox, path: &str) -> Result<reqwest::Response, reqwest::Error> {
    reqwest::get(format!("http://{}{path}", sandbox.addr())).await
}

/// Every byte of the answer to a request, and how the connection ended.
async fn raw(sandbox: &Sandbox, request: &str) -> (String, io::Result<()>) {
    let mut stream = TcpStream::connect(sandbox.addr()).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    let ended = stream.read_to_end(&mut bytes).await.map(drop);
    (String::from_utf8(bytes).unwrap(), ended)
}

async fn raw_get(sandbox: &Sandbox, path: &str) -> (String, io::Result<()>) {
    raw(sandbox, &format!("GET {path} HTTP/1.1\r\nHost: sandbox\r\n\r\n")).await
}

/// What follows the head.
fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

#[tokio::test]
async fn calls_are_answered_and_metered() {
    let sandbox = sandbox(json!([]));
    for path in [BERLIN, BERLIN, "/geocode/v1/json?q=Berlin", "/maps/api/geocode/json?address=Delhi&key=AIza", "/nowhere"] {
        get(&sandbox, path).await.unwrap();
    }
    let bill: Value = serde_json::from_str(&get(&sandbox, "/meter").await.unwrap().text().await.unwrap()).unwrap();
    let expected = json!({
        "calls": 4, "billed_micros": 15_000, "currency": "USD",
        "providers": {
            "opencage": {"calls": 3, "billed": 2, "billed_micros": 10_000, "questions": [{"question": "Berlin", "calls": 3, "billed": 2}]},
            "google-geocoding": {"calls": 1, "billed": 1, "billed_micros": 5_000, "questions": [{"question": "Delhi", "calls": 1, "billed": 1}]},
        },
    });
    assert_eq!(bill, expected);
    sandbox.meter().reset();
    assert_eq!(sandbox.meter().snapshot().calls, 0);
}

#[tokio::test]
async fn faults_are_set_listed_and_taken_away_while_it_runs() {
    let sandbox = sandbox(json!([]));
    let faults = format!("http://{}/faults", sandbox.addr());
    let client = reqwest::Client::new();
    let set =
        client.post(&faults).body(r#"{"provider": "opencage", "calls": [1, 2], "status": 429, "retry_after": ["120", "60"]}"#);
    assert_eq!(set.send().await.unwrap().status(), 201);
    let busy = get(&sandbox, BERLIN).await.unwrap();
    assert_eq!(busy.headers().get_all("retry-after").iter().collect::<Vec<_>>(), ["120", "60"]);
    assert_eq!((busy.status().as_u16(), busy.text().await.unwrap().contains(r#""results":[]"#)), (429, true));
    let listed: Value = serde_json::from_str(&client.get(&faults).send().await.unwrap().text().await.unwrap()).unwrap();
    assert_eq!((&listed["fault"][0]["seen"], &listed["fault"][0]["status"]), (&json!(1), &json!(429)));
    assert_eq!(client.delete(&faults).send().await.unwrap().status(), 204);
    assert_eq!(get(&sandbox, BERLIN).await.unwrap().status(), 200);
    let wrong = client.post(&faults).body(r#"{"hang": "yes"}"#).send().await.unwrap();
    assert_eq!((wrong.status().as_u16(), wrong.text().await.unwrap().contains("fault 1: ")), (400, true));
}

#[tokio::test]
async fn a_cut_answer_announces_the_whole_and_ends_early() {
    let sandbox = sandbox(json!([{"calls": 2, "cut": 20}, {"calls": 3, "cut": 0}, {"calls": 4, "cut_chunked": 20}]));
    let whole = get(&sandbox, BERLIN).await.unwrap().text().await.unwrap();
    let announced = format!("content-length: {}\r\n", whole.len());
    let (answer, ended) = raw_get(&sandbox, BERLIN).await;
    assert!(ended.is_ok() && answer.contains(&announced), "{answer} {ended:?}");
    assert_eq!(body(&answer), &whole[..20]);
    let (answer, _) = raw_get(&sandbox, BERLIN).await;
    assert_eq!((body(&answer), answer.contains(&announced)), ("", true));
    let (answer, _) = raw_get(&sandbox, BERLIN).await;
    assert!(answer.contains("transfer-encoding: chunked"), "{answer}");
    assert_eq!(body(&answer), format!("14\r\n{}\r\n", &whole[..20]));
    assert_eq!(sandbox.meter().snapshot().billed_micros, 4 * 5_000);
}

#[tokio::test]
async fn a_dripped_answer_is_whole_in_the_end() {
    let sandbox = sandbox(json!([{"calls": 2, "drip": {"bytes": 300, "every": "1ms"}}]));
    let whole = get(&sandbox, BERLIN).await.unwrap().text().await.unwrap();
    assert_eq!(get(&sandbox, BERLIN).await.unwrap().text().await.unwrap(), whole);
}

#[tokio::test]
async fn a_connection_can_end_without_an_answer() {
    let sandbox = sandbox(json!([{"calls": 1, "close": true}, {"calls": 2, "reset": true}, {"calls": 3, "refuse": true}]));
    let (answer, ended) = raw_get(&sandbox, BERLIN).await;
    assert_eq!((answer.as_str(), ended.is_ok()), ("", true));
    let (answer, ended) = raw_get(&sandbox, BERLIN).await;
    assert_eq!((answer.as_str(), ended.unwrap_err().kind()), ("", io::ErrorKind::ConnectionReset));
    // The body never comes, and nobody waits for it.
    let (answer, ended) = raw(&sandbox, "POST /v1/payment_intents HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n").await;
    assert_eq!((answer.as_str(), ended.unwrap_err().kind()), ("", io::ErrorKind::ConnectionReset));
    let bill = sandbox.meter().snapshot();
    assert_eq!((bill.calls, bill.billed_micros), (3, 2 * 5_000));
}

#[tokio::test]
async fn a_body_can_be_spoiled_or_replaced() {
    let sandbox = sandbox(json!([
        {"calls": 1, "malformed": "json"},
        {"calls": 2, "malformed": "html"},
        {"calls": 3, "status": 200, "body": {"status": "OVER_QUERY_LIMIT"}, "headers": {"X-Via": "sandbox"}},
        {"calls": 4, "status": 502, "body": "oops", "content_type": "text/plain", "delay": "1ms"},
    ]));
    let mut answers = Vec::new();
    for _ in 0..4 {
        let answer = get(&sandbox, "/maps/api/geocode/json?address=Delhi&key=AIza").await.unwrap();
        let head = (answer.status().as_u16(), answer.headers()["content-type"].to_str().unwrap().to_owned());
        answers.push((head, answer.text().await.unwrap()));
    }
    assert!(serde_json::from_str::<Value>(&answers[0].1).is_err() && answers[0].0.0 == 200);
    assert!(answers[1].0.1 == "text/html" && answers[1].1.starts_with("<!DOCTYPE html>"));
    assert_eq!(answers[2].1, r#"{"status":"OVER_QUERY_LIMIT"}"#);
    assert_eq!(answers[3], ((502, "text/plain".to_owned()), "oops".to_owned()));
}

#[tokio::test]
async fn stopping_drops_a_call_that_hangs() {
    let sandbox = sandbox(json!([{"hang": true}]));
    let mut stream = TcpStream::connect(sandbox.addr()).await.unwrap();
    stream.write_all(format!("GET {BERLIN} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await.unwrap();
    let meter = sandbox.meter();
    while meter.snapshot().calls == 0 {
        tokio::task::yield_now().await;
    }
    sandbox.stop().await;
    assert_eq!((stream.read(&mut [0; 1]).await.unwrap(), meter.snapshot().billed_micros), (0, 5_000));
}

#[tokio::test]
async fn a_paid_message_counts_though_its_answer_is_lost() {
    let sandbox = sandbox(json!([{"provider": "twilio", "calls": 1, "close": true}]));
    let url = format!("http://{}/2010-04-01/Accounts/AC1/Messages.json", sandbox.addr());
    let send = || {
        let form = "To=%2B15005550006&From=%2B15005550001&Body=hello";
        reqwest::Client::new().post(&url).basic_auth("AC1", Some("x")).body(form).send()
    };
    assert!(send().await.is_err());
    assert_eq!(send().await.unwrap().status(), 201);
    let bill = sandbox.meter().snapshot();
    assert_eq!((bill.calls, bill.billed_micros), (2, 2 * 7_900));
    assert_eq!(bill.providers[&provider::Provider::Twilio].questions[0].question, "+15005550006: hello");
}

#[tokio::test]
async fn a_key_of_stripes_is_in_use_until_its_request_is_answered() {
    let sandbox = sandbox(json!([{"provider": "stripe", "calls": 1, "hang": true}]));
    let pay = || {
        let client = reqwest::Client::new().post(format!("http://{}/v1/payment_intents", sandbox.addr()));
        client.bearer_auth("sk").header("idempotency-key", "k").body("amount=5&currency=eur").send()
    };
    let first = tokio::spawn(pay());
    while sandbox.meter().snapshot().calls == 0 {
        tokio::task::yield_now().await;
    }
    let second = pay().await.unwrap();
    let (status, body): (_, Value) = (second.status(), serde_json::from_str(&second.text().await.unwrap()).unwrap());
    assert_eq!((status.as_u16(), &body["error"]["code"]), (409, &json!("idempotency_key_in_use")));
    // Whoever asked first is gone; what it asked for was done.
    first.abort();
    let replayed = loop {
        let again = pay().await.unwrap();
        if again.status() == 200 {
            break again;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(replayed.headers()["idempotent-replayed"], "true");
    assert_eq!(sandbox.meter().snapshot().providers[&provider::Provider::Stripe].billed, 1);
}
