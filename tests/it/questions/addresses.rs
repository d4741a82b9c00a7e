//! The appendix of the field cases: odd addresses, and which of them are one.

use std::collections::BTreeSet;

use super::problem;
use crate::support::gate::{encode, found, opencage, quote};
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

#[tokio::test]
async fn appendix_one_letter_is_one_entry() {
    let upstream = FakeUpstream::start(Step::ok(found())).await;
    let gate = opencage("", "").start(&upstream).await;
    let mut groups = BTreeSet::new();
    for (address, group) in [
        ("16½ Windward Road", 'a'),
        ("16 1/2 Windward Road", 'a'),
        ("161/2 Windward Road", 'b'),
        // Policy: a comma needs no space after it.
        ("Kloosterweg 22, 6412 CN", 'c'),
        ("kloosterweg  22,6412 cn", 'c'),
        // Policy: full case folding.
        ("Straße 5", 'd'),
        ("STRASSE 5", 'd'),
        ("İstanbul", 'e'),
        ("i̇stanbul", 'e'),
        ("istanbul", 'f'),
        ("ISTANBUL", 'f'),
        ("ﬁsh Lane", 'g'),
        ("fish lane", 'g'),
        ("\u{212a} Road", 'h'),
        ("K road", 'h'),
        ("旗ﾉ台", 'i'),
        ("旗ノ台", 'i'),
        ("№ 5", 'j'),
        ("No 5", 'j'),
        ("007 Bond St", 'k'),
        ("7 Bond St", 'l'),
        ("16½\nWindward\r\n\tRoad", 'a'),
    ] {
        groups.insert(group);
        assert_eq!(gate.get(&format!("/geocode/v1/json?q={}", encode(address))).await.status, 200, "{address}");
        assert_eq!(upstream.calls(), groups.len(), "{address}");
    }
    // What was sent is what the first caller of each group wrote, not the fold.
    let sent: Vec<String> = upstream.requests().iter().map(|request| request.target.clone()).collect();
    assert!(sent[2].contains("q=Kloosterweg%2022%2C%206412%20CN"), "{sent:?}");
    assert!(sent[3].contains("q=Stra%C3%9Fe%205"), "{sent:?}");
    assert_eq!((upstream.calls(), gate.spent().await), (12, 60_000));
}

#[tokio::test]
async fn appendix_persian_and_indic_joiners_stay() {
    let upstream = FakeUpstream::start(Step::ok(found())).await;
    let gate = opencage("", "").start(&upstream).await;
    gate.get(&format!("/geocode/v1/json?q={}", encode("می\u{200c}خواهم"))).await;
    assert!(upstream.last().target.contains("%E2%80%8C"), "{:?}", upstream.last());
    gate.get(&format!("/geocode/v1/json?q={}", encode("میخواهم"))).await;
    assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000));
}

fn no_questions() -> Vec<(&'static str, String)> {
    vec![
        ("NUL", "Main\0 Street".into()),
        ("another control", "Main\u{7} Street".into()),
        ("a C1 control", "Main\u{9b} Street".into()),
        ("empty", String::new()),
        ("only spaces", " \u{a0}\u{3000} ".into()),
        ("only a zero-width space", "\u{200b}".into()),
        ("no letter or digit", "!?-".into()),
        ("ten thousand characters", "x".repeat(10_000)),
        ("two thousand marks on one letter", format!("a{}", "\u{301}".repeat(2_000))),
        ("few characters whose fold is many", "\u{fdfa}".repeat(100)),
    ]
}

#[tokio::test]
async fn appendix_what_is_no_address_is_refused_before_any_token_or_money() {
    let upstream = FakeUpstream::start(Step::ok(found())).await;
    let gate = quote("", "limits = { caller = { burst = 2, rate = \"1/h\" } }").start(&upstream).await;
    for (what, text) in no_questions() {
        let reply = gate.get(&format!("/v1/quote?to=Jaipur&from={}", encode(&text))).await;
        assert_eq!(problem(&reply), (400, "invalid_question".into(), "from".into()), "{what}");
        assert_eq!((reply.header("ratelimit"), reply.header("retry-after")), (None, None), "{what}");
    }
    // None of them took a token.
    let reply = gate.get("/v1/quote?from=Delhi&to=Jaipur").await;
    assert_eq!((reply.status, reply.header("ratelimit").unwrap().split(';').nth(1)), (200, Some("r=1")));
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn appendix_and_so_it_is_on_a_native_route_in_the_providers_shape() {
    let upstream = FakeUpstream::start(Step::ok(found())).await;
    let gate = opencage("", "").start(&upstream).await;
    for (what, text) in no_questions() {
        let reply = gate.get(&format!("/geocode/v1/json?q={}", encode(&text))).await;
        assert_eq!((reply.status, &reply.json()["status"]["code"]), (403, &403.into()), "{what}");
        assert_eq!(reply.header("proxy-status"), Some("tollgate; details=\"invalid_question\""), "{what}");
    }
    assert_eq!((upstream.calls(), gate.spent().await), (0, 0));
}
