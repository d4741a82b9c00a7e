//! What is kept, for how long, and what never is.

use serde_json::json;

use crate::support::gate::{Gate, SECRET, encode, found, nothing, opencage, quote};
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

const GEO: &str = "/geocode/v1/json?q=Lyon";
const QUOTE: &str = "/v1/quote?from=Delhi&to=Jaipur";
const CACHE: &str = "cache = { found = \"60s\", not_found = \"2s\", weak = \"20s\", rejected = \"5s\" }";

fn fare(meters: u64) -> Step {
    Step::ok(json!({ "routes": [{ "distanceMeters": meters, "duration": "60s" }] }))
}

async fn meters(gate: &Gate) -> serde_json::Value {
    gate.get(QUOTE).await.json()["distance_meters"].clone()
}

#[tokio::test]
async fn c_01_a_200_that_means_no_is_an_error_and_is_not_kept() {
    let quota = json!({ "results": [], "status": { "code": 429, "message": "quota exceeded" } });
    let denied = json!({ "results": [], "status": { "code": 403, "message": "blocked" } });
    let html = Step::ok(json!({})).header("content-type", "text/html").body("<html>sign in to the hotel's network</html>");
    for (step, code, status) in [
        (Step::ok(quota), "upstream_busy", 429),
        (Step::ok(denied), "upstream_denied", 429),
        (html, "upstream_failed", 429),
        (Step::ok(json!({})).body(""), "upstream_failed", 429),
        (Step::ok(json!({ "error_message": "no" })), "upstream_failed", 429),
    ] {
        let upstream = FakeUpstream::start([step, Step::ok(found())]).await;
        let gate = opencage("", "").start(&upstream).await;
        let refused = gate.get(GEO).await;
        let details = format!("tollgate; details=\"{code}\"");
        assert_eq!((refused.status, refused.header("proxy-status")), (status, Some(&*details)), "{code}: {refused:?}");
        assert_eq!(refused.header("cache-status"), None, "never on a refusal");
        let answered = gate.get(GEO).await;
        assert_eq!((answered.json(), answered.header("cache-status")), (found(), Some("tollgate; fwd=miss; stored")));
        assert!(gate.get(GEO).await.header("cache-status").unwrap().starts_with("tollgate; hit"), "{code}");
        assert_eq!(upstream.calls(), 2, "{code}");
    }
}

#[tokio::test]
async fn c_01_a_refused_credential_is_not_tried_again() {
    let upstream = FakeUpstream::start(Step::ok(json!({ "error": "no" })).status(403)).await;
    let gate = quote("retry = { attempts = 3 }", "").start(&upstream).await;
    let reply = gate.get(QUOTE).await;
    assert_eq!((reply.status, &reply.json()["code"]), (502, &json!("upstream_denied")));
    assert_eq!((upstream.calls(), gate.spent().await), (1, 0), "a refused credential is not billed");
}

#[tokio::test]
async fn c_02_half_a_body_is_never_an_answer() {
    let list = r#"{"routes":[{"distanceMeters":1,"duration":"1s"},"#;
    let whole = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{}", "x".repeat(400));
    let until_close = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{list}");
    let in_a_list = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{list}\r\n",
        list.len()
    );
    for step in [Step::cut(40).chunked(), Step::cut(40), Step::raw(whole), Step::raw(until_close), Step::raw(in_a_list)] {
        let upstream = FakeUpstream::start([step, fare(7)]).await;
        let gate = quote("", CACHE).start(&upstream).await;
        let reply = gate.get(QUOTE).await;
        assert_eq!((reply.status, &reply.json()["code"]), (502, &json!("upstream_failed")));
        assert_eq!(meters(&gate).await, 7);
        assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000), "each attempt is spent");
    }
}

