//! The main job in one breath: asked once, answered twice, paid once.

use crate::support::gate::{encode, found, nothing, opencage, quote};
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

#[tokio::test]
async fn five_spellings_of_one_address_cost_one_call() {
    let upstream = FakeUpstream::start(Step::ok(found())).await;
    let gate = opencage("", "").start(&upstream).await;
    for (index, spelling) in [
        "Chambéry, France",
        "Chambe\u{301}ry, France",
        "  CHAMBÉRY,\u{a0}\u{a0}France",
        "chambéry , france",
        "Chambéry\u{200b}, France",
    ]
    .into_iter()
    .enumerate()
    {
        let reply = gate.get(&format!("/geocode/v1/json?language=fr&q={}", encode(spelling))).await;
        assert_eq!((reply.status, reply.json()), (200, found()), "{spelling}");
        let reply = gate.get(&format!("/geocode/v1/json?q={}&language=FR", encode(spelling))).await;
        assert!(reply.header("cache-status").unwrap().starts_with("tollgate; hit"), "{index}: {reply:?}");
    }
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn a_fare_is_asked_once_either_way_round() {
    let answer = serde_json::json!({ "routes": [{ "distanceMeters": 280_000, "duration": "17000s" }], "geocodingResults": {} });
    let upstream = FakeUpstream::start(Step::ok(answer)).await;
    let gate = quote("", "").start(&upstream).await;
    for path in ["/v1/quote?from=Delhi&to=Jaipur", "/v1/quote?to=Delhi&from=Jaipur", "/v1/quote?to=jaipur&from=DELHI"] {
        let reply = gate.get(path).await;
        assert_eq!(reply.json(), serde_json::json!({ "distance_meters": 280_000, "duration": "17000s" }));
    }
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn a_question_without_an_answer_is_asked_once_in_its_lifetime() {
    let upstream = FakeUpstream::start(Step::ok(nothing())).await;
    let gate = opencage("", "").start(&upstream).await;
    for _ in 0..3 {
        assert_eq!(gate.get("/geocode/v1/json?q=Nowhere").await.json(), nothing());
    }
    assert_eq!(upstream.calls(), 1);
    // Its six hours, and the hour in which it would be served stale while it is refreshed.
    gate.advance(7 * 3600);
    gate.get("/geocode/v1/json?q=Nowhere").await;
    assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000));
}
