//! Fields in query, path and header; what is pinned, ignored, unknown, doubled, empty or missing.

use serde_json::json;

use super::{hit, problem, sent};
use crate::support::gate::{encode, opencage, quote};
use crate::support::raw::exchange;
use crate::support::routes::{google, google_found, nominatim, own, routes_found};
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

const QUESTION: &str = "q = { in = \"query\", type = \"text\", max = 50, required = true }\n\
                        lang = { in = \"query\", type = \"language\", default = \"en\" }\n\
                        mode = { in = \"query\", type = \"enum\", values = [\"DRIVE\", \"WALK\"], aliases = { 1 = \"DRIVE\", 2 = \"WALK\" } }\n\
                        tags = { in = \"query\", type = \"set\", of = \"country\" }\n\
                        [routes.own.pinned]\nno_annotations = { in = \"query\", value = \"1\" }\n\
                        x-client = { in = \"header:x-client\", value = \"tollgate\" }\n\
                        [routes.own.ignored]\nquery = [\"sensor\", \"client\"]";

async fn upstream() -> FakeUpstream {
    FakeUpstream::start(Step::ok(json!({}))).await
}

#[tokio::test]
async fn a_field_has_one_spelling_on_the_way_out() {
    let upstream = upstream().await;
    let gate = own("GET /own", "", QUESTION).start(&upstream).await;
    for query in [
        "q=Hello+World&mode=DRIVE&lang=pt-BR&tags=UK,fr",
        "mode=1&lang=PT-br&q=hello%20world&tags=FR,GB",
        "mode=drive&q=%48ello+World&lang=pt-br&tags=gb&tags=fr&tags=uk",
        "%6Dode=DRIVE&q=Hello%20World&lang=pt-BR&%74ags=GB,FR",
    ] {
        assert_eq!(gate.get(&format!("/own?{query}")).await.status, 200, "{query}");
        assert_eq!(upstream.calls(), 1, "{query}");
    }
    let last = upstream.last();
    assert_eq!(last.target, "/own?lang=pt-BR&mode=DRIVE&q=Hello%20World&tags=FR%2CGB&no_annotations=1");
    assert_eq!(last.header("x-client"), Some("tollgate"));
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn an_absent_field_reads_as_its_default_or_is_left_out() {
    let upstream = upstream().await;
    let gate = own("GET /own", "", QUESTION).start(&upstream).await;
    for query in ["q=Hello", "q=Hello&lang=", "q=Hello&lang=EN&mode=&tags=", "q=Hello&lang&mode", "q=&q=Hello", "&&q=Hello&"] {
        assert_eq!(gate.get(&format!("/own?{query}")).await.status, 200, "{query}");
        assert_eq!(upstream.calls(), 1, "{query}");
    }
    assert_eq!(upstream.last().target, "/own?lang=en&q=Hello&no_annotations=1");
    assert_eq!(problem(&gate.get("/own?q=").await), (400, "invalid_question".into(), "q".into()));
    assert_eq!(problem(&gate.get("/own").await), (400, "invalid_question".into(), "q".into()));
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn a_pinned_value_is_sent_and_never_taken() {
    let upstream = upstream().await;
    let gate = own("GET /own", "", QUESTION).start(&upstream).await;
    for query in ["q=Hello", "q=Hello&no_annotations=1", "q=Hello&no_annotations="] {
        assert_eq!(gate.get(&format!("/own?{query}")).await.status, 200, "{query}");
    }
    for query in ["q=Hello&no_annotations=0", "q=Hello&no_annotations=1&no_annotations=0", "q=Hello&no_annotations=01"] {
        let reply = gate.get(&format!("/own?{query}")).await;
        assert_eq!(problem(&reply), (400, "invalid_question".into(), "no_annotations".into()), "{query}");
    }
    let same = gate.client.clone().with("x-client", "tollgate");
    assert!(hit(&same.get("/own?q=Hello").await));
    let other = gate.client.clone().with("x-client", "mine");
    assert_eq!(problem(&other.get("/own?q=Hello").await).1, "invalid_question");
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn what_is_pinned_is_no_field_of_the_preset_any_more() {
    let upstream = FakeUpstream::start(Step::ok(crate::support::gate::found())).await;
    let gate = opencage("", "[routes.geo.pinned]\nno_annotations = { in = \"query\", value = \"1\" }").start(&upstream).await;
    for query in ["q=Bonn&no_annotations=1", "q=Bonn", "no_annotations=&q=bonn"] {
        assert_eq!(gate.get(&format!("/geocode/v1/json?{query}")).await.status, 200, "{query}");
        assert_eq!(upstream.calls(), 1, "{query}");
    }
    assert!(upstream.last().target.starts_with("/geocode/v1/json?q=Bonn&no_annotations=1&key="), "{:?}", upstream.last());
    let other = gate.get("/geocode/v1/json?q=Bonn&no_annotations=0").await;
    assert_eq!(other.header("proxy-status"), Some("tollgate; details=\"invalid_question\""));
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn what_is_ignored_is_dropped_and_what_is_unknown_refused() {
    let upstream = upstream().await;
    let gate = own("GET /own", "", QUESTION).start(&upstream).await;
    for query in ["q=Hello", "q=Hello&sensor=true&client=a&client=b", "sensor=false&q=Hello&key=caller-key"] {
        assert_eq!(gate.get(&format!("/own?{query}")).await.status, 200, "{query}");
        assert_eq!(upstream.calls(), 1, "{query}");
    }
    for (query, field) in [("q=Hello&foo=1", "foo"), ("q=Hello&Q=1", "Q"), ("foo&q=Hello", "foo"), ("q=Hello&q%5B%5D=1", "q[]")] {
        let reply = gate.get(&format!("/own?{query}")).await;
        assert_eq!(problem(&reply), (400, "unknown_field".into(), field.into()), "{query}");
    }
    let long = gate.get(&format!("/own?q=Hello&{}=1", "n".repeat(5_000))).await;
    assert_eq!(problem(&long).2.len(), 64, "a stranger's name is not repeated at any length");
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn one_value_may_be_given_once() {
    let upstream = upstream().await;
    let gate = own("GET /own", "", QUESTION).start(&upstream).await;
    for (query, field) in
        [("q=a1&q=b1", "q"), ("q=a1&q=a1", "q"), ("q=a1&mode=1&mode=DRIVE", "mode"), ("q=a1&lang=en&lang=fr", "lang")]
    {
        let reply = gate.get(&format!("/own?{query}")).await;
        assert_eq!(problem(&reply), (400, "duplicate_field".into(), field.into()), "{query}");
    }
    assert_eq!((upstream.calls(), gate.spent().await), (0, 0));
}

#[tokio::test]
async fn a_value_out_of_its_type_is_refused_with_a_reason_that_does_not_repeat_it() {
    let upstream = upstream().await;
    let gate = own("GET /own", "", QUESTION).start(&upstream).await;
    for (query, field) in
        [("q=a1&mode=FLY", "mode"), ("q=a1&mode=3", "mode"), ("q=a1&lang=%21%21", "lang"), ("q=a1&tags=XX,ZZZ", "tags")]
    {
        let reply = gate.get(&format!("/own?{query}")).await;
        assert_eq!(problem(&reply), (400, "invalid_question".into(), field.into()), "{query}");
        let reason = reply.json()["reason"].as_str().unwrap().to_owned();
        assert!(!reason.is_empty() && !reason.contains("FLY") && !reason.contains("ZZZ"), "{reason}");
    }
    assert_eq!((upstream.calls(), gate.spent().await), (0, 0));
}

#[tokio::test]
async fn bad_encoding_is_refused_and_never_repaired() {
    let upstream = upstream().await;
    let gate = own("GET /own", "", QUESTION).start(&upstream).await;
    for target in ["/own?q=%zz", "/own?q=%4", "/own?q=100%", "/own?q=%FF%FE", "/own?q=%C3", "/own?q=%ED%A0%80", "/own?%C3=1&q=a1"]
    {
        let request =
            format!("GET {target} HTTP/1.1\r\nHost: {}\r\nX-Api-Key: caller-key\r\nConnection: close\r\n\r\n", gate.addr);
        let [reply] = exchange(gate.addr, request).await.try_into().unwrap();
        assert_eq!((reply.status, reply.json()["code"].as_str()), (400, Some("invalid_question")), "{target}");
    }
    assert_eq!((upstream.calls(), gate.spent().await), (0, 0));
}

#[tokio::test]
async fn a_field_in_the_path_is_decoded_once_and_encoded_again() {
    let upstream = upstream().await;
    let gate = own("GET /place/{name}/at", "", "name = { in = \"path\", type = \"text\", max = 20 }").start(&upstream).await;
    for path in ["/place/Caf%C3%A9%20%26%3F%23/at", "/place/cafe%CC%81%20&%3f%23/at", "/pl%61ce/%43AF%c3%89%20&%3F%23/at"] {
        assert_eq!(gate.get(path).await.status, 200, "{path}");
        assert_eq!(upstream.last().target, "/place/Caf%C3%A9%20%26%3F%23/at");
    }
    for (path, status) in [
        ("/place/a%2Fb/at", 404),
        ("/place/%2e%2e/at", 404),
        ("/place//at", 404),
        ("/place/%FF/at", 400),
        ("/place/a1/at?x=1", 400),
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nX-Api-Key: caller-key\r\nConnection: close\r\n\r\n", gate.addr);
        assert_eq!(exchange(gate.addr, request).await[0].status, status, "{path}");
    }
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn a_field_in_a_header() {
    let upstream = upstream().await;
    let question = "mask = { in = \"header:x-mask\", type = \"mask\", required = true }\nlang = { in = \"header:accept-language\", type = \"language\" }";
    let gate = own("GET /own", "", question).start(&upstream).await;
    let request = |lines: &str| {
        format!("GET /own HTTP/1.1\r\nHost: {}\r\nX-Api-Key: caller-key\r\nConnection: close\r\n{lines}\r\n", gate.addr)
    };
    for lines in ["X-Mask: b,a\r\nAccept-Language: FR\r\n", "x-mask: a\r\nX-MASK: b\r\naccept-language: fr\r\n"] {
        assert_eq!(exchange(gate.addr, request(lines)).await[0].status, 200, "{lines}");
        assert_eq!((upstream.last().header("x-mask"), upstream.last().header("accept-language")), (Some("a,b"), Some("fr")));
    }
    for (lines, code) in [
        ("", "invalid_question"),
        ("X-Mask: a b\r\n", "invalid_question"),
        ("X-Mask: \u{e9}\r\n", "invalid_question"),
        ("X-Mask: a\r\nAccept-Language: fr\r\nAccept-Language: de\r\n", "duplicate_field"),
    ] {
        let [reply] = exchange(gate.addr, request(lines)).await.try_into().unwrap();
        assert_eq!((reply.status, reply.json()["code"].as_str()), (400, Some(code)), "{lines:?}");
    }
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn one_of_some_fields_must_be_there() {
    let upstream = FakeUpstream::start(Step::ok(google_found())).await;
    let gate = google("", "").start(&upstream).await;
    for query in
        ["address=Berlin", "latlng=52.5,13.4", "place_id=ChIJAVkDPzdOqEcRcDteW0YgIQQ", "components=country:DE|locality:Bonn"]
    {
        assert_eq!(gate.get(&format!("/maps/api/geocode/json?{query}")).await.status, 200, "{query}");
    }
    // Sorted, since a set has no order.
    assert!(upstream.last().target.contains("components=country%3ADE%7Clocality%3ABonn"));
    assert!(hit(&gate.get("/maps/api/geocode/json?components=locality:bonn%7Ccountry:DE").await));
    for query in ["", "?language=de", "?address=&latlng=", "?region=de&sensor=false"] {
        let reply = gate.get(&format!("/maps/api/geocode/json{query}")).await;
        assert_eq!((reply.status, reply.json()["status"].as_str()), (403, Some("REQUEST_DENIED")), "{query}");
        assert_eq!(reply.header("proxy-status"), Some("tollgate; details=\"invalid_question\""), "{query}");
    }
    assert_eq!((upstream.calls(), gate.spent().await), (4, 20_000));
}

#[tokio::test]
async fn coordinates_in_two_parameters() {
    let upstream = FakeUpstream::start(Step::ok(json!({ "display_name": "x" }))).await;
    let gate = nominatim("reverse", "", "").start(&upstream).await;
    for query in
        ["lat=52.520008&lon=13.404954", "lon=13.40495&lat=52.52001", "lat=52.52001000&lon=+13.40495".replace('+', "%2B").as_str()]
    {
        assert_eq!(gate.get(&format!("/reverse?{query}")).await.status, 200, "{query}");
    }
    assert_eq!(upstream.last().target, "/reverse?lat=52.52001&lon=13.40495");
    for (query, code) in [
        ("lat=52.5", "invalid_question"),
        ("lon=13.4&lat=", "invalid_question"),
        ("lat=91&lon=0", "invalid_question"),
        ("lat=0&lon=180.00001", "invalid_question"),
        ("lat=NaN&lon=0", "invalid_question"),
        ("lat=1e400&lon=0", "invalid_question"),
        ("lat=1&lat=2&lon=0", "duplicate_field"),
    ] {
        let reply = gate.get(&format!("/reverse?{query}")).await;
        assert_eq!(reply.header("proxy-status"), Some(format!("tollgate; details=\"{code}\"").as_str()), "{query}");
    }
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn an_unordered_pair_is_sent_in_one_order() {
    let upstream = FakeUpstream::start(Step::ok(routes_found())).await;
    let gate = quote("", "").start(&upstream).await;
    for query in ["from=Jaipur&to=Delhi", "to=JAIPUR&from=delhi", "from=Delhi&to=Jaipur"] {
        assert_eq!(gate.get(&format!("/v1/quote?{query}")).await.json()["distance_meters"], 280_000);
    }
    let body: serde_json::Value = serde_json::from_slice(&upstream.last().body).unwrap();
    assert_eq!(body, json!({ "origin": { "address": "Delhi" }, "destination": { "address": "Jaipur" }, "travelMode": "DRIVE" }));
    assert_eq!(upstream.last().header("content-type"), Some("application/json"));
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn coordinates_in_a_free_text_are_coordinates() {
    let upstream = FakeUpstream::start(Step::ok(crate::support::gate::found())).await;
    let gate = opencage("", "").start(&upstream).await;
    for text in ["52.520008, 13.404954", "52.52001,13.40495", " 52.5200100 ,13.40495 "] {
        gate.get(&format!("/geocode/v1/json?q={}", encode(text))).await;
    }
    assert_eq!(sent(&upstream)[0], ("q".into(), "52.52001,13.40495".into()));
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn a_space_can_be_a_separator_and_be_dropped_from_a_code() {
    let upstream = upstream().await;
    let question = "number = { in = \"query\", type = \"code\", drop = \" -\", pattern = \"[A-Z0-9]{8}\", required = true }\n\
                    lands = { in = \"query\", type = \"set\", of = \"country\", separator = \" \" }";
    let gate = own("GET /own", "", question).start(&upstream).await;
    for query in ["number=SC123456&lands=de+fr", "number=sc-12+34+56&lands=fr%20de"] {
        assert_eq!(gate.get(&format!("/own?{query}")).await.status, 200, "{query}");
    }
    assert_eq!(upstream.last().target, "/own?lands=DE%20FR&number=SC123456");
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn a_credential_is_set_behind_its_prefix_as_it_is_written() {
    let upstream = upstream().await;
    let auth = "auth = { in = \"header\", name = \"authorization\", prefix = \"Token \" }";
    let body = format!(
        "[providers.own]\nbase_url = \"{{upstream}}\"\nkey = \"{{secret}}\"\nprice = \"0.005 USD\"\n{auth}\n\
         [routes.own]\nprovider = \"own\"\nexpose = \"GET /own\"\nbudget = \"none\"\n\
         [routes.own.question]\nq = {{ in = \"query\", type = \"text\" }}\n[routes.own.send]\npath = \"/own\"\nquery = {{ q = \"{{q}}\" }}\n"
    );
    let gate = crate::support::gate::Setup::new(body).start(&upstream).await;
    assert_eq!(gate.get("/own?q=Bonn").await.status, 200);
    assert_eq!(upstream.last().header("authorization"), Some("Token s3cret/provider+key"));
}