#[tokio::test]
async fn c_02_a_part_that_nobody_asked_for_is_no_answer() {
    for route in ["native", "own"] {
        let (part, path, status) = match route {
            "native" => (Step::ok(found()), GEO, 429),
            _ => (fare(1), QUOTE, 502),
        };
        let part = part.status(206).header("content-range", "bytes 0-99/1000");
        let upstream = FakeUpstream::start([part.clone(), part.status(200)]).await;
        let setup = if route == "native" { opencage("", "") } else { quote("", "") };
        let gate = setup.start(&upstream).await;
        let refused = gate.get(path).await;
        assert_eq!((refused.status, refused.header("cache-status")), (status, None), "{refused:?}");
        assert_eq!(gate.get(path).await.status, 200);
        assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000), "each attempt is spent");
    }
}

#[tokio::test]
async fn a_rejection_that_repeats_the_request_is_paid_for_once() {
    let echo = json!({ "results": [], "status": { "code": 400, "message": format!("no such q: /?q=x&key={SECRET}") } });
    let upstream = FakeUpstream::start(Step::ok(echo).status(400)).await;
    let gate = opencage("", "").start(&upstream).await;
    for _ in 0..2 {
        let reply = gate.get(GEO).await;
        assert_eq!(reply.status, 400, "{reply:?}");
        assert!(reply.text().contains("no such q: /?q=x&key=[removed]"), "{reply:?}");
    }
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn c_04_what_is_for_one_asker_goes_to_no_other() {
    for (name, value) in [
        ("cache-control", "private"),
        ("cache-control", "max-age=60, no-store"),
        ("set-cookie", "s=1"),
        ("vary", "Origin"),
        ("vary", "*"),
    ] {
        let step = |n: u64| fare(n).header(name, value);
        let upstream = FakeUpstream::start([step(1), step(2), step(3)]).await;
        let gate = quote("respect_cache_control = true", CACHE).start(&upstream).await;
        let other = gate.other();
        assert_eq!(meters(&gate).await, 1, "{value}");
        let second = other.get(QUOTE).await;
        assert_eq!((&second.json()["distance_meters"], second.header("set-cookie")), (&json!(2), None), "{value}");
        assert_eq!(second.header("cache-status"), Some("tollgate; fwd=miss"), "{value}");
        assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000), "{value}");
    }
}

#[tokio::test]
async fn c_04_an_answer_to_the_gateways_own_question_is_shared() {
    // Our credential asked, not the caller's: what varies by what we always send alike varies by nothing.
    let step = fare(1).header("vary", "Accept-Encoding, X-Goog-FieldMask").header("x-tracking", "u-1").header("etag", "\"a\"");
    let upstream = FakeUpstream::start(step).await;
    let gate = quote("respect_cache_control = true", CACHE).start(&upstream).await;
    gate.get(QUOTE).await;
    let second = gate.other().get(QUOTE).await;
    assert!(second.header("cache-status").unwrap().starts_with("tollgate; hit; ttl="));
    assert_eq!((second.header("x-tracking"), second.header("vary"), second.header("etag")), (None, None, None));
    assert_eq!(second.header("cache-control"), Some("private, no-store"));
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn c_04_a_provider_that_marks_everything_private_is_kept_where_the_preset_says_so() {
    let upstream = FakeUpstream::start(fare(1).header("cache-control", "private")).await;
    let gate = quote("", CACHE).start(&upstream).await;
    assert_eq!((meters(&gate).await, meters(&gate).await), (json!(1), json!(1)));
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn c_05_a_wrong_nothing_is_forgotten_soon() {
    let upstream = FakeUpstream::start([Step::ok(json!({})), fare(9)]).await;
    let gate = quote("", CACHE).start(&upstream).await;
    let first = gate.get(QUOTE).await;
    assert_eq!((first.status, first.json()["distance_meters"].is_null()), (200, true));
    gate.advance(1);
    let hit = gate.get(QUOTE).await;
    assert_eq!((hit.header("cache-status"), hit.header("age")), (Some("tollgate; hit; detail=negative; ttl=1"), Some("1")));
    gate.advance(2);
    assert_eq!(meters(&gate).await, 9);
    assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000));
}

