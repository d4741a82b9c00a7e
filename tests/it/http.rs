//! The edge and the wire: what is sent on, what is never served, and what cannot hold anything up.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tokio::time::Instant;

use crate::support::gate::{Gate, KEY, SECRET, Setup, found, opencage};
use crate::support::raw::{Raw, exchange};
use crate::support::step::{Script, Step};
use crate::support::upstream::{FakeUpstream, Recorded};

const GEO: &str = "/geocode/v1/json?q=Lyon";
const NATIVE: &str = "/directions/v2:computeRoutes";
const POINTS: &str = r#"{"origin":{"address":"Delhi"},"destination":{"address":"Jaipur"}}"#;

/// Google's own route, natively: the question is in a POST's body.
fn native(more: &str) -> Setup {
    Setup::new(format!(
        "[providers.google-routes]\npreset = \"google-routes\"\nbase_url = \"{{upstream}}\"\nkey = \"{{secret}}\"\n\
         price = \"0.005 USD\"\nretry = {{ attempts = 1 }}\n\
         [routes.native]\nprovider = \"google-routes\"\noperation = \"compute-routes\"\nbudget = \"none\"\n{more}\n"
    ))
}

fn names(request: &Recorded) -> Vec<String> {
    let mut names: Vec<String> = request.headers.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
    names.sort_unstable();
    names
}

/// Ends with the two numbers, and a plain request still served.
async fn still_serves(gate: &Gate, upstream: &FakeUpstream, path: &str, paid: usize) {
    assert_eq!((upstream.calls(), gate.spent().await), (paid, 5_000 * paid as u64));
    assert_eq!(gate.get(path).await.status, 200);
}

