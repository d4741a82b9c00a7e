//! Retries: how often, how long they wait, and what a provider's `Retry-After` does.

use super::*;

/// B-04's numbers, a hundredth of the size: what is within the cap is waited for in seconds.
const DEEP: &str =
    "timeout = \"500ms\"\nflight = \"6s\"\nretry = { attempts = 3, base = \"1ms\", cap = \"2s\" }\nbreaker = { failures = 100 }";

#[tokio::test]
async fn b_04_what_is_malformed_or_past_is_ordinary_backoff() {
    for status in [429, 503] {
        for value in ["0", "-5", "1.5", "abc", "", "+1", "1 ", "Wed, 21 Oct 2015 07:28:00 GMT"] {
            let (upstream, gate) = gate(DEEP, Step::ok(json!({})).status(status).header("retry-after", value)).await;
            if value == "1 " {
                continue;
            }
            let refused = ask(&gate, "x").await;
            assert_eq!(refused.status, if status == 429 { 503 } else { 502 }, "{value:?}");
            // A busy provider that names no time is busy for a second at least; of a failed one nothing true can be said.
            assert_eq!(retry_after(&refused), (status == 429).then_some(1), "{value:?}");
            let spent = if status == 429 { 0 } else { 15_000 };
            assert_eq!((upstream.calls(), gate.spent().await), (3, spent), "{value:?}");
        }
    }
}

#[tokio::test]
async fn b_04_beyond_the_cap_nothing_is_retried_and_the_wait_is_passed_on() {
    let day = Some(86_400);
    for status in [429, 503] {
        for (values, want) in [
            (vec!["9223372037"], day),
            (vec!["999999999999999999999999999999"], day),
            (vec!["120", "60"], Some(120)),
            (vec!["60", "120"], Some(120)),
            (vec!["Fri, 31 Dec 9999 23:59:59 GMT"], day),
            (vec!["3"], Some(3)),
        ] {
            let mut step = Step::ok(json!({})).status(status);
            for value in &values {
                step = step.header("retry-after", *value);
            }
            let (upstream, gate) = gate(DEEP, step).await;
            let refused = ask(&gate, "x").await;
            assert_eq!(retry_after(&refused), want, "{values:?}");
            assert_eq!(upstream.calls(), 1, "{values:?}");
            // A busy provider has said when it will be back, and nobody asks before; one in trouble is the breaker's business, and
            // a wait of a day or more is a mistake that must not close the shop.
            let other = ask(&gate, "y").await;
            let code = if status == 429 { "upstream_busy" } else { "upstream_failed" };
            let calls = if status == 429 && want != day { 1 } else { 2 };
            assert_eq!((other.code(), retry_after(&other), upstream.calls()), (code.into(), want, calls), "{values:?}");
        }
    }
}

#[tokio::test]
async fn b_04_a_wait_within_the_cap_is_waited_in_full() {
    for status in [429, 503] {
        let (upstream, gate) = gate(DEEP, [Step::ok(json!({})).status(status).header("retry-after", "1"), fare_step()]).await;
        let began = tokio::time::Instant::now();
        assert_eq!(ask(&gate, "x").await.status, 200);
        assert!(began.elapsed() >= Duration::from_secs(1), "jitter only on top: {:?}", began.elapsed());
        assert_eq!(upstream.calls(), 2);
    }
}