#[tokio::test]
async fn c_05_trouble_is_no_nothing() {
    for step in [Step::ok(nothing()).status(503), Step::close(), Step::hang()] {
        let upstream = FakeUpstream::start([step, Step::ok(found())]).await;
        let gate = opencage("timeout = \"200ms\"\nflight = \"1s\"", "").start(&upstream).await;
        assert_eq!(gate.get(GEO).await.status, 429);
        assert_eq!(gate.get(GEO).await.json(), found());
        assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000));
    }
    // A host that is not there: nothing is sent, nothing is spent.
    let gate = quote("", CACHE).start_at("https://nowhere.invalid").await;
    let refused = gate.get(QUOTE).await;
    assert_eq!((refused.status, &refused.json()["code"]), (502, &json!("upstream_failed")));
    assert_eq!(gate.get(QUOTE).await.header("cache-status"), None);
    assert_eq!(gate.spent().await, 0);
}

#[tokio::test]
async fn every_outcome_has_a_lifetime_of_its_own() {
    let weak = json!({ "routes": [{ "distanceMeters": 1, "duration": "1s" }], "fallbackInfo": {} });
    let bad = Step::ok(json!({ "error": "bad" })).status(400);
    for (step, lifetime, status) in [(fare(1), 60, 200), (Step::ok(json!({})), 2, 200), (Step::ok(weak), 20, 200), (bad, 5, 400)]
    {
        let upstream = FakeUpstream::start(step).await;
        let gate = quote("", &format!("on_weak = \"pass\"\n{CACHE}")).start(&upstream).await;
        for _ in 0..2 {
            assert_eq!(gate.get(QUOTE).await.status, status);
        }
        gate.advance(lifetime - 1);
        gate.get(QUOTE).await;
        assert_eq!(upstream.calls(), 1, "{lifetime}");
        gate.advance(1);
        gate.get(QUOTE).await;
        assert_eq!(upstream.calls(), 2, "{lifetime}");
        assert_eq!(gate.spent().await, 10_000);
    }
}

#[tokio::test]
async fn an_answers_own_age_counts_and_is_told() {
    let upstream = FakeUpstream::start(fare(1).header("age", "45").header("date", "Thu, 01 Jan 1970 00:00:00 GMT")).await;
    let gate = quote("", CACHE).start(&upstream).await;
    gate.get(QUOTE).await;
    gate.advance(10);
    let hit = gate.get(QUOTE).await;
    assert_eq!((hit.header("age"), hit.header("cache-status")), (Some("55"), Some("tollgate; hit; ttl=5")));
    gate.advance(5);
    gate.get(QUOTE).await;
    assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000));

    // Older than we would keep it: it is passed on and not kept.
    let upstream = FakeUpstream::start(fare(1).header("age", "60")).await;
    let gate = quote("", CACHE).start(&upstream).await;
    gate.get(QUOTE).await;
    assert_eq!(gate.get(QUOTE).await.header("cache-status"), Some("tollgate; fwd=miss"));
    assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000));
}

