//! Alerts: what is told, once, to whom, signed; and what becomes of them when nobody listens.

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value as Json, json};

use crate::support::gate::{ADMIN_TOKEN, Gate, KEY, SECRET, Setup, fare, quote};
use crate::support::soon;
use crate::support::step::Step;
use crate::support::upstream::{FakeUpstream, Recorded};

mod trouble;

const SIGNED_BY: &str = "alert-secret-0123";

/// A receiver, which says that it has taken what it was sent.
async fn receiver() -> FakeUpstream {
    FakeUpstream::start(Step::ok(json!({})).status(204)).await
}

/// The route `quote` with `[alerts]` to a receiver.
fn told_to(receiver: &FakeUpstream, provider: &str, budget: &str) -> Setup {
    let mut setup = quote(provider, "");
    setup.body = setup.body.replace("budget = \"none\"", budget);
    setup.body += &format!("[alerts]\nwebhook = \"{}/hook?to=me\"\nsecret = \"file:{{dir}}/signing\"\n", receiver.url());
    setup
}

/// Starts it, with the secret that signs where the config says.
async fn start(setup: Setup, upstream: &FakeUpstream) -> Gate {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("signing"), SIGNED_BY).unwrap();
    std::fs::write(dir.path().join("tollgate.toml"), setup.render(dir.path(), &upstream.url())).unwrap();
    let noon = tollgate::clock::Timestamp(1_796_040_000_000_000);
    Gate::from(dir, tollgate::clock::Clock::manual(noon)).await
}

async fn ask(gate: &Gate, town: &str) -> u16 {
    gate.get(&format!("/v1/quote?from=Delhi&to={town}")).await.status
}

/// What has come, in an order that does not depend on the way.
fn alerts(receiver: &FakeUpstream) -> Vec<Json> {
    let mut alerts: Vec<Json> = receiver.requests().iter().map(read).collect();
    alerts.sort_by_key(|alert| (alert["kind"].to_string(), alert["message"].to_string()));
    alerts
}

/// Reads an alert, with all that is true of every alert.
fn read(recorded: &Recorded) -> Json {
    assert_eq!((recorded.method.as_str(), recorded.target.as_str()), ("POST", "/hook?to=me"));
    assert_eq!(recorded.header("content-type"), Some("application/json"));
    let signature = recorded.header("x-tollgate-signature").unwrap();
    let (seconds, hex) = signature.strip_prefix("t=").unwrap().split_once(",v1=").unwrap();
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(SIGNED_BY.as_bytes()).unwrap();
    mac.update(format!("{seconds}.{}", recorded.text()).as_bytes());
    let right = mac.finalize().into_bytes().iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    assert_eq!(hex, right);
    let alert: Json = serde_json::from_slice(&recorded.body).unwrap();
    for secret in [SIGNED_BY, SECRET, ADMIN_TOKEN, KEY, "Delhi", "Town", "web"] {
        assert!(!recorded.text().contains(secret), "{secret}: {alert}");
    }
    assert!(alert["id"].as_str().is_some_and(|id| id.len() == 36) && alert["at"].is_u64(), "{alert}");
    alert
}

