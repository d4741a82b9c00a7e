//! Questions in a body: JSON and forms, their framing and their limits.

use serde_json::json;

use super::{hit, problem};
use crate::support::raw::{Raw, Response, exchange};
use crate::support::routes::own;
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

const JSON: &str = "name = { in = \"json\", at = \"/who/name\", type = \"text\", max = 50, required = true }\n\
                    age = { in = \"json\", at = \"/who/age\", type = \"integer\", min = 0 }\n\
                    tags = { in = \"json\", type = \"set\", of = \"text\" }\n\
                    rest = { in = \"json\", at = \"/a~1b\", type = \"json\" }\n\
                    [routes.own.pinned]\nv = { in = \"json\", value = 2 }\n\
                    [routes.own.ignored]\njson = [\"/trace\"]";

async fn upstream() -> FakeUpstream {
    FakeUpstream::start(Step::ok(json!({}))).await
}

fn post(addr: std::net::SocketAddr, lines: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST /own HTTP/1.1\r\nHost: {addr}\r\nX-Api-Key: caller-key\r\nConnection: close\r\n{lines}Content-Length: {length}\r\n\r\n{body}"
    )
}

fn code(reply: &Response) -> (u16, String) {
    (reply.status, reply.json()["code"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_json_body_is_read_by_pointer_and_built_anew() {
    let upstream = upstream().await;
    let gate = own("POST /own", "", JSON).start(&upstream).await;
    for body in [
        r#"{"who":{"name":"Ada L","age":36},"tags":["b","a","b"],"a/b":{"y":1.0,"x":[]}}"#,
        r#" { "a\/b" : {"x":[], "y":1e0}, "tags":["a","b"], "trace":{"deep":[1]}, "v":2, "who":{"age":36.0,"name":" ADA  l "} } "#,
    ] {
        let replies = exchange(gate.addr, post(gate.addr, "Content-Type: application/json\r\n", body)).await;
        assert_eq!(replies[0].status, 200, "{body} {replies:?}");
    }
    let last = upstream.last();
    assert_eq!(last.text(), r#"{"a/b":{"x":[],"y":1.0},"tags":["a","b"],"v":2,"who":{"age":36,"name":"Ada L"}}"#);
    assert_eq!((last.method.as_str(), last.target.as_str()), ("POST", "/own"));
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn in_json_empty_null_and_absent_stay_apart() {
    let upstream = FakeUpstream::start(Step::echo()).await;
    let gate = own("POST /own", "", "v = { in = \"json\", type = \"json\" }").start(&upstream).await;
    let bodies =
        ["{}", r#"{"v":""}"#, r#"{"v":[]}"#, r#"{"v":{}}"#, r#"{"v":null}"#, r#"{"v":"null"}"#, r#"{"v":0}"#, r#"{"v":false}"#];
    for (index, body) in bodies.into_iter().enumerate() {
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        let reply = gate.client.post("/own", body.clone()).await;
        assert_eq!((upstream.calls(), reply.json()["body"].as_str()), (index + 1, Some(body.to_string().as_str())));
        assert!(hit(&gate.client.post("/own", body).await));
    }
    assert_eq!((upstream.calls(), gate.spent().await), (8, 40_000));
}

#[tokio::test]
async fn a_body_that_is_null_is_not_a_body_that_is_missing() {
    let upstream = FakeUpstream::start(Step::echo()).await;
    let gate =
        own("POST /own", "", "whole = { in = \"json\", at = \"\", type = \"json\", required = true }").start(&upstream).await;
    for body in ["null", "[]", "\"\"", "{}"] {
        let [reply] = exchange(gate.addr, post(gate.addr, "", body)).await.try_into().unwrap();
        assert_eq!((reply.status, reply.json()["body"].as_str()), (200, Some(body)));
    }
    for body in ["", "  \r\n"] {
        let [reply] = exchange(gate.addr, post(gate.addr, "", body)).await.try_into().unwrap();
        assert_eq!(code(&reply), (400, "invalid_question".into()), "{body:?}");
    }
    assert_eq!((upstream.calls(), gate.spent().await), (4, 20_000));
}

#[tokio::test]
async fn json_of_the_wrong_shape_is_refused() {
    let upstream = upstream().await;
    let gate = own("POST /own", "", JSON).start(&upstream).await;
    for (body, code, field) in [
        (r#"{"who":{"name":"Ada","x":1}}"#, "unknown_field", "/who/x"),
        (r#"{"who":{"name":"Ada"},"more":null}"#, "unknown_field", "/more"),
        (r#"{"who":"Ada"}"#, "invalid_question", "/who"),
        (r#"{"who":{"name":["Ada"]}}"#, "invalid_question", "name"),
        (r#"{"who":{"name":null}}"#, "invalid_question", "name"),
        (r#"{"who":{"name":""}}"#, "invalid_question", "name"),
        (r#"{"who":{"name":"Ada","age":"x"}}"#, "invalid_question", "age"),
        (r#"{"who":{"name":"Ada"},"v":3}"#, "invalid_question", "v"),
        (r#"{"who":{"name":"Ada"},"v":"2"}"#, "invalid_question", "v"),
        ("[]", "invalid_question", "body"),
        ("17", "invalid_question", "body"),
        ("{}", "invalid_question", "name"),
        ("{", "invalid_question", "body"),
        (r#"{"who":{"name":"Ada"}} x"#, "invalid_question", "body"),
        ("\u{feff}{}", "invalid_question", "body"),
        (r#"{"who":{"name":"Ada","name":"Bob"}}"#, "duplicate_field", "/who/name"),
        (r#"{"who":{"name":"Ada"},"who":{"name":"Ada"}}"#, "duplicate_field", "/who"),
        (r#"{"who":{"name":"Ada"},"a/b":[{"x":1,"x":1}]}"#, "duplicate_field", "/a~1b/0/x"),
    ] {
        let [reply] = exchange(gate.addr, post(gate.addr, "Content-Type: application/json\r\n", body)).await.try_into().unwrap();
        let json = reply.json();
        assert_eq!((reply.status, json["code"].as_str(), json["field"].as_str()), (400, Some(code), Some(field)), "{body}");
    }
    let deep = format!(r#"{{"who":{{"name":"Ada"}},"a/b":{}{}}}"#, "[".repeat(5_000), "]".repeat(5_000));
    let [reply] = exchange(gate.addr, post(gate.addr, "", &deep)).await.try_into().unwrap();
    assert_eq!(code(&reply), (400, "invalid_question".into()));
    let latin =
        b"POST /own HTTP/1.1\r\nHost: a\r\nX-Api-Key: caller-key\r\nConnection: close\r\nContent-Length: 3\r\n\r\n\"\xff\"";
    assert_eq!(code(&exchange(gate.addr, latin).await[0]), (400, "invalid_question".into()));
    assert_eq!((upstream.calls(), gate.spent().await), (0, 0));
}

#[tokio::test]
async fn a_form_is_read_like_a_query() {
    let upstream = upstream().await;
    let question = "to = { in = \"form\", name = \"To\", type = \"phone\", required = true }\ntext = { in = \"form\", name = \"Body\", type = \"text\" }\n\
                    [routes.own.pinned]\nfrom = { in = \"form\", name = \"From\", value = \"+15005550006\" }\n[routes.own.ignored]\nform = [\"trace\"]";
    let gate = own("POST /own", "", question).start(&upstream).await;
    let form = "Content-Type: application/x-www-form-urlencoded; charset=utf-8\r\n";
    for body in [
        "To=%2B41446681800&Body=Hi+you",
        "trace=1&Body=hi%20YOU&To=0041+44+668+18+00&From=%2B15005550006",
        "To=%2B41446681800&Body=Hi%20you&Body=",
    ] {
        let replies = exchange(gate.addr, post(gate.addr, form, body)).await;
        assert_eq!(replies[0].status, 200, "{body} {replies:?}");
    }
    assert_eq!(upstream.last().text(), "Body=Hi%20you&To=%2B41446681800&From=%2B15005550006");
    assert_eq!(upstream.last().header("content-type"), Some("application/x-www-form-urlencoded"));
    for (body, expected) in [
        ("Body=Hi", "invalid_question"),
        ("To=&Body=Hi", "invalid_question"),
        ("To=%2B41446681800&to=1", "unknown_field"),
        ("To=%2B41446681800&To=%2B41446681800", "duplicate_field"),
        ("To=%2B41446681800&From=%2B1", "invalid_question"),
        ("To=%2", "invalid_question"),
    ] {
        let [reply] = exchange(gate.addr, post(gate.addr, form, body)).await.try_into().unwrap();
        assert_eq!(code(&reply), (400, expected.into()), "{body}");
    }
    let [reply] = exchange(gate.addr, post(gate.addr, "Content-Type: application/json\r\n", "{}")).await.try_into().unwrap();
    assert_eq!(code(&reply), (415, "unsupported_media_type".into()));
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn a_body_of_another_type_is_refused_and_one_of_none_is_taken_at_its_word() {
    let upstream = upstream().await;
    let gate = own("POST /own", "", JSON).start(&upstream).await;
    let body = r#"{"who":{"name":"Ada"}}"#;
    for lines in [
        "",
        "Content-Type: application/json\r\n",
        "Content-Type: Application/JSON ; charset=UTF-8\r\n",
        "Content-Type: application/vnd.x+json\r\n",
    ] {
        assert_eq!(exchange(gate.addr, post(gate.addr, lines, body)).await[0].status, 200, "{lines:?}");
    }
    for lines in [
        "Content-Type: text/plain\r\n",
        "Content-Type: application/x-www-form-urlencoded\r\n",
        "Content-Type: multipart/form-data; boundary=x\r\n",
        "Content-Type: \r\n",
        "Content-Type: application/json\r\nContent-Encoding: gzip\r\n",
    ] {
        let [reply] = exchange(gate.addr, post(gate.addr, lines, body)).await.try_into().unwrap();
        assert_eq!(code(&reply), (415, "unsupported_media_type".into()), "{lines:?}");
    }
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn a_body_larger_than_the_route_takes_is_refused_announced_or_not() {
    let upstream = upstream().await;
    let gate = own("POST /own", "max_body = \"64B\"", JSON).start(&upstream).await;
    let fits = format!(r#"{{"who":{{"name":"{}"}}}}"#, "a".repeat(45));
    assert_eq!(fits.len(), 64);
    assert_eq!(exchange(gate.addr, post(gate.addr, "", &fits)).await[0].status, 200);
    let large = format!("{fits} ");
    assert_eq!(code(&exchange(gate.addr, post(gate.addr, "", &large)).await[0]), (413, "body_too_large".into()));
    let chunked = format!(
        "POST /own HTTP/1.1\r\nHost: {}\r\nX-Api-Key: caller-key\r\nTransfer-Encoding: chunked\r\n\r\n28\r\n{}\r\n28\r\n{}\r\n",
        gate.addr,
        "x".repeat(40),
        "x".repeat(40)
    );
    let replies = exchange(gate.addr, chunked).await;
    assert_eq!(
        (replies.len(), code(&replies[0]), replies[0].header("connection")),
        (1, (413, "body_too_large".into()), Some("close"))
    );
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let upstream = upstream().await;
    let gate = own("POST /own", "", JSON).server("body_timeout = \"100ms\"").start(&upstream).await;
    let mut raw = Raw::connect(gate.addr).await;
    let head =
        format!("POST /own HTTP/1.1\r\nHost: {}\r\nX-Api-Key: caller-key\r\nContent-Length: 50\r\n\r\n{{\"who\"", gate.addr);
    let reply = raw.send(head).await.response().await.unwrap();
    assert_eq!((code(&reply), reply.header("connection")), ((408, "request_timeout".into()), Some("close")));
    assert_eq!((upstream.calls(), gate.spent().await), (0, 0));
}

#[tokio::test]
async fn a_body_where_none_belongs_is_refused() {
    let upstream = upstream().await;
    let gate = own("GET /own", "", "q = { in = \"query\", type = \"text\" }").start(&upstream).await;
    let get = |lines: &str, body: &str| {
        format!(
            "GET /own?q=a1 HTTP/1.1\r\nHost: {}\r\nX-Api-Key: caller-key\r\nConnection: close\r\n{lines}\r\n{body}",
            gate.addr
        )
    };
    assert_eq!(exchange(gate.addr, get("Content-Length: 0\r\n", "")).await[0].status, 200);
    for (lines, body) in [("Content-Length: 2\r\n", "hi"), ("Transfer-Encoding: chunked\r\n", "2\r\nhi\r\n0\r\n\r\n")] {
        let [reply] = exchange(gate.addr, get(lines, body)).await.try_into().unwrap();
        assert_eq!(code(&reply), (400, "unknown_field".into()), "{lines}");
    }
    // A stranger's body is not even asked for.
    let reply = gate.stranger().send(http::Method::GET, "/own?q=a1", "hi".into()).await;
    assert_eq!(problem(&reply).1, "unauthenticated");
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}
