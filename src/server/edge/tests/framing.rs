//! H-02 and the limits of a head: what is not one well-framed request is never served as two.

use super::*;

/// Posts a body after these header lines; the body ends in a request that must never be served by itself.
fn post(headers: &str, body: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: a\r\n{headers}\r\n\r\n{body}GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n")
}

#[tokio::test]
async fn h_02_two_framings_are_refused_and_the_connection_closed() {
    let edge = Edge::start(limits()).await;
    let chunked = "5\r\nhello\r\n0\r\n\r\n";
    for headers in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5\r\nContent-Length: 5",
        "Transfer-Encoding: identity, chunked",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: \x0bchunked",
        "Content-Length: +5",
        "Content-Length: -5",
        "Content-Length: 5, 5",
        "Content-Length: 0x5",
        "Content-Length: 5 5",
        "Content-Length:",
        "Content-Length: 99999999999999999999999",
        "Content-Length : 5",
        "Transfer-Encoding : chunked",
        " Content-Length: 5",
        "X: y\r\n Content-Length: 5",
        "X: y\rContent-Length: 5",
        "X: y\0",
        "Content-Length: 5\nTransfer-Encoding: chunked",
        "Content-Length: 5\nX: y",
    ] {
        let answer = edge.exchange(post(headers, chunked)).await;
        assert_eq!((status(&answer), answers(&answer)), ("400", 1), "{headers:?}: {answer}");
    }
    assert_eq!(edge.calls(), 0);
}

#[tokio::test]
async fn h_02_a_broken_chunk_is_the_end_of_the_connection() {
    let edge = Edge::start(limits()).await;
    for body in [
        "0x5\r\nhello\r\n0\r\n\r\n",
        "00000000000000005a\r\nhello\r\n0\r\n\r\n",
        "fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
        "+5\r\nhello\r\n0\r\n\r\n",
        "-5\r\nhello\r\n0\r\n\r\n",
        "5\nhello\n0\n\n",
        "5\r\nhello!\r\n0\r\n\r\n",
        "5\r\nhello0\r\n\r\n",
        "5;a\n=b\r\nhello\r\n0\r\n\r\n",
        "\r\nhello\r\n0\r\n\r\n",
    ] {
        let mut client = edge.connect().await;
        client.send(post("Transfer-Encoding: chunked", body)).await;
        client.0.shutdown().await.unwrap();
        let answer = client.rest().await;
        assert!(answers(&answer) <= 1 && !answer.contains(" 200 "), "{body:?}: {answer}");
    }
}

#[tokio::test]
async fn h_02_nothing_after_a_chunked_body_is_a_request() {
    let edge = Edge::start(limits()).await;
    for body in ["5\r\nhello\r\n0\r\n\r\n", "5;a=b\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n0\r\nX: y\r\n\r\n"] {
        let answer = edge.exchange(post("Transfer-Encoding: chunked", body)).await;
        assert_eq!((status(&answer), answers(&answer)), ("200", 1), "{body:?}: {answer}");
        assert!(answer.contains("connection: close") && answer.ends_with("hello"), "{answer}");
    }
    assert_eq!(edge.calls(), 3);
}

#[tokio::test]
async fn bare_line_feeds_are_refused_in_every_head() {
    let edge = Edge::start(limits()).await;
    for head in ["GET / HTTP/1.1\nHost: a\n\n", "GET / HTTP/1.1\r\nHost: a\r\n\n", "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n"] {
        let answer = edge.exchange(head).await;
        assert_eq!((status(&answer), answers(&answer)), ("400", 1), "{head:?}: {answer}");
        let second = edge.exchange(format!("{GET}{head}{GET}")).await;
        assert_eq!(answers(&second), 2, "{second}");
        assert!(second.contains(" 200 ") && second.contains(" 400 "), "{second}");
    }
    assert_eq!(edge.calls(), 3);
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let edge = Edge::start(limits()).await;
    let post = |body: &str| format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let last = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let all = edge.exchange(format!("{}{GET}\r\n{}{GET}{}{last}", post("one"), post("two\n\n"), post("GET / x\n"))).await;
    assert_eq!((answers(&all), edge.calls()), (6, 6), "{all}");
    let order: Vec<_> = ["one", "two", "GET / x"].iter().map(|body| all.find(body).unwrap()).collect();
    assert!(order.is_sorted(), "{all}");
}

