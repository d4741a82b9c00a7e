//! One allowance per caller over all instances.

use std::time::Duration;

use serde_json::json;

use crate::support::fleet::volley::get;
use crate::support::fleet::{Fleet, skewed};
use crate::support::gate::{Setup, fare, quote};
use crate::support::redis::RedisServer;
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

const QUOTE: &str = "/v1/quote?from=Delhi&to=Jaipur";

/// L-02: the instances' own clocks neither mint nor take tokens.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l_02_skewed_instance_clocks_mint_no_tokens() {
    for skew in [-10, 10] {
        let redis = RedisServer::start().await;
        let upstream = FakeUpstream::start(Step::ok(fare())).await;
        let route = "limits = { caller = { burst = 4, rate = \"2/m\" } }";
        let fleet = Fleet::start(2, &upstream, |nth| (quote("", route).redis(&redis.url()), skewed([0, skew][nth]))).await;
        let mut admitted = 0;
        for nth in [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0] {
            admitted += u32::from(fleet[nth].get(QUOTE).await.status == 200);
        }
        assert_eq!(admitted, 4, "skew {skew}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_has_one_allowance_and_a_provider_one_quota() {
    let redis = RedisServer::start().await;
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let route = "limits = { caller = { burst = 30, rate = \"1/h\" } }";
    let fleet = Fleet::start(3, &upstream, |_| quote("quota = { burst = 7, rate = \"1/h\" }", route).redis(&redis.url())).await;
    let replies = fleet.ask((0..60).map(|nth| get(&format!("/v1/quote?from=Delhi&to=Town{nth}")))).await;
    let count = |status: u16, code: &str| {
        let same = |reply: &&crate::support::raw::Response| {
            reply.status == status && (code.is_empty() || reply.json()["code"] == json!(code))
        };
        replies.iter().flatten().filter(same).count()
    };
    assert_eq!((count(200, ""), count(429, "busy"), count(429, "slow_down")), (7, 23, 30));
    assert_eq!((upstream.calls(), fleet.spent().await), (7, 35_000));
}

/// A pause one instance was told is heard by the others before they ask.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_providers_pause_is_everybodys() {
    let redis = RedisServer::start().await;
    let busy = Step::ok(json!({})).status(429).header("retry-after", "60");
    let upstream = FakeUpstream::start(busy).await;
    let fleet = Fleet::start(2, &upstream, |_| quote("", "").redis(&redis.url())).await;
    assert_eq!(fleet[0].get(QUOTE).await.code(), "upstream_busy");
    crate::support::soon("the pause to be heard", async {
        while !fleet[1].admin.get("/v1/status").await.text().contains("\"google-routes\":1") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let reply = fleet[1].get("/v1/quote?from=Delhi&to=Agra").await;
    assert_eq!((reply.status, reply.code().as_str(), upstream.calls()), (503, "upstream_busy", 1));
    let wait: u64 = reply.header("retry-after").unwrap().parse().unwrap();
    assert!((50..=60).contains(&wait), "{wait}");
}

fn company() -> Setup {
    Setup::new(
        "[providers.companies-house]\npreset = \"companies-house\"\nbase_url = \"{upstream}\"\nkey = \"{secret}\"\nprice = \"0.005 USD\"\n\
         retry = { attempts = 1 }\n[routes.company]\nprovider = \"companies-house\"\noperation = \"company\"\nbudget = \"none\"\n\
         lockout = { misses = 5, window = \"1h\", first = \"60s\", max = \"24h\" }\n",
    )
}

/// guesses made at once on two instances share one count.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_03_parallel_guesses_on_two_instances_stay_within_the_allowance() {
    let redis = RedisServer::start().await;
    let missing =
        Step::ok(json!({ "errors": [{ "error": "company-profile-not-found" }] })).status(404).delay(Duration::from_millis(200));
    let upstream = FakeUpstream::start(missing).await;
    let fleet = Fleet::start(2, &upstream, |_| company().redis(&redis.url())).await;
    let replies = fleet.ask((0..100).map(|nth| get(&format!("/company/{nth:08}")))).await;
    assert_eq!(upstream.calls(), 5, "no more than the allowance reaches the provider");
    assert!(replies.iter().flatten().all(|reply| matches!(reply.status, 404 | 429)), "{replies:?}");
    // Now the right number, unknown ones, and one that is stored: all alike, on both instances, and none of them costs anything.
    upstream.set_script(Step::ok(json!({ "company_name": "ACME LTD" })));
    let stored = fleet[0].other().get(&upstream.requests()[0].target).await;
    for nth in 0..100 {
        let gate = &fleet[nth % 2];
        let number = if nth < 2 { "SC000001".to_owned() } else { format!("9{nth:07}") };
        let locked = gate.get(&format!("/company/{number}")).await;
        assert_eq!((locked.status, &locked.body), (404, &stored.body), "{number}");
        assert!(locked.headers.keys().eq(stored.headers.keys()), "{locked:?}");
    }
    assert_eq!((upstream.calls(), fleet.spent().await), (5, 25_000));
    // Cleared on one, the caller goes on on the other.
    let cleared = fleet[0].admin.send(http::Method::DELETE, "/v1/lockouts/company/web", "".into()).await;
    assert_eq!((cleared.status, fleet[1].get("/company/SC000001").await.status), (204, 200));
}
