//! O-02: the listener and its connections end in order; a panic ends one of them.

use super::*;

#[tokio::test]
async fn idle_connections_close_at_once_and_the_listener_stays_until_it_is_stopped() {
    let edge = Edge::start(limits()).await;
    let (mut fresh, mut idle) = (edge.connect().await, edge.connect().await);
    idle.send(GET).await;
    idle.until("\r\n\r\n").await;
    edge.drain.start();
    assert_eq!((fresh.rest().await, idle.rest().await), (String::new(), String::new()));

    let late = edge.exchange(GET).await;
    assert!(late.starts_with("HTTP/1.1 200") && late.contains("connection: close"), "{late}");
    edge.drain.stop(HANG * 2);
    within(edge.served).await.unwrap();
    assert!(TcpStream::connect(edge.addr).await.is_err());
}

#[tokio::test]
async fn a_request_in_flight_is_answered_and_the_connection_closed() {
    let edge = Edge::start(limits()).await;
    let mut client = edge.connect().await;
    client.send("GET /gated HTTP/1.1\r\nHost: a\r\n\r\n").await;
    edge.wait_for_calls(1).await;
    edge.drain.start();
    edge.drain.stop(HANG * 2);
    edge.shared.gate.add_permits(1);
    let answer = client.rest().await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("connection: close"), "{answer}");
    within(edge.served).await.unwrap();
}

#[tokio::test]
async fn half_a_head_is_waited_for() {
    let edge = Edge::start(limits()).await;
    let mut client = edge.connect().await;
    client.send(format!("{GET}GET / HTTP")).await;
    client.until("\r\n\r\n").await;
    edge.drain.start();
    client.send("/1.1\r\nHost: a\r\n\r\n").await;
    // The half may have been seen by then or not; a whole answer or none.
    let answer = client.rest().await;
    assert!(answer.is_empty() || answer.contains("connection: close") || answer.starts_with('['), "{answer}");
}

#[tokio::test]
async fn what_is_still_open_at_the_deadline_is_cut() {
    let edge = Edge::start(limits()).await;
    let mut client = edge.connect().await;
    client.send("GET /gated HTTP/1.1\r\nHost: a\r\n\r\n").await;
    edge.wait_for_calls(1).await;
    edge.drain.stop(HANG * 2);
    edge.drain.stop(Duration::from_millis(50));
    within(edge.served).await.unwrap();
    assert_eq!(client.rest().await, "");
}

#[tokio::test]
async fn a_panic_is_answered_with_500_and_ends_one_connection_only() {
    let edge = Edge::start(limits()).await;
    let answer = edge.exchange("GET /panic HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 500") && answer.contains("connection: close"), "{answer}");
    let mut client = edge.connect().await;
    client.send(GET).await;
    assert_eq!(status(&client.until("\r\n\r\n").await), "200");
}

#[tokio::test]
async fn one_connection_too_many_waits_for_its_place() {
    let edge = Edge::start(Limits { max_connections: 1, ..limits() }).await;
    let (mut first, mut second) = (edge.connect().await, edge.connect().await);
    first.send(GET).await;
    first.until("\r\n\r\n").await;
    second.send(GET).await;
    let nothing = tokio::time::timeout(Duration::from_millis(50), second.0.readable()).await;
    assert!(nothing.is_err());
    drop(first);
    assert_eq!(status(&second.until("\r\n\r\n").await), "200");
}

#[tokio::test]
async fn http2_is_spoken_and_ends_in_order() {
    let edge = Edge::start(Limits { idle_timeout: Duration::from_millis(200), ..limits() }).await;
    let client = reqwest::Client::builder().http2_prior_knowledge().no_proxy().build().unwrap();
    let url = format!("http://{}/", edge.addr);
    let answer = within(client.post(&url).body("two").send()).await.unwrap();
    assert_eq!((answer.version(), answer.text().await.unwrap().as_str()), (http::Version::HTTP_2, "two"));
    assert_eq!(within(client.get(format!("{url}panic")).send()).await.unwrap().status(), 500);
    assert_eq!(within(client.get(&url).send()).await.unwrap().status(), 200);
    edge.drain.stop(HANG * 2);
    within(edge.served).await.unwrap();
}
