//! N-01 to N-06.

use serde_json::json;

use super::{hit, sent, sent_values};
use crate::support::gate::{SECRET, Setup, encode};
use crate::support::routes::{compute_routes, google, google_found, nominatim, own, routes_found};
use crate::support::step::{Script, Step};
use crate::support::upstream::FakeUpstream;

const GEO: &str = "/maps/api/geocode/json";

#[tokio::test]
async fn n_01_same_town_two_byte_spellings() {
    let upstream = FakeUpstream::start(Step::ok(google_found())).await;
    let gate = google("", "").start(&upstream).await;
    for spelling in [
        "Chamb%C3%A9ry%2C%20France",
        "Chambe%CC%81ry%2C%20France",
        "%20%20CHAMB%C3%89RY%2C%C2%A0%C2%A0France",
        "%EF%BB%BFChamb%C3%A9ry%2C%20Fra%E2%80%8Bnce",
        "%E2%80%AEChamb%C3%A9ry%2C%20France%E2%80%AC",
    ] {
        assert_eq!(gate.get(&format!("{GEO}?address={spelling}")).await.status, 200, "{spelling}");
        assert_eq!(upstream.calls(), 1, "{spelling}");
    }
    assert_eq!(upstream.last().target, format!("{GEO}?address=Chamb%C3%A9ry%2C%20France&key={}", encode(SECRET)));
    for spelling in ["１丁目１０－４", "1丁目10-4", "1丁目\u{3000}10-4"] {
        gate.get(&format!("{GEO}?address={}", encode(spelling))).await;
    }
    assert_eq!(sent_values(&upstream, "address"), ["1丁目 10-4"], "a space is a space, in whatever width");
    // The real minus sign is read as the hyphen it stands for, in the key alone.
    assert!(hit(&gate.get(&format!("{GEO}?address={}", encode("1丁目10\u{2212}4"))).await));
    assert_eq!((upstream.calls(), gate.spent().await), (3, 15_000));
}