#[tokio::test]
async fn it_does_not_matter_how_the_bytes_are_cut() {
    let edge = Edge::start(limits()).await;
    let post = |body: &str| format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let last = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nend\r\n0\r\n\r\n";
    let all = format!("{GET}{}{GET}\r\n{}{last}", post("GET / HTTP/1.1\r\n\r\n"), post("\n\n"));
    for size in [1, 2, 3, 5, 7, 23, 24, 25, 64, 100] {
        let mut client = edge.connect().await;
        client.0.set_nodelay(true).unwrap();
        for piece in all.as_bytes().chunks(size) {
            client.send(piece).await;
            tokio::task::yield_now().await;
        }
        let answer = client.rest().await;
        // One more start line is in the body that was echoed.
        assert_eq!((answer.matches(" 200 OK").count(), answer.ends_with("end")), (5, true), "{size}: {answer}");
    }
    assert_eq!(edge.calls(), 50);
}

#[tokio::test]
async fn a_body_is_asked_for_before_it_is_sent() {
    let edge = Edge::start(limits()).await;
    let mut client = edge.connect().await;
    for _ in 0..2 {
        client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n").await;
        assert_eq!(status(&client.until("\r\n\r\n").await), "100");
        client.send("hi").await;
        assert_eq!(status(&client.until("\r\n\r\nhi").await), "200");
    }
    client.send("POST /refuse HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n").await;
    assert_eq!(status(&client.rest().await), "413");
}

#[tokio::test]
async fn what_comes_while_a_request_is_answered_is_kept_for_its_turn() {
    let edge = Edge::start(limits()).await;
    let mut client = edge.connect().await;
    client.send("GET /gated HTTP/1.1\r\nHost: a\r\n\r\n").await;
    edge.wait_for_calls(1).await;
    client.send("GET / HTTP/1.1\r\nHo").await;
    edge.shared.gate.add_permits(1);
    client.until("\r\n\r\n").await;
    client.send("st: a\r\nConnection: close\r\n\r\n").await;
    assert_eq!(status(&client.rest().await), "200");
}

#[tokio::test]
async fn h_05_heads_are_bounded() {
    let edge = Edge::start(limits()).await;
    for (head, expected) in [
        (format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "a".repeat(64 << 10)), "431"),
        (format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "a: b\r\n".repeat(2000)), "431"),
        (format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "a: b\r\n".repeat(101)), "431"),
        (format!("GET /?q={} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(100 << 10)), "414"),
        (format!("GET /?q={} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "a".repeat(30 << 10)), "200"),
    ] {
        let answer = edge.exchange(&head).await;
        assert_eq!((status(&answer), answers(&answer)), (expected, 1), "{} bytes: {answer}", head.len());
    }
    assert_eq!(edge.calls(), 1);
}

#[tokio::test]
async fn an_answer_before_the_body_reaches_a_client_that_is_still_sending() {
    let edge = Edge::start(limits()).await;
    let big = 4 << 20;
    let post = format!("POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: {big}\r\n\r\n{}", "x".repeat(big));
    assert_eq!(status(&edge.exchange(post).await), "413");
}

#[tokio::test]
async fn hosts_tunnels_and_upgrades() {
    let edge = Edge::start(limits()).await;
    for (request, expected) in [
        ("GET / HTTP/1.1\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "400"),
        ("GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("GET http://u@a/ HTTP/1.1\r\nHost: u@a\r\n\r\n", "400"),
        ("GET http://a/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "200"),
        ("GET / HTTP/1.0\r\n\r\n", "200"),
        ("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n", "405"),
        ("CONNECT a:80 HTTP/1.1\r\nHost: b:80\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "405"),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nHost: a\r\nConnection: close, Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n", "200"),
    ] {
        let answer = edge.exchange(request).await;
        assert_eq!((status(&answer), answers(&answer)), (expected, 1), "{request:?}: {answer}");
    }
}

#[tokio::test]
async fn an_upgrade_that_was_not_heard_leaves_the_connection_open() {
    let edge = Edge::start(limits()).await;
    let mut client = edge.connect().await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n").await;
    assert_eq!(status(&client.until("\r\n\r\n").await), "200");
    client.send(GET).await;
    assert_eq!(status(&client.until("\r\n\r\n").await), "200");
}
