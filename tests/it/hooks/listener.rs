//! The listener itself: what it answers, when there is none, and how it ends.

use http::Method;

use super::*;
use crate::support::process::Process;
use crate::support::raw::exchange;

#[tokio::test]
async fn there_is_one_call_and_nothing_else() {
    let (_upstream, gate) = start(hooked("")).await;
    let hooks = hooks_of(&gate).with("authorization", &format!("Bearer {}", sign(&claims(&gate.clock))));
    for path in ["/", "/google-budget/", "/google-budget/x", "/Google-Budget", "/healthz", "/metrics", "/v1/status", ASK] {
        for method in [Method::GET, Method::POST] {
            assert_eq!(hooks.send(method, path, "".into()).await.status, 404, "{path}");
        }
    }
    for method in [Method::GET, Method::HEAD, Method::PUT, Method::DELETE, Method::OPTIONS] {
        let reply = hooks.send(method, "/google-budget", "".into()).await;
        assert_eq!((reply.status, reply.header("allow")), (405, Some("POST")));
    }
    for client in [&gate.client, &gate.admin] {
        assert_eq!(client.post("/google-budget", json!({})).await.status, 404, "on no other listener");
    }
}

/// The same HTTP edge as the other listeners.
#[tokio::test]
async fn the_edge_is_in_front() {
    let (_upstream, gate) = start(hooked("").server("max_head = \"8KiB\"")).await;
    let addr = gate.running.as_ref().unwrap().hooks.unwrap();
    let post = "POST /google-budget HTTP/1.1\r\n";
    for (head, status) in [
        ("Content-Length: 0\r\n".to_owned(), 400),
        ("Host: a\r\nHost: b\r\nContent-Length: 0\r\n".to_owned(), 400),
        ("Host: a\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n".to_owned(), 400),
        (format!("Host: a\r\nX: {}\r\n", "x".repeat(9 << 10)), 431),
    ] {
        assert_eq!(exchange(addr, format!("{post}{head}\r\n")).await[0].status, status, "{}", &head[..20]);
    }
}

#[tokio::test]
async fn without_the_section_there_is_no_listener() {
    let (_upstream, gate) = start(quote("", "")).await;
    assert_eq!(gate.running.as_ref().unwrap().hooks, None);
}

#[tokio::test]
async fn a_reload_changes_all_but_the_address() {
    let (_upstream, gate) = start(hooked("")).await;
    let path = gate.config_path();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace(EMAIL, "other@project.iam.gserviceaccount.com")).unwrap();
    assert_eq!(gate.admin.post("/v1/reload", json!({})).await.status, 200);
    assert_eq!(tell(&gate, NOVEMBER, "120", "100").await, 403);
    std::fs::write(&path, text.replace("jwks = ", "at = 2, jwks = ")).unwrap();
    assert_eq!(gate.admin.post("/v1/reload", json!({})).await.status, 200);
    assert_eq!((tell(&gate, NOVEMBER, "120", "100").await, state(&gate).await), (204, "on".into()));
    // Another share of the same period is another order.
    std::fs::write(&path, text.replace("jwks = ", "at = 1.1, jwks = ")).unwrap();
    assert_eq!(gate.admin.post("/v1/reload", json!({})).await.status, 200);
    assert_eq!((tell(&gate, NOVEMBER, "120", "100").await, state(&gate).await), (204, "cached".into()));
    std::fs::write(&path, text.split("[hooks]").next().unwrap()).unwrap();
    assert_eq!(gate.admin.post("/v1/reload", json!({})).await.status, 200);
    assert_eq!(tell(&gate, NOVEMBER, "120", "100").await, 404);
}

#[tokio::test]
async fn serve_says_where_it_listens_and_what_it_stopped_and_ends_in_order() {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("tollgate.toml");
    std::fs::write(&config, hooked("").render(dir.path(), &upstream.url())).unwrap();
    let mut process = Process::start(&["serve", "-c", config.to_str().unwrap()], &[("TOLLGATE_LOG", "tollgate::audit=info")]);
    let addr = process.listening("hooks").await;
    let token = sign(&claims(&Clock::system()));
    let hooks = Client::new(format!("http://{addr}")).with("authorization", &format!("Bearer {token}"));
    let over = push_of("1", &notice(NOVEMBER, "120", "100"));
    assert_eq!(hooks.post("/google-budget", over.clone()).await.status, 204);
    let line = process.err.wait_for("a switch was set").await;
    for part in ["tollgate::audit", "google-budget", "120 of 100 USD", "Cached", "stays=true"] {
        assert!(line.contains(part), "{part}: {line}");
    }
    process.signal("TERM");
    assert_eq!(process.ended().await, Some(0));
    assert!(hooks.try_send(Method::POST, "/google-budget", over.to_string().into()).await.is_err());
    assert!(!process.err.all().contains(&token), "no token is logged");
}
