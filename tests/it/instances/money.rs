//! One purse for all instances.

use std::time::Duration;

use crate::support::fleet::Fleet;
use crate::support::fleet::processes::Processes;
use crate::support::fleet::volley::{get, volley};
use crate::support::gate::{Setup, fare, quote};
use crate::support::redis::RedisServer;
use crate::support::soon;
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

/// The quote route under a budget, at ten cents a call.
fn capped(budget: &str, provider: &str, redis: &RedisServer) -> Setup {
    let mut setup = quote(provider, "");
    setup.body = setup.body.replace("budget = \"none\"", &format!("budget = {{ {budget} }}"));
    setup.body = setup.body.replace("price = \"0.005 USD\"", "price = \"0.10 USD\"");
    setup.redis(&redis.url())
}

fn town(n: usize) -> String {
    get(&format!("/v1/quote?from=Delhi&to=Town{n}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s_01_a_cap_is_hard_over_two_instances() {
    let redis = RedisServer::start().await;
    let upstream = FakeUpstream::start(Step::ok(fare()).delay(Duration::from_millis(300))).await;
    let fleet = Fleet::start(2, &upstream, |_| capped("day = \"5.00 USD\"", "", &redis)).await;
    let replies = fleet.ask((0..48).map(town)).await;
    assert!(replies.iter().flatten().all(|reply| reply.status == 200));
    let replies = fleet.ask((100..120).map(town)).await;
    let paid = replies.iter().flatten().filter(|reply| reply.status == 200).count();
    let refused = replies.iter().flatten().filter(|reply| reply.status == 503).count();
    assert_eq!((paid, refused, upstream.calls()), (2, 18, 50));
    assert_eq!(fleet.spent().await, 5_000_000);
}

/// Retries on, half of the attempts failing, one instance killed in the middle: never a call more than the cap holds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s_01_a_cap_is_hard_though_an_instance_is_killed() {
    const CAP: usize = 20;
    let redis = RedisServer::start().await;
    let slow = |status| Step::ok(fare()).status(status).delay(Duration::from_millis(150));
    let script: Vec<Step> = (0..60).map(|n| slow(if n % 2 == 0 { 503 } else { 200 })).collect();
    let upstream = FakeUpstream::start(script).await;
    let provider =
        "retry = { attempts = 3, base = \"20ms\", cap = \"40ms\", minimum = \"100/s\" }\nbreaker = { failures = 1000 }";
    let mut fleet = Processes::start(2, &upstream, |_| capped("day = \"2.00 USD\"", provider, &redis)).await;
    let addrs = fleet.addrs();
    let asked = tokio::spawn(async move { volley(&addrs, (0..120).map(town)).await });
    upstream.wait_for_calls(5).await;
    assert!(upstream.calls() <= CAP);
    fleet.kill(0);
    let replies = asked.await.unwrap();
    assert!(replies.iter().flatten().all(|reply| matches!(reply.status, 200 | 502 | 503)), "{replies:?}");
    // What the dead one had in flight stays spent: nobody gets it again.
    let more = volley(&fleet.addrs(), (200..260).map(town)).await;
    assert!(more.iter().flatten().all(|reply| matches!(reply.status, 200 | 502 | 503)));
    assert!(upstream.calls() <= CAP, "{} calls", upstream.calls());
    // The other half of the purse was the other instance's to spend.
    assert!(upstream.calls() >= CAP / 4, "{} calls", upstream.calls());
}

/// Nothing is paid under a cap while the store is away: it is not known what is spent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o_03_nothing_is_paid_under_a_cap_while_the_store_is_away() {
    let mut redis = RedisServer::durable().await;
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let fleet = Fleet::start(1, &upstream, |_| capped("day = \"5.00 USD\"", "", &redis)).await;
    assert_eq!(fleet[0].get("/v1/quote?from=Delhi&to=Agra").await.status, 200);
    redis.kill();
    let refused = fleet[0].get("/v1/quote?from=Delhi&to=Goa").await;
    assert_eq!((refused.status, refused.code().as_str(), refused.header("retry-after")), (503, "store_unavailable", Some("1")));
    assert!(fleet[0].get("/v1/quote?from=Delhi&to=Agra").await.header("cache-status").unwrap().contains("hit"));
    redis.restart().await;
    soon("recovery", async {
        while fleet[0].get("/v1/quote?from=Delhi&to=Goa").await.status != 200 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert_eq!((upstream.calls(), fleet.spent().await), (2, 200_000));
}

/// A store that comes back empty has forgotten what was spent: nothing is paid under a cap until somebody says that this is known.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o_01_a_store_that_lost_its_records_pays_for_nothing_until_told() {
    let mut redis = RedisServer::start().await;
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let fleet = Fleet::start(2, &upstream, |_| capped("day = \"5.00 USD\"", "", &redis)).await;
    assert_eq!(fleet[0].get("/v1/quote?from=Delhi&to=Agra").await.status, 200);
    redis.restart().await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    for nth in 0..2 {
        let refused = fleet[nth].get("/v1/quote?from=Delhi&to=Goa").await;
        assert_eq!((refused.status, refused.code().as_str()), (503, "store_unavailable"), "{refused:?}");
    }
    assert_eq!(upstream.calls(), 1);
    let told = fleet[0].admin.send(http::Method::POST, "/v1/spend/accept-loss", "{}".into()).await;
    assert!((200..300).contains(&told.status), "{told:?}");
    for nth in 0..2 {
        soon("paying again", async {
            while fleet[nth].get(&format!("/v1/quote?from=Delhi&to=Town{nth}")).await.status != 200 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
    }
    assert_eq!(upstream.calls(), 3);
}
