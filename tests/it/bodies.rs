//! Answers that never end, or end up too large; readers that never finish.

use std::time::Duration;

use serde_json::json;

use crate::support::gate::{KEY, opencage, quote};
use crate::support::raw::Raw;
use crate::support::soon;
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

const GEO: &str = "/geocode/v1/json?q=Lyon";
const QUOTE: &str = "/v1/quote?from=Delhi&to=Jaipur";

#[tokio::test]
async fn h_06_a_drip_without_end_is_a_timeout() {
    let whole = r#"{"routes":[{"distanceMeters":7,"duration":"1s"}]}"#;
    let drip = Step::drip(whole, Duration::from_millis(100)).chunked();
    let upstream = FakeUpstream::start([drip, Step::ok(json!({})).body(whole)]).await;
    let gate = quote("timeout = \"600ms\"", "").start(&upstream).await;
    let reply = gate.get(QUOTE).await;
    assert_eq!((reply.status, &reply.json()["code"]), (504, &json!("upstream_timeout")));
    assert_eq!(gate.get(QUOTE).await.json()["distance_meters"], 7);
    assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000));
}

#[tokio::test]
async fn h_06_a_slow_reader_holds_no_flight() {
    let large = json!({ "results": [{ "confidence": 9, "formatted": "x".repeat(3 << 20) }] });
    let upstream = FakeUpstream::start(Step::ok(large)).await;
    let gate = opencage("max_answer = \"8MiB\"", "").start(&upstream).await;
    let mut slow = Raw::connect(gate.addr).await;
    slow.send(format!("GET {GEO} HTTP/1.1\r\nHost: gate\r\nX-Api-Key: {KEY}\r\n\r\n")).await;
    upstream.wait_for_calls(1).await;
    soon("the flight to land", async {
        while !gate.metrics().await.contains("tollgate_flights 0\n") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert!(gate.get(GEO).await.header("cache-status").unwrap().contains("hit"));
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

/// A gzip member of so many runs of 258 bytes: a fixed Huffman block, 13 bits a run.
fn bomb(runs: usize) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let (mut bits, mut count) = (0_u64, 0);
    let mut put = |value: u64, length: u32| {
        bits |= value << count;
        count += length;
        while count >= 8 {
            out.push(u8::try_from(bits & 255).unwrap());
            bits >>= 8;
            count -= 8;
        }
    };
    let reversed = |code: u64, length: u32| code.reverse_bits() >> (64 - length);
    put(0b011, 3);
    put(reversed(0x30 + u64::from(b' '), 8), 8);
    for _ in 0..runs {
        // Length 258 is symbol 285, distance 1 is symbol 0.
        put(reversed(0b1100_0101, 8), 8);
        put(0, 5);
    }
    put(0, 7);
    put(0, 8);
    out
}

#[tokio::test]
async fn h_06_size_has_a_cap_on_the_wire_and_after_inflation() {
    let bomb = bomb(500_000);
    assert!(bomb.len() < 1 << 20, "{} bytes on the wire, 129 MB after", bomb.len());
    let chunks: Vec<u8> = {
        let chunk = [b"10000\r\n".as_slice(), &vec![b' '; 0x10000], b"\r\n"].concat();
        [b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec(), chunk.repeat(1_000)]
            .concat()
    };
    let stated = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{{", 200 << 20);
    let upstream = FakeUpstream::start([
        Step::ok(json!({ "routes": [{ "distanceMeters": 1, "duration": "1s" }] })),
        Step::ok(json!({})).header("content-encoding", "gzip").body(bomb),
        Step::raw(chunks),
        Step::raw(stated),
    ])
    .await;
    let dir = tempfile::tempdir().unwrap();
    let served = quote("", "").serve(dir.path(), &upstream).await;
    assert_eq!(served.client.get(QUOTE).await.status, 200);
    let before = served.peak_memory();
    for town in ["Agra", "Pune", "Goa"] {
        let reply = served.client.get(&format!("/v1/quote?from=Delhi&to={town}")).await;
        assert_eq!((reply.status, &reply.json()["code"]), (502, &json!("upstream_failed")), "{town}");
    }
    let grown = served.peak_memory() - before;
    // Allocators and threads take their share; the least of the three is 64 MB.
    assert!(grown < 48 << 10, "memory grew by {grown} KiB");
    assert_eq!((upstream.calls(), served.spent().await), (4, 20_000));
}
