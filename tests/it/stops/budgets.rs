//! Stops that a budget makes: when, until when, of which routes, and who ends them.

use serde_json::json;

use super::{MIDNIGHT, NOON, ask, capped, holds, makers, ok, put};
use crate::support::gate::{Gate, Setup, fare, quote};
use crate::support::soon;
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

const TWO_CALLS: &str = "budget = { day = \"0.012 USD\", stop = \"off\" }";

fn exhausted() -> (u16, String) {
    (503, "budget_exhausted".into())
}

fn off() -> (u16, String) {
    (503, "switched_off".into())
}

async fn spend(setup: Setup, calls: usize) -> (FakeUpstream, Gate) {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let gate = setup.start(&upstream).await;
    for town in 0..calls {
        assert_eq!(ask(&gate, &format!("Town{town}")).await, ok());
    }
    (upstream, gate)
}

#[tokio::test]
async fn a_cap_that_is_used_up_stops_its_route_until_its_day_ends() {
    let (upstream, gate) = spend(capped("", TWO_CALLS), 2).await;
    assert_eq!(holds(&gate, "quote").await["stops"], json!([]), "not before a call was refused");
    assert_eq!(ask(&gate, "Pune").await, exhausted());
    assert_eq!(ask(&gate, "Town1").await, off(), "answers that are kept, too: so it was configured");
    assert_eq!(
        holds(&gate, "quote").await["stops"],
        json!([{ "of": "quote", "maker": "budget", "state": "off", "since": NOON, "until": MIDNIGHT,
                 "reason": "the budget of route:quote for the day is used up" }])
    );
    for state in ["cached", "on"] {
        put(&gate, "quote", json!({ "state": state })).await;
        assert_eq!(ask(&gate, "Pune").await, off(), "an admin's word ends the admin's stop");
    }
    gate.advance(MIDNIGHT - NOON - 1);
    assert_eq!(ask(&gate, "Pune").await, off());
    gate.advance(1);
    assert_eq!(ask(&gate, "Pune").await, ok(), "by itself");
    assert_eq!(holds(&gate, "quote").await["stops"], json!([]));
    assert_eq!((upstream.calls(), gate.spent().await), (3, 15_000));
}

#[tokio::test]
async fn in_position_cached_what_is_kept_is_served_and_nothing_is_paid() {
    let (upstream, gate) = spend(capped("", "budget = { day = \"0.012 USD\", stop = \"cached\" }"), 2).await;
    assert_eq!(ask(&gate, "Pune").await, exhausted());
    assert_eq!(ask(&gate, "Town1").await, ok());
    assert_eq!(ask(&gate, "Pune").await, (504, "not_cached".into()));
    assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000));
}

#[tokio::test]
async fn an_admin_ends_it_for_the_rest_of_its_period() {
    let (upstream, gate) = spend(capped("", TWO_CALLS), 2).await;
    assert_eq!(ask(&gate, "Pune").await, exhausted());
    let on = put(&gate, "quote", json!({ "state": "on", "maker": "budget", "reason": "raised" })).await.json();
    assert_eq!((&on["state"], &on["stops"]), (&json!("on"), &json!([])));
    assert_eq!(ask(&gate, "Town1").await, ok());
    assert_eq!(ask(&gate, "Pune").await, exhausted(), "the cap is still a cap");
    assert_eq!(ask(&gate, "Town1").await, ok(), "and makes no second stop on the same day");
    gate.advance(86_400);
    for town in 2..4 {
        assert_eq!(ask(&gate, &format!("Town{town}")).await, ok());
    }
    assert_eq!(ask(&gate, "Pune").await, exhausted());
    assert_eq!(ask(&gate, "Town1").await, off(), "the next day is another");
    assert_eq!((upstream.calls(), gate.spent().await), (4, 20_000));
}

#[tokio::test]
async fn a_providers_cap_stops_each_of_its_routes_and_a_callers_none() {
    let mut setup = quote("budget = { month = \"0.017 USD\", stop = \"cached\" }", "");
    let second = setup.body.split_once("[routes.quote]").unwrap().1.replace("routes.quote", "routes.second");
    let second = second
        .replace("/v1/quote", "/v2/quote")
        .replace("budget = \"none\"", "budget = { caller_day = \"0.005 USD\", day = \"1 USD\", stop = \"off\" }");
    setup.body.push_str(&format!("[routes.second]{second}"));
    let (upstream, gate) = spend(setup, 1).await;
    let second = |town: &str| format!("/v2/quote?from=Delhi&to={town}");
    assert_eq!(gate.get(&second("Agra")).await.status, 200);
    assert_eq!(gate.get(&second("Pune")).await.status, 429, "a caller's own cap");
    assert_eq!(holds(&gate, "second").await["state"], "on");
    assert_eq!((ask(&gate, "Pune").await, ask(&gate, "Surat").await), (ok(), exhausted()));
    for route in ["quote", "second"] {
        assert_eq!(makers(&holds(&gate, route).await), [(route, "provider-budget", "cached")]);
        assert_eq!(holds(&gate, route).await["until"], MIDNIGHT, "the month ends with November");
    }
    assert_eq!(holds(&gate, "all").await["state"], "on");
    assert_eq!((upstream.calls(), gate.spent().await), (3, 15_000));
}

#[tokio::test]
async fn it_survives_the_process_on_sqlite() {
    let (upstream, gate) = spend(capped("", TWO_CALLS).store("url = \"sqlite:{dir}/t.db\""), 2).await;
    assert_eq!(ask(&gate, "Pune").await, exhausted());
    put(&gate, "quote", json!({ "state": "cached", "reason": "by hand" })).await;
    let clock = gate.clock.clone();
    let gate = Gate::from(gate.stop().await, clock).await;
    assert_eq!(ask(&gate, "Town1").await, off());
    assert_eq!(makers(&holds(&gate, "quote").await), [("quote", "budget", "off"), ("quote", "admin", "cached")]);
    gate.advance(MIDNIGHT - NOON);
    assert_eq!(ask(&gate, "Town1").await, ok(), "what is kept: the admin's stop stands");
    assert_eq!(ask(&gate, "Pune").await, (504, "not_cached".into()));
    assert_eq!(upstream.calls(), 2);
}

#[tokio::test]
async fn a_flight_in_back_off_pays_for_nothing_after_a_budget_has_stopped_it() {
    let retry =
        "retry = { attempts = 5, base = \"400ms\", cap = \"400ms\", budget = \"100%\" }\nbilled = [\"answered\", \"failed\"]";
    // The first call's failure is answered after the second call has used up the cap.
    let setup = capped(retry, "budget = { day = \"0.012 USD\", stop = \"off\" }");
    let upstream = FakeUpstream::start([Step::ok(json!({})).status(503).gated(), Step::ok(fare())]).await;
    let gate = setup.start(&upstream).await;
    let client = gate.client.clone();
    let flight = tokio::spawn(async move { client.get("/v1/quote?from=Delhi&to=Agra").await });
    upstream.wait_for_calls(1).await;
    assert_eq!(ask(&gate, "Pune").await, ok());
    assert_eq!(ask(&gate, "Surat").await, exhausted());
    upstream.release(1);
    let refused = soon("the flight's end", flight).await.unwrap();
    assert_eq!((refused.status, refused.code()), off());
    assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000));
}
