//! H-05: nothing that is slow holds a connection for long.

use super::*;

const SHORT: Duration = Duration::from_millis(200);

fn quick() -> Limits {
    Limits { head_timeout: SHORT, ..limits() }
}

#[tokio::test]
async fn h_05_a_connection_that_says_nothing_is_closed() {
    let edge = Edge::start(quick()).await;
    assert_eq!(edge.exchange("").await, "");
}

#[tokio::test]
async fn h_05_a_head_that_trickles_is_told_so_and_closed() {
    let edge = Edge::start(quick()).await;
    let mut client = edge.connect().await;
    client.send("GET / HTTP/1.1\r\nHost").await;
    let answer = client.rest().await;
    assert_eq!(status(&answer), "408", "{answer}");
    assert_eq!(edge.calls(), 0);
}

#[tokio::test]
async fn h_05_bytes_do_not_buy_time() {
    let edge = Edge::start(quick()).await;
    let (mut read, mut write) = edge.connect().await.0.into_split();
    let trickle = tokio::spawn(async move {
        write.write_all(b"GET /").await.unwrap();
        let mut every = tokio::time::interval(SHORT / 10);
        while write.write_all(b"a").await.is_ok() {
            every.tick().await;
        }
    });
    let mut all = Vec::new();
    let _ = within(read.read_to_end(&mut all)).await;
    within(trickle).await.unwrap();
    assert_eq!(edge.calls(), 0);
}

#[tokio::test]
async fn a_second_head_has_its_own_time_and_idleness_another() {
    let edge = Edge::start(Limits { idle_timeout: HANG * 2, ..quick() }).await;
    let mut client = edge.connect().await;
    client.send(GET).await;
    client.until("\r\n\r\n").await;
    client.send("GET / HT").await;
    assert_eq!(status(&client.rest().await), "408");

    let edge = Edge::start(Limits { idle_timeout: SHORT, ..limits() }).await;
    let mut client = edge.connect().await;
    client.send(GET).await;
    client.until("\r\n\r\n").await;
    assert_eq!(client.rest().await, "", "idle: closed without a word");
}

#[tokio::test]
async fn h_05_a_request_may_take_longer_than_a_head() {
    let edge = Edge::start(Limits { head_timeout: SHORT, idle_timeout: SHORT, ..limits() }).await;
    let mut client = edge.connect().await;
    client.send("GET /gated HTTP/1.1\r\nHost: a\r\n\r\n").await;
    edge.wait_for_calls(1).await;
    // Both timeouts pass on another connection meanwhile.
    assert_eq!(edge.exchange("").await, "");
    assert_eq!(edge.exchange("").await, "");
    edge.shared.gate.add_permits(1);
    assert_eq!(status(&client.until("\r\n\r\n").await), "200");
}

#[tokio::test]
async fn h_06_an_answer_nobody_takes_is_given_up() {
    let edge = Edge::start(Limits { idle_timeout: SHORT, max_connections: 1, ..limits() }).await;
    let mut client = edge.connect().await;
    client.send("GET /big HTTP/1.1\r\nHost: a\r\n\r\n").await;
    edge.wait_for_calls(1).await;
    // There is room for one: this one is served when the other has been given up.
    let mut next = edge.connect().await;
    next.send(GET).await;
    assert_eq!(status(&next.until("\r\n\r\n").await), "200");
    assert!(client.rest_len().await < 64 << 20);
}

#[tokio::test]
async fn h_05_slow_sockets_do_not_keep_others_waiting() {
    let edge = Edge::start(Limits { max_connections: 400, ..quick() }).await;
    let mut slow = Vec::new();
    for n in 0..300 {
        let mut client = edge.connect().await;
        client.send(if n % 2 == 0 { "" } else { "GET / HTTP/1.1\r\n" }).await;
        slow.push(client);
    }
    let mut client = edge.connect().await;
    client.send(GET).await;
    assert_eq!(status(&client.until("\r\n\r\n").await), "200");
    for client in &mut slow {
        client.rest().await;
    }
}

#[tokio::test]
async fn an_http2_connection_is_closed_when_it_asks_nothing() {
    let edge = Edge::start(quick()).await;
    let settings = b"\0\0\0\x04\0\0\0\0\0";
    let mut client = edge.connect().await;
    client.send([b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &settings[..]].concat()).await;
    assert!(client.rest_len().await > 0, "the edge's own settings");
    assert_eq!(edge.exchange("PRI * HT").await, "");
}

#[tokio::test]
async fn the_place_of_a_client_that_hangs_up_is_free_again() {
    let edge = Edge::start(Limits { max_connections: 1, ..limits() }).await;
    let mut client = edge.connect().await;
    client.send("GET /gated HTTP/1.1\r\nHost: a\r\n\r\n").await;
    edge.wait_for_calls(1).await;
    drop(client);
    let mut client = edge.connect().await;
    client.send(GET).await;
    assert_eq!(status(&client.until("\r\n\r\n").await), "200");
}

impl Client {
    async fn rest_len(&mut self) -> usize {
        let mut all = Vec::new();
        let _ = within(self.0.read_to_end(&mut all)).await;
        all.len()
    }
}