#[tokio::test]
async fn a_weak_answer_is_refused_or_passed_and_paid_once_either_way() {
    let weak = json!({ "routes": [{ "distanceMeters": 1, "duration": "1s" }], "geocodingResults": { "origin": { "partialMatch": true } } });
    let upstream = FakeUpstream::start(Step::ok(weak.clone())).await;
    let gate = quote("", CACHE).start(&upstream).await;
    for _ in 0..3 {
        let refused = gate.get(QUOTE).await;
        assert_eq!((refused.status, &refused.json()["code"]), (422, &json!("weak_answer")));
        assert_eq!((refused.header("cache-status"), refused.header("age")), (None, None));
    }
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));

    let country = json!({ "results": [{ "confidence": 1, "components": { "_type": "country" } }], "status": { "code": 200 } });
    let upstream = FakeUpstream::start(Step::ok(country.clone())).await;
    let gate = opencage("", "").start(&upstream).await;
    for _ in 0..3 {
        assert_eq!((gate.get(GEO).await.status, gate.get(GEO).await.json()), (200, country.clone()));
    }
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn curated_answers_are_free_in_any_spelling_and_any_order() {
    let upstream = FakeUpstream::start(fare(1)).await;
    let answer = json!({ "distance_meters": 5, "duration": "by hand" });
    let line = json!({ "question": { "from": "JAIPUR", "to": "Delhi " }, "answer": answer });
    let gone = json!({ "question": { "from": "Atlantis", "to": "Delhi" }, "answer": { "sunk": true }, "status": 404 });
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("{line}\n\n{gone}\n")).unwrap();
    let route = format!("curated = \"{}\"\n{CACHE}", file.path().display());
    let gate = quote("", &route).start(&upstream).await;
    for path in ["/v1/quote?from=delhi&to=jaipur", "/v1/quote?to=Delhi&from=J%41IPUR"] {
        let reply = gate.get(path).await;
        assert_eq!((reply.status, reply.json()), (200, answer.clone()), "as it was written, not shaped once more");
        assert_eq!((reply.header("cache-status"), reply.header("age")), (Some("tollgate; hit; detail=curated"), None));
    }
    let reply = gate.get("/v1/quote?from=Delhi&to=atlantis").await;
    assert_eq!((reply.status, reply.json()), (404, json!({ "sunk": true })));
    assert_eq!((upstream.calls(), gate.spent().await), (0, 0));
}

#[tokio::test]
async fn what_depends_on_the_moment_is_shared_in_flight_and_never_kept() {
    let setup = crate::support::gate::Setup::new(
        "[providers.google-routes]\npreset = \"google-routes\"\nbase_url = \"{upstream}\"\nkey = \"{secret}\"\nprice = \"0.005 USD\"\n\
         terms_override = \"a test\"\n[routes.native]\nprovider = \"google-routes\"\noperation = \"compute-routes\"\nbudget = \"none\"\n\
         cache = { found = \"30d\" }\n",
    );
    let upstream = FakeUpstream::start(fare(1)).await;
    let gate = setup.start(&upstream).await;
    let client = gate.client.clone().with("x-goog-fieldmask", "routes.duration");
    let ask = |preference: &str| json!({ "origin": { "address": "Delhi" }, "destination": { "address": "Jaipur" }, "routingPreference": preference });
    for (preference, status) in [("TRAFFIC_AWARE", "tollgate; fwd=miss"), ("TRAFFIC_UNAWARE", "tollgate; fwd=miss; stored")] {
        let reply = client.post("/directions/v2:computeRoutes", ask(preference)).await;
        assert_eq!((reply.status, reply.header("cache-status")), (200, Some(status)), "{reply:?}");
    }
    assert_eq!(upstream.calls(), 2);
    client.post("/directions/v2:computeRoutes", ask("TRAFFIC_AWARE_OPTIMAL")).await;
    client.post("/directions/v2:computeRoutes", ask("TRAFFIC_AWARE")).await;
    assert_eq!(upstream.calls(), 4);
    client.post("/directions/v2:computeRoutes", ask("TRAFFIC_UNAWARE")).await;
    assert_eq!((upstream.calls(), gate.spent().await), (4, 20_000));
}

#[tokio::test]
async fn a_route_may_keep_each_callers_answers_apart() {
    let upstream = FakeUpstream::start(Step::ok(found())).await;
    let gate = opencage("", "scope = \"caller\"").start(&upstream).await;
    for client in [&gate.client, &gate.other(), &gate.client, &gate.other()] {
        client.get(GEO).await;
    }
    assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000));
}

#[tokio::test]
async fn a_question_is_kept_whole_whatever_its_length() {
    let upstream = FakeUpstream::start(Step::ok(json!({ "results": [{ "confidence": 9 }], "pad": "x".repeat(700_000) }))).await;
    let gate = opencage("", "").start(&upstream).await;
    let path = format!("/geocode/v1/json?q={}", encode(&"é".repeat(490)));
    let first = gate.get(&path).await;
    assert_eq!((gate.get(&path).await.body, first.status), (first.body, 200));
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}
