//! What is acted on, and how often.

use super::*;
use crate::support::raw::Raw;

#[tokio::test]
async fn a_budget_that_is_spent_stops_the_route_and_says_why() {
    let (upstream, gate) = start(hooked(", route = \"quote\", position = \"off\", at = 0.9")).await;
    let name = format!("Maps\\n \\u001b[31m\\u202e{}", "x".repeat(100));
    let told = notice(NOVEMBER, "95.25", "100.0").replace("Maps", &name);
    assert_eq!(push(&gate, push_of("1", &told)).await, 204);
    let switch = switch(&gate, "quote").await;
    assert_eq!((&switch["state"], &switch["since"]), (&json!("off"), &json!(gate.clock.now().seconds())));
    let expected = format!(
        "Google Cloud budget \"Maps  [31m{}…\": 95.25 of 100 USD spent since {NOVEMBER}, as Google had counted by \
         2026-11-30T11:59:00.123Z; the limit is 0.9 of the budget",
        "x".repeat(50)
    );
    let reason = switch["reason"].as_str().unwrap();
    assert!(reason.ends_with(&expected), "{reason}");
    assert_eq!((gate.get(ASK).await.code(), state(&gate).await), ("switched_off".into(), "on".into()));
    assert_eq!((upstream.calls(), gate.spent().await), (0, 0));
}

/// Amounts are decimals: neither what doubles add to them nor what they lose makes a difference, and a millionth does.
#[tokio::test]
async fn amounts_are_exact_at_the_border() {
    let (_upstream, gate) = start(hooked("")).await;
    let reached = [
        ("0.30000000000000004", "0.3"),
        ("0.3", "0.30000000000000004"),
        ("100", "100.0"),
        ("1.0E2", "100"),
        ("9007199254.740993", "9007199254.740993"),
        ("0.01", "0"),
    ];
    let below = [
        ("0.299999", "0.3"),
        ("99.999999", "100"),
        ("9007199254.740992", "9007199254.740993"),
        ("-5", "100"),
        ("0", "0"),
        ("-1", "-2"),
    ];
    let all = reached.iter().map(|pair| (pair, "cached")).chain(below.iter().map(|pair| (pair, "on")));
    for (n, ((spent, budget), right)) in all.enumerate() {
        let mut told = push_of("1", &notice(NOVEMBER, spent, budget));
        told["message"]["attributes"]["budgetId"] = format!("budget-{n}").into();
        assert_eq!(push(&gate, told).await, 204);
        assert_eq!(state(&gate).await, right, "{spent} of {budget}");
        open(&gate).await;
    }
    assert_eq!((counted(&gate, "stopped").await, counted(&gate, "below").await), (6, 6));
}

#[tokio::test]
async fn thresholds_are_not_what_is_acted_on() {
    let (_upstream, gate) = start(hooked("")).await;
    let crying = notice(NOVEMBER, "50", "100").replace("\"currencyCode\"", "\"alertThresholdExceeded\":1.0,\"currencyCode\"");
    assert_eq!((push(&gate, push_of("1", &crying)).await, state(&gate).await), (204, "on".into()));
}