#[tokio::test]
async fn h_01_the_provider_gets_an_allow_list() {
    let client = "Connection: \r\nConnection: X-Api-Key, X-Goog-Api-Key, X-Trace, Host, close\r\nX-Trace: 1\r\nKeep-Alive: timeout=5\r\n\
                  TE: trailers\r\nProxy-Authorization: Basic eA==\r\nProxy-Connection: keep-alive\r\nUpgrade: h2c\r\n\
                  X-Forwarded-For: 1.2.3.4\r\nForwarded: for=1.2.3.4\r\nVia: 1.1 x\r\nCookie: a=b\r\nReferer: http://x/\r\n\
                  Origin: http://x\r\nAccept: text/html\r\nAccept-Language: fr\r\nUser-Agent: client/1\r\nX-Goog-Api-Key: theirs\r\n\
                  Range: bytes=0-1\r\nIf-None-Match: \"x\"\r\nExpect-CT: x\r\nX-HTTP-Method-Override: DELETE\r\n";
    let upstream = FakeUpstream::start(Step::ok(found())).await;
    let gate = opencage("", "").start(&upstream).await;
    let get = format!("GET {GEO} HTTP/1.1\r\nHost: gate\r\nX-Api-Key: {KEY}\r\n{client}\r\n");
    assert_eq!(exchange(gate.addr, get).await.first().map(|reply| reply.status), Some(200));
    let sent = upstream.last();
    assert_eq!(names(&sent), ["accept", "accept-encoding", "host", "user-agent"], "{sent:?}");
    assert_eq!(sent.header("host"), Some(&*upstream.addr().to_string()));
    assert!(sent.header("user-agent").unwrap().starts_with("tollgate/") && sent.header("accept") == Some("*/*"));
    assert_eq!(sent.target, format!("/geocode/v1/json?q=Lyon&key={}", crate::support::gate::encode(SECRET)));
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));

    let answer = Step::ok(json!({ "routes": [{}] }));
    let upstream = FakeUpstream::start(answer).await;
    let gate = native("").start(&upstream).await;
    let post = format!(
        "POST {NATIVE} HTTP/1.1\r\nHost: gate\r\nAuthorization: Bearer {KEY}\r\nX-Goog-FieldMask: routes.duration\r\n\
         Content-Type: application/json; charset=utf-8\r\nContent-Length: {}\r\n{client}\r\n{POINTS}",
        POINTS.len()
    );
    let replies = exchange(gate.addr, post).await;
    assert_eq!(replies.first().map(|reply| reply.status), Some(200), "{replies:?}");
    let sent = upstream.last();
    let expected = "accept accept-encoding content-length content-type host user-agent x-goog-api-key x-goog-fieldmask";
    assert_eq!(names(&sent).join(" "), expected);
    assert_eq!(sent.header("x-goog-api-key"), Some(SECRET), "ours, not theirs");
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn h_01_the_client_gets_an_allow_list() {
    let step = Step::ok(found())
        .header("connection", "X-Secret, keep-alive")
        .header("x-secret", "1")
        .header("keep-alive", "timeout=5")
        .header("proxy-authenticate", "Basic")
        .header("upgrade", "h2c")
        .header("trailer", "x")
        .header("server", "provider/1")
        .header("location", "http://provider/?key=x")
        .header("strict-transport-security", "max-age=1")
        .header("access-control-allow-origin", "*")
        .header("content-language", "fr");
    let upstream = FakeUpstream::start(step).await;
    let gate = opencage("", "").start(&upstream).await;
    for _ in 0..2 {
        let reply = gate.get(GEO).await;
        let mut names: Vec<&str> = reply.headers.keys().map(http::HeaderName::as_str).filter(|name| *name != "age").collect();
        names.sort_unstable();
        let expected = "cache-control cache-status content-language content-length content-type date x-request-id";
        assert_eq!(names.join(" "), expected);
    }
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn h_02_of_two_lengths_none_is_believed() {
    let upstream = FakeUpstream::start(Step::ok(json!({ "routes": [{}] }))).await;
    let gate = native("").start(&upstream).await;
    let inner = format!("POST {NATIVE} HTTP/1.1\r\nHost: gate\r\nX-Api-Key: {KEY}\r\nX-Goog-FieldMask: smuggled\r\n");
    let inner = format!("{inner}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{POINTS}", POINTS.len());
    let chunk = format!("{:x}\r\n{POINTS}\r\n0\r\n\r\n", POINTS.len());
    let n = POINTS.len();
    for (framing, body) in [
        (format!("Content-Length: {n}\r\nTransfer-Encoding: chunked\r\n"), chunk.clone()),
        (format!("Transfer-Encoding: chunked\r\nContent-Length: {n}\r\n"), chunk.clone()),
        (format!("Content-Length: {n}\r\nContent-Length: {}\r\n", n + 5), POINTS.into()),
        (format!("Content-Length: {n}\r\nContent-Length: {n}\r\n"), POINTS.into()),
        ("Transfer-Encoding: identity, chunked\r\n".into(), chunk.clone()),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n".into(), chunk.clone()),
        ("Transfer-Encoding: chunked, chunked\r\n".into(), chunk.clone()),
        ("Transfer-Encoding: xchunked\r\n".into(), chunk.clone()),
        ("Transfer-Encoding : chunked\r\n".into(), chunk.clone()),
        (format!("Content-Length: +{n}\r\n"), POINTS.into()),
        (format!("Content-Length: {n}, {n}\r\n"), POINTS.into()),
        (format!("Content-Length: 0x{n:x}\r\n"), POINTS.into()),
        (format!("Content-Length : {n}\r\n"), POINTS.into()),
        (format!("Content-Length: {n}\nX-Other: 1\r\n"), POINTS.into()),
        ("Transfer-Encoding: chunked\r\n".into(), format!("0x{n:x}\r\n{POINTS}\r\n0\r\n\r\n")),
        ("Transfer-Encoding: chunked\r\n".into(), format!("{n:017x}\r\n{POINTS}\r\n0\r\n\r\n")),
        ("Transfer-Encoding: chunked\r\n".into(), format!("{n:x};a=b\r\n{POINTS}\r\n0\r\n\r\n")),
        ("Transfer-Encoding: chunked\r\n".into(), format!("{n:x}\n{POINTS}\r\n0\r\n\r\n")),
    ] {
        let what = format!("{framing:?} {:?}", body.lines().next());
        let outer = format!("POST {NATIVE} HTTP/1.1\r\nHost: gate\r\nX-Api-Key: {KEY}\r\nX-Goog-FieldMask: routes.duration\r\n");
        let mut raw = Raw::connect(gate.addr).await;
        raw.send(format!("{outer}Content-Type: application/json\r\n{framing}\r\n{body}{inner}")).await;
        let rest = String::from_utf8_lossy(&raw.rest().await).into_owned();
        assert!(rest.matches("HTTP/1.1 ").count() <= 1, "the smuggled request was served: {what}: {rest}");
        // The edge says 400; past it, a native route says no in the provider's way.
        let refused = rest.starts_with("HTTP/1.1 400") || (rest.starts_with("HTTP/1.1 403") && rest.contains("\"bad_request\""));
        assert!(refused || rest.starts_with("HTTP/1.1 200"), "{what}: {rest}");
        assert!(rest.to_ascii_lowercase().contains("connection: close"), "{what}: {rest}");
        let masks: Vec<_> =
            upstream.requests().iter().filter_map(|sent| sent.header("x-goog-fieldmask").map(String::from)).collect();
        assert!(!masks.iter().any(|mask| mask.contains("smuggled")), "{what}");
    }
    // Whatever was obeyed was framed once, by us.
    for sent in upstream.requests() {
        assert_eq!(
            (sent.header("transfer-encoding"), sent.header("content-length")),
            (None, Some(&*sent.body.len().to_string()))
        );
    }
    assert_eq!(gate.spent().await, 5_000 * upstream.calls() as u64);
}

#[tokio::test]
async fn h_02_a_body_on_a_get_is_never_the_next_request() {
    let upstream = FakeUpstream::start(Step::ok(found())).await;
    let gate = opencage("", "").start(&upstream).await;
    let inner = format!("GET /geocode/v1/json?q=Smuggled HTTP/1.1\r\nHost: gate\r\nX-Api-Key: {KEY}\r\n\r\n");
    for framing in ["Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", "Content-Length: 4\r\nContent-Length: 5\r\n"] {
        let outer = format!("GET {GEO} HTTP/1.1\r\nHost: gate\r\nX-Api-Key: {KEY}\r\n{framing}\r\n0\r\n\r\n{inner}");
        let replies = exchange(gate.addr, outer).await;
        assert_eq!(replies.iter().map(|reply| reply.status).collect::<Vec<_>>(), [400], "{framing}");
    }
    // A stated body that nobody reads: the connection ends, nothing in it is served.
    let outer = format!("GET {GEO} HTTP/1.1\r\nHost: gate\r\nX-Api-Key: {KEY}\r\nContent-Length: {}\r\n\r\n{inner}", inner.len());
    let replies = exchange(gate.addr, outer).await;
    let details: Vec<_> = replies.iter().map(|reply| (reply.status, reply.header("proxy-status"))).collect();
    assert_eq!(details, [(403, Some("tollgate; details=\"unknown_field\""))]);
    still_serves(&gate, &upstream, GEO, 0).await;
}

#[tokio::test]
async fn h_03_a_connection_closed_on_reuse_costs_a_retry_and_no_request() {
    let upstream = FakeUpstream::start(Script::close_on_reuse(Step::ok(found()))).await;
    let gate = opencage("retry = { attempts = 2, base = \"5ms\", minimum = \"100/s\" }", "").start(&upstream).await;
    for n in 0..10 {
        let reply = gate.get(&format!("/geocode/v1/json?q=Town{n}")).await;
        assert_eq!((reply.status, reply.json()), (200, found()), "{n}");
    }
    let reused = upstream.requests().iter().filter(|sent| sent.nth_on_connection > 1).count();
    // Bytes were written each time, so each is counted as spent.
    assert_eq!((upstream.calls(), gate.spent().await), (10 + reused, 5_000 * (10 + reused as u64)));
    assert!((1..=10).contains(&reused), "{reused}");
}

#[tokio::test]
async fn h_04_one_decoded_path_for_everything() {
    let upstream = FakeUpstream::start(Step::ok(found())).await;
    let gate = opencage("", "").start(&upstream).await;
    for path in [
        "/geocode/v1/..%2f..%2fmetrics",
        "/geocode/v1/%2e%2e/json",
        "/geocode/v1/../v1/json",
        "/geocode/v1/./json",
        "/geocode/%252e%252e%252fjson",
        "/geocode/v1/..\\json",
        "//geocode/v1/json",
        "/geocode//v1/json",
        "/geocode/v1//json",
        "/GEOCODE/V1/JSON",
        "/geocode/v1/json/",
        "/geocode/v1/json;x",
        "/geocode/v1/json%00",
        "/geocode/v1%2fjson",
        "/geocode/v1/json%",
        "/geocode/v1/json%zz",
        "/geocode/v1/%ff",
        "/metrics",
        "/v1/status",
        "/healthz",
    ] {
        let get = format!("GET {path}?q=Lyon HTTP/1.1\r\nHost: gate\r\nX-Api-Key: {KEY}\r\nConnection: close\r\n\r\n");
        let replies = exchange(gate.addr, get).await;
        let statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
        assert!(statuses == [404] || statuses == [400], "{path}: {replies:?}");
        assert!(
            replies.iter().all(|reply| !reply.text().contains("tollgate_") && !reply.text().contains("\"generation\"")),
            "{path}"
        );
    }
    let bad = Some("tollgate; details=\"invalid_question\"");
    for (path, details) in [("%6ason?q=Lyon", None), ("json?q=%ff%fe", bad), ("json?q=%zz", bad), ("json?q=%", bad)] {
        let get = format!("GET /geocode/v1/{path} HTTP/1.1\r\nHost: gate\r\nX-Api-Key: {KEY}\r\nConnection: close\r\n\r\n");
        let replies = exchange(gate.addr, get).await;
        assert_eq!(replies.first().unwrap().header("proxy-status"), details, "{path}");
    }
    // `%6a` is `j`: the same route, the same key.
    assert!(gate.get(GEO).await.header("cache-status").unwrap().contains("hit"));
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

/// A queue that overflows drops the SYN, and the client waits a second before it sends it again. This test's one thread connects
/// without letting the gateway accept, so the queue has to hold them all.
#[tokio::test]
async fn h_05_a_burst_of_connects_waits_in_the_queue() {
    let upstream = FakeUpstream::start(Step::ok(json!({ "routes": [{}] }))).await;
    let gate = native("").start(&upstream).await;
    let connect = |n| {
        let connected = std::net::TcpStream::connect_timeout(&gate.addr, Duration::from_millis(500));
        connected.unwrap_or_else(|error| panic!("connection {n}: {error}"))
    };
    let burst: Vec<_> = (0..300).map(connect).collect();
    drop(burst);
    assert_eq!((upstream.calls(), gate.spent().await), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h_05_slow_heads_and_bodies_hold_nothing_up() {
    let upstream = FakeUpstream::start(Step::ok(json!({ "routes": [{}] }))).await;
    let times = "head_timeout = \"1s\"\nbody_timeout = \"1s\"\nidle_timeout = \"1s\"";
    let limits = "limits = { caller = { burst = 400, rate = \"1/h\" } }";
    let gate = native(limits).server(times).start(&upstream).await;
    let head = format!("POST {NATIVE} HTTP/1.1\r\nHost: gate\r\nX-Api-Key: {KEY}\r\n");
    let full = format!("{head}X-Goog-FieldMask: a\r\nContent-Type: application/json\r\nContent-Length: 60\r\n\r\n");
    let slow = join_all((0..300).map(|n| {
        let (head, full, addr) = (head.clone(), full.clone(), gate.addr);
        async move {
            let began = Instant::now();
            let mut raw = Raw::connect(addr).await;
            let start = [String::new(), head, full][n % 3].clone();
            raw.send(&start[..start.len().saturating_sub(n % 2)]).await;
            for _ in 0..2 {
                tokio::time::sleep(Duration::from_millis(400)).await;
                if n % 3 > 0 {
                    raw.send("x").await;
                }
            }
            raw.rest().await;
            began.elapsed()
        }
    }));
    let client = gate.client.clone().with("x-goog-fieldmask", "routes.duration");
    let normal = async {
        for n in 0..6 {
            let began = Instant::now();
            let reply = client
                .post(NATIVE, json!({ "origin": { "address": format!("Town {n}") }, "destination": { "address": "B 1" } }))
                .await;
            assert_eq!(reply.status, 200);
            assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
            // A body that never came takes no token: buckets are debited when the question is known.
            assert!(reply.header("ratelimit").unwrap().contains(&format!("r={}", 399 - n)), "{reply:?}");
            tokio::time::sleep(Duration::from_millis(150)).await;
        }
    };
    let (ends, ()) = tokio::join!(slow, normal);
    let longest = ends.iter().max().unwrap();
    assert!(*longest < Duration::from_secs(6), "{longest:?}");
    assert_eq!((upstream.calls(), gate.spent().await), (6, 30_000));
    // They do not delay the end either.
    let mut slow = Vec::new();
    for start in ["", &head, &full] {
        let mut raw = Raw::connect(gate.addr).await;
        raw.send(start).await;
        slow.push(raw);
    }
    let began = Instant::now();
    gate.stop().await;
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}

#[tokio::test]
async fn h_05_what_is_too_large_is_said_to_be() {
    let upstream = FakeUpstream::start(Step::ok(json!({ "routes": [{}] }))).await;
    let gate = native("max_body = \"1KiB\"").start(&upstream).await;
    let start = format!("POST {NATIVE} HTTP/1.1\r\nHost: gate\r\nX-Api-Key: {KEY}\r\nX-Goog-FieldMask: a\r\n");
    let many = "x-a: 1\r\n".repeat(2_000);
    let big = "x".repeat(64 << 10);
    let long = "y".repeat(100 << 10);
    let large = format!("{POINTS}{}", " ".repeat(2_000));
    for (status, request) in [
        (431, format!("{start}X-Big: {big}\r\n\r\n")),
        (431, format!("{start}{many}\r\n")),
        (414, format!("GET {NATIVE}?q={long} HTTP/1.1\r\nHost: gate\r\n\r\n")),
        (413, format!("{start}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{large}", large.len())),
        (
            413,
            format!(
                "{start}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{large}\r\n0\r\n\r\n",
                large.len()
            ),
        ),
    ] {
        let replies = exchange(gate.addr, request).await;
        assert_eq!(replies.len(), 1, "{status}: {replies:?}");
        // A native route wears the provider's shape once the route is known.
        let large = replies[0].header("proxy-status") == Some("tollgate; details=\"body_too_large\"");
        assert!(replies[0].status == status || (status == 413 && large), "{status}: {replies:?}");
    }
    assert_eq!((upstream.calls(), gate.spent().await), (0, 0));
}

#[tokio::test]
async fn what_the_parser_refuses_has_an_id_and_is_kept_by_nobody() {
    let upstream = FakeUpstream::start(Step::ok(found())).await;
    let gate = opencage("", "").start(&upstream).await;
    for head in [
        "GET /x HTTP/1.1\r\nHost : gate\r\n\r\n",
        "GET /x HTTP/1.1\r\nHost: gate\r\nX: a\r\n b\r\n\r\n",
        "GET /x HTTP/1.1\r\nHost: gate\r\nX: a\0b\r\n\r\n",
        "GET /x HTTP/1.1\r\nHost: gate\r\nContent-Length: +5\r\n\r\n",
        "GET /x HTTP/9.1\r\nHost: gate\r\n\r\n",
        "GET x HTTP/1.1\r\nHost: gate\r\n\r\n",
    ] {
        // Also behind a good one, on the same connection.
        for (before, at) in [(String::new(), 0), (format!("GET {GEO} HTTP/1.1\r\nHost: gate\r\nX-Api-Key: {KEY}\r\n\r\n"), 1)] {
            let replies = exchange(gate.addr, format!("{before}{head}GET {GEO} HTTP/1.1\r\nHost: gate\r\n\r\n")).await;
            assert_eq!(replies.len(), at + 1, "{head:?}: {replies:?}");
            let reply = &replies[at];
            assert_eq!((reply.status, reply.header("connection")), (400, Some("close")), "{head:?}");
            assert_eq!(reply.header("cache-control"), Some("private, no-store"), "{head:?}");
            assert!(reply.header("x-request-id").is_some_and(|id| !id.is_empty()), "{head:?}");
        }
    }
    still_serves(&gate, &upstream, GEO, 1).await;
}

#[tokio::test]
async fn head_over_http2_has_a_length_and_no_body() {
    let upstream = FakeUpstream::start(Step::ok(found())).await;
    let gate = opencage("", "cache = { found = \"1h\" }").start(&upstream).await;
    let whole = gate.get(GEO).await.text().len();
    let http2 = reqwest::Client::builder().http2_prior_knowledge().no_proxy().build().unwrap();
    for path in [GEO, "/nowhere"] {
        let reply = http2.head(format!("http://{}{path}", gate.addr)).header("x-api-key", KEY).send().await.unwrap();
        let length: usize = reply.headers()["content-length"].to_str().unwrap().parse().unwrap();
        assert!(if path == GEO { length == whole } else { length > 0 });
        assert_eq!(reply.bytes().await.unwrap().len(), 0, "{path}");
    }
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn requests_for_no_route_are_counted_as_such() {
    let upstream = FakeUpstream::start(Step::ok(found())).await;
    let gate = opencage("", "").start(&upstream).await;
    for path in ["/nowhere", "/else/where", "/%zz"] {
        assert!(gate.get(path).await.status >= 400);
    }
    assert_eq!(gate.client.send(http::Method::DELETE, GEO, "".into()).await.status, 405);
    for (code, count) in [("not_found", 2), ("bad_request", 1), ("method_not_allowed", 1)] {
        let label = format!("route=\"-\",outcome=\"refused\",code=\"{code}\"");
        assert_eq!(gate.metric("tollgate_requests_total", &label).await, count, "{code}");
    }
    assert_eq!((upstream.calls(), gate.spent().await), (0, 0));
}
