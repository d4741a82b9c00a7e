//! Native routes: the provider's shape both ways.

use serde_json::{Value, json};

use super::hit;
use crate::support::client::Client;
use crate::support::routes::{company, compute_routes, routes_found};
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

const PATH: &str = "/directions/v2:computeRoutes";

fn with_mask(client: &Client) -> Client {
    client.clone().with("x-goog-fieldmask", "routes.duration")
}

#[tokio::test]
async fn compute_routes_has_one_form_for_every_spelling_of_a_client() {
    let upstream = FakeUpstream::start(Step::ok(routes_found())).await;
    let gate = compute_routes("", "").start(&upstream).await;
    let client = with_mask(&gate.client);
    for body in [
        json!({ "origin": { "address": "Delhi" }, "destination": { "location": { "latLng": { "latitude": 26.91, "longitude": 75.78 } } },
                "travelMode": "DRIVE", "routingPreference": "TRAFFIC_UNAWARE", "units": "METRIC", "languageCode": "en-US" }),
        json!({ "languageCode": "EN-us", "units": 1, "routingPreference": 1, "travelMode": 1,
                "destination": { "location": { "latLng": { "longitude": "75.7800", "latitude": 26.910_000_1 } } }, "origin": { "address": " delhi " } }),
        json!({ "origin": { "address": "DELHI", "via": false }, "destination": { "location": { "latLng": { "latitude": 26.91, "longitude": 75.78 } } },
                "travelMode": "drive", "routingPreference": "traffic_unaware", "units": "METRIC", "languageCode": "en-US" }),
    ] {
        let reply = client.post(PATH, body.clone()).await;
        assert_eq!((reply.status, reply.json()), (200, routes_found()), "{body}");
        assert_eq!(upstream.calls(), 1, "{body}");
    }
    let last = upstream.last();
    let body: Value = serde_json::from_slice(&last.body).unwrap();
    assert_eq!(
        body,
        json!({ "origin": { "address": "Delhi" }, "destination": { "location": { "latLng": { "latitude": 26.91, "longitude": 75.78 } } },
                "travelMode": "DRIVE", "routingPreference": "TRAFFIC_UNAWARE", "units": "METRIC", "languageCode": "en-US" })
    );
    assert_eq!((last.method.as_str(), last.target.as_str()), ("POST", PATH));
    assert_eq!(
        (last.header("x-goog-fieldmask"), last.header("x-goog-api-key")),
        (Some("routes.duration"), Some(crate::support::gate::SECRET))
    );
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn alt_is_a_variant_of_the_answer() {
    let upstream = FakeUpstream::start(Step::ok(routes_found())).await;
    let gate = compute_routes("", "").start(&upstream).await;
    let client = with_mask(&gate.client);
    let body = json!({ "origin": { "address": "A1" }, "destination": { "address": "B1" } });
    for (query, calls) in [
        ("", 1),
        ("?prettyPrint=false", 1),
        ("?$alt=json%3Benum-encoding=int", 2),
        ("?%24alt=json;enum-encoding=int", 2),
        ("?$alt=json", 3),
    ] {
        assert_eq!(client.post(&format!("{PATH}{query}"), body.clone()).await.status, 200, "{query}");
        assert_eq!(upstream.calls(), calls, "{query}");
    }
    assert_eq!(upstream.requests()[1].target, format!("{PATH}?%24alt=json%3Benum-encoding%3Dint"));
    assert_eq!((upstream.calls(), gate.spent().await), (3, 15_000));
}

#[tokio::test]
async fn an_answer_that_depends_on_the_moment_is_not_kept() {
    let upstream = FakeUpstream::start(Step::ok(routes_found())).await;
    let gate = compute_routes("", "").start(&upstream).await;
    let client = with_mask(&gate.client);
    let spots = json!({ "origin": { "address": "A1" }, "destination": { "address": "B1" } });
    let more = |name: &str, value: Value| {
        let mut body = spots.clone();
        body[name] = value;
        body
    };
    for (index, body) in [
        more("routingPreference", "TRAFFIC_AWARE".into()),
        more("routingPreference", 3.into()),
        more("travelMode", 7.into()),
        more("departureTime", "2027-01-01T08:00:00Z".into()),
    ]
    .into_iter()
    .enumerate()
    {
        for again in 1..3 {
            assert!(!hit(&client.post(PATH, body.clone()).await));
            assert_eq!(upstream.calls(), index * 2 + again, "{body}");
        }
    }
    assert_eq!((upstream.calls(), gate.spent().await), (8, 40_000));
}

#[tokio::test]
async fn a_question_google_would_reject_is_refused_in_googles_shape() {
    let upstream = FakeUpstream::start(Step::ok(routes_found())).await;
    let gate = compute_routes("", "").start(&upstream).await;
    let client = with_mask(&gate.client);
    let (a, b) = (json!({ "address": "A1" }), json!({ "address": "B1" }));
    for (body, code) in [
        (json!({ "origin": a }), "invalid_question"),
        (json!({ "origin": a, "destination": "B1", "travelMode": 5 }), "invalid_question"),
        (json!({ "origin": { "address": "A1", "placeId": "x" }, "destination": b }), "invalid_question"),
        (json!({ "origin": {}, "destination": b }), "invalid_question"),
        (json!({ "origin": null, "destination": b }), "invalid_question"),
        (json!({ "origin": a, "destination": b, "color": "red" }), "unknown_field"),
        (json!({ "origin": a, "destination": b, "routeModifiers": { "avoidSnow": true } }), "unknown_field"),
    ] {
        let reply = client.post(PATH, body.clone()).await;
        let error = &reply.json()["error"];
        assert_eq!((reply.status, &error["code"], &error["status"]), (403, &json!(403), &json!("PERMISSION_DENIED")), "{body}");
        assert!(error["message"].as_str().unwrap().starts_with(&format!("{code}: ")), "{error}");
        assert_eq!(reply.header("proxy-status"), Some(format!("tollgate; details=\"{code}\"").as_str()), "{body}");
        assert_eq!(reply.header("content-type"), Some("application/json"));
    }
    let reply = gate.client.post(PATH, json!({ "origin": a, "destination": b })).await;
    assert_eq!((reply.status, &reply.json()["error"]["message"]), (403, &json!("invalid_question: `mask` is missing")));
    assert_eq!((upstream.calls(), gate.spent().await), (0, 0));
}

#[tokio::test]
async fn a_company_number_has_one_form() {
    let upstream = FakeUpstream::start(Step::ok(json!({ "company_name": "ACME LTD" }))).await;
    let gate = company("", "").start(&upstream).await;
    for number in ["445790", "0445790", "00445790", "44%2057-90", "%EF%BC%94%EF%BC%94%EF%BC%95790"] {
        assert_eq!(gate.get(&format!("/company/{number}")).await.status, 200, "{number}");
        assert_eq!((upstream.calls(), upstream.last().target.as_str()), (1, "/company/00445790"), "{number}");
    }
    for number in ["sc123456", "SC%20123456"] {
        assert_eq!(gate.get(&format!("/company/{number}")).await.status, 200, "{number}");
        assert_eq!((upstream.calls(), upstream.last().target.as_str()), (2, "/company/SC123456"), "{number}");
    }
    for number in ["SC1234", "123456789", "-", "0044579%C3%A9"] {
        let refused = gate.get(&format!("/company/{number}")).await;
        assert_eq!((refused.status, refused.code().as_str()), (403, "invalid_question"), "{number}");
        assert_eq!(refused.json(), json!({ "errors": [{ "type": "ch:service", "error": "invalid_question" }] }), "{number}");
    }
    assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000));
}

#[tokio::test]
async fn companies_house_is_left_alone_until_its_window_is_over() {
    let missing = json!({ "errors": [{ "type": "ch:service", "error": "company-profile-not-found" }] });
    let upstream = FakeUpstream::start([Step::ok(json!({})).status(429), Step::ok(missing.clone()).status(404)]).await;
    let gate = company("", "").start(&upstream).await;
    let busy = async |number: u32| {
        let refused = gate.get(&format!("/company/{number}")).await;
        (refused.status, refused.code(), refused.header("retry-after").map(str::to_owned))
    };
    assert_eq!(busy(1).await, (502, "upstream_busy".into(), Some("300".into())));
    gate.advance(299);
    assert_eq!(busy(2).await, (502, "upstream_busy".into(), Some("1".into())));
    gate.advance(1);
    let there = gate.get("/company/2").await;
    assert_eq!((there.status, there.json(), there.code()), (404, missing, String::new()));
    assert!(hit(&gate.get("/company/00000002").await), "no such company is an answer, and kept");
    assert_eq!((upstream.calls(), gate.spent().await), (2, 5_000));
}