#[tokio::test]
async fn a_period_is_acted_on_once_and_nothing_late_lower_or_repeated_changes_that() {
    let (upstream, gate) = start(hooked("")).await;
    let over = push_of("7", &notice(NOVEMBER, "100", "100"));
    assert_eq!((push(&gate, over.clone()).await, state(&gate).await), (204, "cached".into()));
    // The same again, the same state by another id, an earlier one late, a credit, a raised budget: all stay stopped.
    for (spent, budget) in [("100", "100"), ("99.5", "100"), ("40", "100"), ("100", "500"), ("101", "100")] {
        assert_eq!((tell(&gate, NOVEMBER, spent, budget).await, state(&gate).await), (204, "cached".into()), "{spent} {budget}");
    }
    assert_eq!(push(&gate, over.clone()).await, 204);
    // An admin ends it, and this period is over for good.
    open(&gate).await;
    assert_eq!(push(&gate, over).await, 204);
    assert_eq!(tell(&gate, NOVEMBER, "250", "100").await, 204);
    assert_eq!((state(&gate).await.as_str(), gate.get(ASK).await.status), ("on", 200));
    let results = [("stopped", 1), ("stopped_before", 5), ("repeated", 3), ("below", 0), ("older", 0)];
    for (result, count) in results {
        assert_eq!(counted(&gate, result).await, count, "{result}");
    }
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn a_new_period_opens_nothing_and_an_older_one_is_ignored() {
    let (_upstream, gate) = start(hooked("")).await;
    assert_eq!(tell(&gate, NOVEMBER, "120", "100").await, 204);
    gate.advance(86_400);
    assert_eq!((tell(&gate, DECEMBER, "0.5", "100").await, state(&gate).await), (204, "cached".into()));
    open(&gate).await;
    for spent in ["120", "130"] {
        assert_eq!((tell(&gate, NOVEMBER, spent, "100").await, state(&gate).await), (204, "on".into()));
    }
    // Nor does it lower what is known of the new one, in which acting begins anew.
    assert_eq!((tell(&gate, DECEMBER, "0.4", "100").await, counted(&gate, "repeated").await), (204, 1));
    assert_eq!((tell(&gate, DECEMBER, "100.000001", "100").await, state(&gate).await), (204, "cached".into()));
    assert_eq!((counted(&gate, "older").await, counted(&gate, "stopped").await), (2, 2));
}

#[tokio::test]
async fn an_older_period_that_was_spent_and_comes_first_stops_nothing_twice() {
    let (_upstream, gate) = start(hooked("")).await;
    gate.advance(86_400);
    // Out of order: the new period is known before the last of the old one comes.
    assert_eq!(tell(&gate, DECEMBER, "1", "100").await, 204);
    assert_eq!((tell(&gate, NOVEMBER, "120", "100").await, state(&gate).await), (204, "on".into()));
}

#[tokio::test]
async fn of_twenty_at_once_one_stops() {
    let (_upstream, gate) = start(hooked("")).await;
    let all = futures_util::future::join_all((0..20).map(|_| tell(&gate, NOVEMBER, "100", "100")));
    assert_eq!(all.await, vec![204; 20]);
    assert_eq!((counted(&gate, "stopped").await, counted(&gate, "stopped_before").await), (1, 19));
}

#[tokio::test]
async fn what_stands_stricter_is_not_loosened() {
    let (_upstream, gate) = start(hooked("")).await;
    gate.switch("all", "off").await;
    assert_eq!((tell(&gate, NOVEMBER, "100", "100").await, state(&gate).await), (204, "off".into()));
    assert_eq!(switch(&gate, "all").await["reason"], "test");
}

#[tokio::test]
async fn what_cannot_be_read_is_acknowledged_and_counted() {
    let (upstream, gate) = start(hooked("")).await;
    let over = notice(NOVEMBER, "200", "100");
    let changed = |pointer: &str, value: Json| {
        let mut push = push_of("1", &over);
        *push.pointer_mut(pointer).unwrap() = value;
        push
    };
    let payload = |from: &str, to: &str| push_of("1", &over.replace(from, to));
    let malformed = [
        json!({}),
        json!([]),
        json!({ "message": "x" }),
        changed("/message/data", json!("%%%")),
        changed("/message/data", json!("eyI=")),
        changed("/message/data", json!(7)),
        changed("/message/data", Json::Null),
        changed("/message/attributes/budgetId", json!("../../etc \u{1b}")),
        changed("/message/attributes/budgetId", json!("")),
        payload("\"costAmount\":200,", ""),
        payload("200", "\"200\""),
        payload("200", "null"),
        payload("200", "1e400"),
        payload("200", "200,\"costAmount\":1"),
        payload("2026-11-01T07:00:00Z", "yesterday"),
        payload("2026-11-01T07:00:00Z", "2036-11-01T07:00:00Z"),
        push_of("1", "no JSON"),
    ];
    let mut foreign = [push_of("1", &over), changed("/message/attributes/schemaVersion", json!("2.0")), push_of("1", &over)];
    foreign[0]["message"]["attributes"].as_object_mut().unwrap().remove("budgetId");
    foreign[2]["message"].as_object_mut().unwrap().remove("attributes");
    for push_it in malformed.iter().chain(&foreign) {
        assert_eq!(push(&gate, push_it.clone()).await, 204, "{push_it}");
    }
    let hooks = hooks_of(&gate).with("authorization", &format!("Bearer {}", sign(&claims(&gate.clock))));
    let large = push_of("1", &format!("{over}{}", " ".repeat(64 << 10))).to_string();
    for body in ["", "{", "\u{0}", &large] {
        assert_eq!(hooks.send(http::Method::POST, "/google-budget", body.to_owned().into()).await.status, 204);
    }
    assert_eq!(counted(&gate, "malformed").await, malformed.len() as u64 + 4);
    assert_eq!(counted(&gate, "foreign").await, foreign.len() as u64);
    assert_eq!((state(&gate).await.as_str(), gate.get(ASK).await.status), ("on", 200));
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

/// Only what a notice is made of need be there, in either spelling.
#[tokio::test]
async fn a_bare_notice_is_one() {
    let (_upstream, gate) = start(hooked("")).await;
    let data = format!(r#"{{"costAmount":7,"budgetAmount":7,"costIntervalStart":"{NOVEMBER}"}}"#);
    let bare = json!({ "message": {
        "data": BASE64.encode(data), "message_id": "1", "attributes": { "budgetId": BUDGET, "schemaVersion": "1.0" },
    } });
    assert_eq!((push(&gate, bare).await, state(&gate).await), (204, "cached".into()));
}

#[tokio::test]
async fn a_body_is_not_read_from_a_stranger_nor_waited_for() {
    let (_upstream, gate) = start(hooked("").server("body_timeout = \"100ms\"")).await;
    let addr = gate.running.as_ref().unwrap().hooks.unwrap();
    let head = "POST /google-budget HTTP/1.1\r\nHost: gate\r\nContent-Length: 9\r\n";
    let mut raw = Raw::connect(addr).await;
    raw.send(format!("{head}\r\n")).await;
    assert_eq!(raw.response().await.unwrap().status, 401);
    raw.closed().await;
    let mut raw = Raw::connect(addr).await;
    raw.send(format!("{head}Authorization: Bearer {}\r\n\r\n", sign(&claims(&gate.clock)))).await;
    assert_eq!(raw.response().await.unwrap().status, 408);
    raw.closed().await;
}