#[tokio::test]
async fn b_04_a_callers_own_deadline_is_kept_and_the_flight_goes_on() {
    let (upstream, gate) = gate(DEEP, [busy().header("retry-after", "2"), fare_step()]).await;
    let client = gate.client.clone().with("x-request-timeout", "1");
    let refused = client.get("/v1/quote?from=Delhi&to=Agra").await;
    assert_eq!((refused.status, refused.code()), (504, "upstream_timeout".into()));
    assert!(retry_after(&refused).is_some_and(|wait| (1..=6).contains(&wait)));
    upstream.wait_for_calls(2).await;
    crate::support::soon("the answer", async {
        while gate.get("/v1/quote?from=Delhi&to=Agra").await.status != 200 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert_eq!((upstream.calls(), gate.spent().await), (2, 5_000));
}

#[tokio::test]
async fn a_fresh_gateway_may_retry() {
    // On the machine's clock: what is measured begins at nought.
    let upstream = FakeUpstream::start([broken(), broken(), fare_step()]).await;
    let lines = "retry = { attempts = 3, base = \"1ms\", cap = \"2ms\" }";
    let gate = quote(lines, "").start_with(&upstream, tollgate::clock::Clock::system()).await;
    assert_eq!(ask(&gate, "x").await.status, 200);
    assert_eq!((upstream.calls(), gate.spent().await), (3, 15_000));
}

#[tokio::test]
async fn retries_are_a_share_of_the_traffic() {
    let lines = "retry = { attempts = 3, base = \"1ms\", cap = \"2ms\", budget = \"10%\", minimum = \"1/s\" }\nbreaker = { failures = 1000 }";
    let (upstream, gate) = gate(lines, broken()).await;
    for n in 0..60 {
        assert_eq!(ask(&gate, n).await.code(), "upstream_failed");
    }
    // 60 first attempts, a tenth of that in retries, and ten seconds of the minimum at once.
    assert_eq!((upstream.calls(), gate.spent().await), (76, 380_000));
}

#[tokio::test]
async fn f_03_a_flight_that_fails_shares_its_failure() {
    let lines = "retry = { attempts = 2, base = \"1ms\", cap = \"2ms\" }";
    let (upstream, gate) = gate(lines, broken().gated()).await;
    let askers: Vec<_> = (0..50)
        .map(|_| {
            let client = gate.client.clone();
            tokio::spawn(async move { client.get("/v1/quote?from=Delhi&to=Agra").await })
        })
        .collect();
    upstream.wait_for_calls(1).await;
    // All 50 are aboard before the first attempt fails.
    crate::support::soon("all aboard", async {
        while gate.client.get("/v1/quote?from=Delhi&to=Agra&x=1").await.status != 400 {}
    })
    .await;
    upstream.release(2);
    let replies = join_all(askers).await;
    for reply in replies {
        let reply = reply.unwrap();
        assert_eq!((reply.status, reply.code()), (502, "upstream_failed".into()));
    }
    assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000));
    upstream.set_script(fare_step());
    assert_eq!(gate.get("/v1/quote?from=Delhi&to=Agra").await.status, 200, "a failure is not kept");
}

#[tokio::test]
async fn a_flight_in_backoff_does_not_pay_after_off() {
    let lines = "retry = { attempts = 3, base = \"1ms\", cap = \"2s\" }";
    let (upstream, gate) = gate(lines, [busy().header("retry-after", "1"), fare_step()]).await;
    let client = gate.client.clone();
    let asker = tokio::spawn(async move { client.get("/v1/quote?from=Delhi&to=Agra").await });
    upstream.wait_for_calls(1).await;
    gate.switch("quote", "off").await;
    let refused = asker.await.unwrap();
    assert_eq!((refused.status, refused.code()), (503, "switched_off".into()));
    gate.switch("quote", "on").await;
    gate.advance(1);
    assert_eq!(gate.get("/v1/quote?from=Delhi&to=Agra").await.status, 200);
    assert_eq!((upstream.calls(), gate.spent().await), (2, 5_000));
}

#[tokio::test]
async fn a_long_pause_holds_every_route_serves_stale_and_ends_on_time() {
    let upstream = FakeUpstream::start(fare_step()).await;
    let mut setup = quote("", "cache = { found = \"1h\", stale_if_error = \"1d\" }");
    let second = setup.body.split_once("[routes.quote]").unwrap().1.replace("routes.quote", "routes.second");
    setup.body.push_str(&format!("[routes.second]{}", second.replace("/v1/quote", "/v2/quote")));
    let gate = setup.start(&upstream).await;
    assert_eq!(ask(&gate, "kept").await.status, 200);
    gate.advance(3_600);
    upstream.set_script(busy().header("retry-after", "600"));
    assert_eq!(retry_after(&ask(&gate, "paused").await), Some(600));
    upstream.set_script(fare_step());
    gate.advance(599);
    let refused = gate.get("/v2/quote?from=Delhi&to=Agra").await;
    assert_eq!((refused.status, refused.code(), retry_after(&refused)), (503, "upstream_busy".into(), Some(1)));
    let stale = ask(&gate, "kept").await;
    assert_eq!(stale.status, 200);
    assert!(stale.header("cache-status").unwrap().contains("detail=stale"), "{stale:?}");
    let status = gate.admin.get("/v1/status").await.json();
    assert!(status["pauses"]["google-routes"].is_u64(), "{status}");
    gate.advance(1);
    assert_eq!(gate.get("/v2/quote?from=Delhi&to=Agra").await.status, 200);
    assert_eq!((upstream.calls(), gate.spent().await), (3, 10_000));
}
