//! The tools themselves: a test that counts must be able to trust the counter.

use std::time::Duration;

use serde_json::json;

use crate::support::client::Client;
use crate::support::raw::{Raw, exchange};
use crate::support::soon;
use crate::support::step::{Script, Step};
use crate::support::upstream::FakeUpstream;

mod fault_proxy;
mod fleet;
mod redis;

const GET: &str = "GET /a HTTP/1.1\r\nHost: u\r\n\r\n";

#[tokio::test]
async fn steps_are_played_in_order_and_the_last_is_repeated() {
    let upstream = FakeUpstream::start([
        Step::ok(json!({"n": 1})),
        Step::ok(json!({})).status(503).header("Retry-After", "2"),
        Step::ok(json!({"n": 3})).delay(Duration::from_millis(1)),
    ])
    .await;
    let client = Client::new(upstream.url());
    assert_eq!(client.get("/").await.json(), json!({"n": 1}));
    let busy = client.get("/").await;
    assert_eq!((busy.status, busy.header("retry-after")), (503, Some("2")));
    for _ in 0..2 {
        assert_eq!(client.get("/").await.json(), json!({"n": 3}));
    }
    assert_eq!(upstream.calls(), 4);
    upstream.set_script(Step::ok(json!("new")));
    assert_eq!(client.get("/").await.json(), json!("new"));
}

#[tokio::test]
async fn requests_are_recorded_as_they_came() {
    let upstream = FakeUpstream::start(Step::echo()).await;
    let mut raw = Raw::connect(upstream.addr()).await;
    raw.send("POST /%2e?q=%C3%A4 HTTP/1.1\r\nhOsT: u\r\nContent-Length: 2\r\n\r\nhi").await;
    assert_eq!(raw.response().await.unwrap().json()["target"], "/%2e?q=%C3%A4");
    raw.send("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n").await;
    assert_eq!(raw.response().await.unwrap().json()["body"], "abc");

    let requests = upstream.requests();
    assert_eq!((requests[0].method.as_str(), requests[0].text().as_str()), ("POST", "hi"));
    assert_eq!(requests[0].headers[0], ("hOsT".to_owned(), "u".to_owned()));
    assert_eq!(requests[1].header("transfer-encoding"), Some("chunked"));
    assert_eq!((requests[1].connection, requests[1].nth_on_connection), (1, 2));
    assert_eq!(upstream.last(), requests[1]);
}

#[tokio::test]
async fn only_whole_requests_count() {
    let upstream = FakeUpstream::start(Step::ok(json!({}))).await;
    let mut raw = Raw::connect(upstream.addr()).await;
    raw.send("POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nh").await.end().await.closed().await;
    assert_eq!(upstream.calls(), 0);
}

#[tokio::test]
async fn a_gated_step_waits_for_the_test() {
    let upstream = FakeUpstream::start(Step::ok(json!({})).gated()).await;
    let client = Client::new(upstream.url());
    let asked = tokio::spawn(async move { client.get("/").await.status });
    upstream.wait_for_calls(1).await;
    assert!(!asked.is_finished());
    upstream.release(1);
    assert_eq!(soon("the answer", asked).await.unwrap(), 200);
}

#[tokio::test]
async fn answers_can_be_cut_or_never_come() {
    let upstream = FakeUpstream::start([Step::cut(10), Step::cut(10).chunked(), Step::close(), Step::hang()]).await;
    for _ in 0..2 {
        let mut raw = Raw::connect(upstream.addr()).await;
        raw.send(GET).await;
        assert!(raw.try_response("GET").await.is_err());
    }
    let mut raw = Raw::connect(upstream.addr()).await;
    raw.send(GET).await.closed().await;
    let mut hanging = Raw::connect(upstream.addr()).await;
    hanging.send(GET).await;
    upstream.wait_for_calls(4).await;
    drop(upstream);
    assert_eq!(hanging.rest().await, b"", "dropping it closes its connections");
}

#[tokio::test]
async fn bodies_may_drip_be_chunked_or_be_missing() {
    let upstream = FakeUpstream::start([
        Step::drip("drop", Duration::from_millis(1)),
        Step::drip("drop", Duration::from_millis(1)).chunked(),
        Step::ok(json!([1])).chunked(),
        Step::ok(json!({})).status(204),
    ])
    .await;
    let client = Client::new(upstream.url());
    assert_eq!([client.get("/").await.text(), client.get("/").await.text()], ["drop", "drop"]);
    assert_eq!(client.get("/").await.json(), json!([1]));
    assert_eq!(client.get("/").await.status, 204);
    upstream.set_script(Step::ok(json!({"long": true})));
    let head = client.send(http::Method::HEAD, "/", bytes::Bytes::new()).await;
    assert_eq!((head.header("content-length"), head.text().as_str()), (Some("13"), ""));
}

#[tokio::test]
async fn any_bytes_can_be_an_answer() {
    let bytes = b"HTTP/1.1 200 OK\r\nX-Odd: \xff\r\n\r\nto the end";
    let upstream = FakeUpstream::start(Step::raw(bytes)).await;
    let responses = exchange(upstream.addr(), GET).await;
    assert_eq!((responses.len(), responses[0].header("x-odd")), (1, Some("\u{ff}")));
    assert_eq!(responses[0].text(), "to the end");
    assert_eq!(Raw::connect(upstream.addr()).await.send(GET).await.rest().await, bytes);
}

#[tokio::test]
async fn a_script_may_decide_by_what_was_asked() {
    let upstream = FakeUpstream::start(Script::by(|asked| Step::ok(json!(asked.target.len())))).await;
    assert_eq!(Client::new(upstream.url()).get("/four").await.json(), json!(5));

    upstream.set_script(Script::close_on_reuse(Step::ok(json!({}))));
    let mut raw = Raw::connect(upstream.addr()).await;
    raw.send(GET).await;
    assert_eq!(raw.response().await.unwrap().status, 200);
    raw.send(GET).await.closed().await;
    assert_eq!(upstream.calls(), 3);
}