#[tokio::test]
async fn n_01_what_is_sent_is_composed_even_if_the_caller_decomposed_it() {
    let upstream = FakeUpstream::start(Step::ok(google_found())).await;
    let gate = google("", "").start(&upstream).await;
    gate.get(&format!("{GEO}?address=%20Chambe%CC%81ry%2C%0A%C2%A0FRANCE%E2%80%8B")).await;
    assert_eq!(upstream.last().target, format!("{GEO}?address=Chamb%C3%A9ry%2C%20FRANCE&key={}", encode(SECRET)));
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn n_02_house_number_one_half() {
    let upstream = FakeUpstream::start(Step::ok(google_found())).await;
    let gate = google("", "").start(&upstream).await;
    for (address, calls) in [
        ("537½ west 26th street", 1),
        ("5371/2 west 26th street", 2),
        ("537 1/2 west 26th street", 2),
        ("10² Main", 3),
        ("102 Main", 4),
        ("10₂ Main", 5),
        ("⑩2 Main", 6),
        ("537½ West 26th Street", 6),
    ] {
        gate.get(&format!("{GEO}?address={}", encode(address))).await;
        assert_eq!(upstream.calls(), calls, "{address}");
    }
    let sent: Vec<String> = upstream.requests().iter().map(|request| request.target.clone()).collect();
    assert!(sent[0].contains("?address=537%C2%BD%20west"), "{sent:?}");
    assert!(sent.iter().all(|target| !target.contains("%E2%81%84")), "no fraction slash: {sent:?}");
    assert_eq!((upstream.calls(), gate.spent().await), (6, 30_000));
}

#[tokio::test]
async fn n_03_marks_in_an_address_are_no_syntax() {
    let upstream = FakeUpstream::start(Step::ok(google_found())).await;
    let gate = google("", "").start(&upstream).await;
    let addresses = [
        ("12 Any St #211", "12%20Any%20St%20%23211"),
        ("1st & Elm", "1st%20%26%20Elm"),
        ("Mont d'Or", "Mont%20d%27Or"),
        ("C++ Road", "C%2B%2B%20Road"),
        ("bn20+8qt", "bn20%2B8qt"),
        ("50% Lane", "50%25%20Lane"),
        ("A=B/C?D", "A%3DB%2FC%3FD"),
        ("Any St ＃211", "Any%20St%20%EF%BC%83211"),
        ("Oak ＆ Ash", "Oak%20%EF%BC%86%20Ash"),
        ("X／Y", "X%EF%BC%8FY"),
    ];
    for (address, encoded) in addresses {
        gate.get(&format!("{GEO}?address={}", encode(address))).await;
        assert_eq!(upstream.last().target, format!("{GEO}?address={encoded}&key={}", encode(SECRET)));
        assert_eq!(sent(&upstream), [("address".into(), address.to_owned()), ("key".into(), SECRET.to_owned())]);
    }
    // A plus is a space where the form encoding says so, and an escaped plus stays one.
    assert!(hit(&gate.get(&format!("{GEO}?address=1st+%26+Elm")).await));
    assert!(hit(&gate.get(&format!("{GEO}?address=C%2B%2B+Road")).await));
    assert!(hit(&gate.get(&format!("{GEO}?address=oak+%26+ash")).await), "width is no difference");
    assert_eq!((upstream.calls(), gate.spent().await), (10, 50_000));
}

#[tokio::test]
async fn n_04_the_sign_stays_in_the_key() {
    let upstream = FakeUpstream::start(Step::echo()).await;
    let gate = nominatim("reverse", "", "").start(&upstream).await;
    let mut bodies = Vec::new();
    for (lat, lon) in [("-45.5", "-73.9"), ("45.5", "73.9"), ("-45.5", "73.9"), ("45.5", "-73.9")] {
        let reply = gate.get(&format!("/reverse?lat={lat}&lon={lon}")).await;
        assert_eq!(upstream.last().target, format!("/reverse?lat={lat}&lon={lon}"));
        bodies.push(reply.text());
        let again = gate.get(&format!("/reverse?lon={lon}000&lat={lat}0")).await;
        assert!(hit(&again) && again.text() == reply.text());
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 4, "each its own answer");
    // Zero has no sign, and the antimeridian one name.
    for point in ["lat=-0.0&lon=-180", "lat=0&lon=180"] {
        gate.get(&format!("/reverse?{point}")).await;
    }
    assert_eq!((upstream.calls(), gate.spent().await), (5, 25_000));
}

#[tokio::test]
async fn n_05_order_that_matters() {
    let upstream = FakeUpstream::start(Step::ok(routes_found())).await;
    let gate = compute_routes("", "").start(&upstream).await;
    let client = gate.client.clone().with("x-goog-fieldmask", "routes.duration");
    let ask = async |from: &str, via: &[&str], to: &str| {
        let spot = |name: &str| json!({ "address": name });
        let via: Vec<_> = via.iter().map(|name| spot(name)).collect();
        let body = json!({ "origin": spot(from), "destination": spot(to), "intermediates": via });
        client.post("/directions/v2:computeRoutes", body).await
    };
    for round in 0..2 {
        for (from, via, to) in [("A1", &[][..], "B1"), ("B1", &[], "A1"), ("A1", &["X", "Y"], "B1"), ("A1", &["Y", "X"], "B1")] {
            assert_eq!(hit(&ask(from, via, to).await), round == 1);
        }
    }
    assert_eq!((upstream.calls(), gate.spent().await), (4, 20_000));
}

#[tokio::test]
async fn n_05_order_that_does_not_matter() {
    let upstream = FakeUpstream::start(Step::ok(json!({}))).await;
    let question = "from = { in = \"query\", type = \"text\", required = true }\nto = { in = \"query\", type = \"text\" }\n\
                    avoid = { in = \"query\", type = \"set\", of = { type = \"enum\", values = [\"tolls\", \"ferries\"] } }";
    let gate = own("GET /route", "", question).start(&upstream).await;
    for query in [
        "from=A&to=B&avoid=tolls,ferries",
        "from=A&to=B&avoid=ferries,tolls",
        "from=A&to=B&avoid=tolls,tolls,ferries",
        "avoid=tolls&to=B&avoid=ferries&from=A",
        "to=b&&avoid=FERRIES%2Ctolls&from=%41",
    ] {
        gate.get(&format!("/route?{query}")).await;
        assert_eq!(upstream.calls(), 1, "{query}");
    }
    assert_eq!(upstream.last().target, "/route?avoid=ferries%2Ctolls&from=A&to=B");
    gate.get("/route?from=B&to=A&avoid=tolls,ferries").await;
    gate.get("/route?from=A&to=B&avoid=tolls").await;
    gate.get("/route?from=A&to=B").await;
    assert_eq!((upstream.calls(), gate.spent().await), (4, 20_000));
}

#[tokio::test]
async fn n_06_variants_are_apart() {
    let upstream = FakeUpstream::start(Script::by(|asked| Step::ok(json!({ "asked": asked.target })))).await;
    let question = "address = { in = \"query\", type = \"text\", required = true }\nlang = { in = \"query\", type = \"language\" }\n\
                    geometry = { in = \"query\", type = \"enum\", values = [\"full\"] }\n\
                    [providers.second]\nbase_url = \"{upstream}/second\"\nprice = \"0.005 USD\"\n\
                    [routes.second]\nprovider = \"second\"\nexpose = \"GET /second\"\nbudget = \"none\"\ncache = { found = \"1d\" }\n\
                    send = { path = \"/geo\", query = { address = \"{address}\" } }\n\
                    [routes.second.question]\naddress = { in = \"query\", type = \"text\", required = true }";
    let gate = own("GET /geo", "", question).start(&upstream).await;
    let paths = [
        "/geo?address=X1",
        "/geo?address=X1&geometry=full",
        "/geo?address=X1&lang=fr",
        "/geo?address=X1&lang=de",
        "/second?address=X1",
    ];
    let mut answers = Vec::new();
    for path in paths {
        answers.push(gate.get(path).await.text());
        assert_eq!(gate.get(path).await.text(), *answers.last().unwrap());
    }
    answers.sort();
    answers.dedup();
    assert_eq!((answers.len(), upstream.calls(), gate.spent().await), (5, 5, 25_000));
}

#[tokio::test]
async fn n_06_field_masks_are_variants_and_their_spelling_is_not() {
    let upstream = FakeUpstream::start(Step::ok(routes_found())).await;
    let gate = compute_routes("", "").start(&upstream).await;
    let body = json!({ "origin": { "address": "A1" }, "destination": { "address": "B1" } });
    for (mask, calls) in [
        ("routes.duration,routes.distanceMeters", 1),
        ("routes.distance_meters, routes.duration", 1),
        ("routes.duration", 2),
        ("routes,routes.duration", 3),
        ("*", 4),
    ] {
        let client = gate.client.clone().with("X-Goog-FieldMask", mask);
        assert_eq!(client.post("/directions/v2:computeRoutes", body.clone()).await.status, 200);
        assert_eq!(upstream.calls(), calls, "{mask}");
    }
    assert_eq!(upstream.requests()[0].header("x-goog-fieldmask"), Some("routes.distanceMeters,routes.duration"));
    assert_eq!((upstream.calls(), gate.spent().await), (4, 20_000));
}

#[tokio::test]
async fn n_06_a_rotated_credential_costs_no_call_and_stands_in_no_key() {
    let upstream = FakeUpstream::start(Step::ok(google_found())).await;
    let setup = Setup { store: "url = \"sqlite:{dir}/t.db\"".into(), ..google("", "") };
    let gate = setup.start(&upstream).await;
    gate.get(&format!("{GEO}?address=Zzyzx+Road+7")).await;
    std::fs::write(gate.dir.path().join("secret"), "rotated-key").unwrap();
    assert_eq!(gate.admin.send(http::Method::POST, "/v1/reload", bytes::Bytes::new()).await.status, 200);
    assert!(hit(&gate.get(&format!("{GEO}?address=Zzyzx+Road+7")).await));
    gate.get(&format!("{GEO}?address=Elsewhere")).await;
    assert_eq!(sent_values(&upstream, "key"), ["rotated-key"]);
    assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000));
    let dir = gate.stop().await;
    for entry in std::fs::read_dir(dir.path()).unwrap().map(Result::unwrap) {
        let bytes = std::fs::read(entry.path()).unwrap();
        let holds = |text: &str| bytes.windows(text.len()).any(|window| window.eq_ignore_ascii_case(text.as_bytes()));
        if entry.file_name().to_string_lossy().starts_with("t.db") {
            assert!(!holds(SECRET) && !holds("rotated-key") && !holds("zzyzx"), "{entry:?}");
        }
    }
}