/// Waits until alerts have come to an end in some way: sent, known, failed or dropped.
async fn done(gate: &Gate, result: &str, count: u64) {
    let label = format!("result=\"{result}\"");
    soon(&format!("{count} alerts {result}"), async {
        while gate.metric("tollgate_alerts_total", &label).await < count {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    })
    .await;
}

const FIVE_CALLS: &str = "budget = { day = \"0.025 USD\", alert = [50, 80, 100] }";

#[tokio::test]
async fn each_share_of_a_cap_is_told_once_a_day() {
    let (upstream, receiver) = (FakeUpstream::start(Step::ok(fare())).await, receiver().await);
    let gate = start(told_to(&receiver, "", FIVE_CALLS), &upstream).await;
    for town in 0..2 {
        assert_eq!(ask(&gate, &format!("Town{town}")).await, 200);
    }
    assert_eq!(receiver.calls(), 0, "40%");
    assert_eq!(ask(&gate, "Town2").await, 200);
    receiver.wait_for_calls(1).await;
    let mut alert = alerts(&receiver).remove(0);
    alert.as_object_mut().unwrap().remove("id");
    assert_eq!(
        alert,
        json!({
            "at": 1_796_040_000, "kind": "budget", "subject": "route:quote", "used": 15_000, "cap": 25_000, "percent": 60,
            "currency": "USD", "window": "day",
            "message": "50% of the budget of route:quote for the day is used: 0.015 USD of 0.025 USD",
        })
    );
    for town in 3..5 {
        assert_eq!(ask(&gate, &format!("Town{town}")).await, 200);
    }
    assert_eq!(ask(&gate, "Town5").await, 503);
    assert_eq!(ask(&gate, "Town6").await, 503);
    done(&gate, "sent", 3).await;
    assert_eq!(alerts(&receiver).iter().map(|alert| alert["percent"].as_u64().unwrap()).collect::<Vec<_>>(), [100, 60, 80]);
    gate.advance(86_400);
    for town in 6..9 {
        assert_eq!(ask(&gate, &format!("Town{town}")).await, 200);
    }
    done(&gate, "sent", 4).await;
    assert_eq!((receiver.calls(), upstream.calls(), gate.spent().await), (4, 8, 40_000));
}

#[tokio::test]
async fn what_was_told_is_known_after_a_restart() {
    let (upstream, receiver) = (FakeUpstream::start(Step::ok(fare())).await, receiver().await);
    let setup = told_to(&receiver, "", FIVE_CALLS).store("url = \"sqlite:{dir}/t.db\"");
    let gate = start(setup, &upstream).await;
    for town in 0..3 {
        assert_eq!(ask(&gate, &format!("Town{town}")).await, 200);
    }
    done(&gate, "sent", 1).await;
    let clock = gate.clock.clone();
    let gate = Gate::from(gate.stop().await, clock).await;
    assert_eq!(ask(&gate, "Town3").await, 200);
    done(&gate, "known", 1).await;
    done(&gate, "sent", 1).await;
    let told = alerts(&receiver);
    assert_eq!(told.iter().map(|alert| alert["percent"].as_u64().unwrap()).collect::<Vec<_>>(), [60, 80]);
    assert_eq!(upstream.calls(), 4);
}

#[tokio::test]
async fn a_callers_own_cap_is_told_by_a_digest() {
    let (upstream, receiver) = (FakeUpstream::start(Step::ok(fare())).await, receiver().await);
    let budget = "budget = { caller_day = \"0.010 USD\", alert = [100] }";
    let gate = start(told_to(&receiver, "", budget), &upstream).await;
    for town in 0..2 {
        assert_eq!(ask(&gate, &format!("Town{town}")).await, 200);
    }
    receiver.wait_for_calls(1).await;
    let alert = alerts(&receiver).remove(0);
    assert_eq!(alert["message"], "100% of a caller's budget of route:quote for the day is used: 0.01 USD of 0.01 USD");
    assert!(alert["caller"].as_str().is_some_and(|caller| caller.len() == 8), "{alert}");
    for town in 2..4 {
        assert_eq!(gate.other().get(&format!("/v1/quote?from=Delhi&to=Town{town}")).await.status, 200);
    }
    receiver.wait_for_calls(2).await;
    assert_ne!(alerts(&receiver)[0]["caller"], alerts(&receiver)[1]["caller"]);
    assert_eq!((upstream.calls(), gate.spent().await), (4, 20_000));
}

#[tokio::test]
async fn a_stop_by_a_budget_is_told_with_its_end() {
    let (upstream, receiver) = (FakeUpstream::start(Step::ok(fare())).await, receiver().await);
    let gate = start(told_to(&receiver, "", "budget = { day = \"0.006 USD\", stop = \"cached\" }"), &upstream).await;
    assert_eq!((ask(&gate, "Town0").await, ask(&gate, "Town1").await, ask(&gate, "Town2").await), (200, 503, 504));
    receiver.wait_for_calls(1).await;
    let alert = alerts(&receiver).remove(0);
    assert_eq!(
        (&alert["kind"], &alert["used"], &alert["percent"], &alert["message"]),
        (
            &json!("budget_stop"),
            &json!(5_000),
            &json!(83),
            &json!("the budget of route:quote for the day is used up: quote is cached until 2026-12-01T00:00:00Z")
        )
    );
    assert_eq!((receiver.calls(), upstream.calls()), (1, 1));
}

#[tokio::test]
async fn a_receiver_that_fails_is_told_again_and_one_that_refuses_is_not() {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let failing = Step::ok(json!({})).status(500);
    let receiver = FakeUpstream::start([failing.clone(), Step::close(), Step::ok(json!({}))]).await;
    let gate = start(told_to(&receiver, "", "budget = { day = \"0.010 USD\", alert = [50, 100] }"), &upstream).await;
    assert_eq!(ask(&gate, "Town0").await, 200);
    done(&gate, "sent", 1).await;
    let ids: Vec<Json> = receiver.requests().iter().map(|recorded| read(recorded)["id"].clone()).collect();
    assert!(ids.len() == 3 && ids.iter().all(|id| *id == ids[0]), "{ids:?}: the same one, so that it can be told");
    receiver.set_script(Step::ok(json!({})).status(401));
    assert_eq!(ask(&gate, "Town1").await, 200);
    done(&gate, "failed", 1).await;
    assert_eq!((receiver.calls(), upstream.calls()), (4, 2));
}

#[tokio::test]
async fn a_receiver_that_hangs_holds_up_nobody_and_what_is_too_much_is_dropped() {
    let (upstream, receiver) = (FakeUpstream::start(Step::ok(fare())).await, FakeUpstream::start(Step::hang()).await);
    let shares: Vec<String> = (1..=100).map(|share| share.to_string()).collect();
    let budget = format!("budget = {{ day = \"0.010 USD\", alert = [{}] }}", shares.join(", "));
    let gate = start(told_to(&receiver, "", &budget).server("drain = \"300ms\""), &upstream).await;
    assert_eq!((ask(&gate, "Town0").await, ask(&gate, "Town1").await), (200, 200));
    done(&gate, "dropped", 36).await;
    receiver.wait_for_calls(64).await;
    let ends = std::time::Duration::from_secs(5);
    tokio::time::timeout(ends, gate.stop()).await.expect("the drain has its limit");
    assert_eq!((receiver.calls(), upstream.calls()), (64, 2));
}
