//! Fleets. With a store each, a question is paid once an instance: which shows whom a request went to.

use std::net::SocketAddr;
use std::time::Duration;

use tollgate::clock::Clock;

use crate::support::fleet::processes::Processes;
use crate::support::fleet::volley::{get, volley};
use crate::support::fleet::{Fleet, skewed};
use crate::support::gate::{fare, quote};
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

const QUOTE: &str = "/v1/quote?from=Delhi&to=Jaipur";

#[tokio::test]
async fn the_instances_are_asked_in_turn_and_counted_together() {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let fleet = Fleet::start(3, &upstream, |_| quote("", "")).await;
    let replies = fleet.ask((0..9).map(|_| get(QUOTE))).await;
    assert!(replies.iter().flatten().filter(|reply| reply.status == 200).count() == 9, "{replies:?}");
    assert_eq!((upstream.calls(), fleet.spent().await), (3, 15_000));
    assert_eq!(fleet[2].metric("tollgate_requests_total", "").await, 3);
    assert_eq!(fleet.metric("tollgate_requests_total", "").await, 9);
}

#[tokio::test]
async fn responses_come_in_the_order_of_the_requests() {
    let upstream = FakeUpstream::start(Step::echo()).await;
    let targets: Vec<String> = (0..40).map(|nth| format!("/{nth}")).collect();
    let replies = volley(&[upstream.addr()], targets.iter().map(|target| get(target))).await;
    let echoed: Vec<String> =
        replies.iter().map(|reply| reply.as_ref().unwrap().json()["target"].as_str().unwrap().into()).collect();
    assert_eq!(echoed, targets);
    upstream.set_script(Step::close());
    assert_eq!(volley(&[upstream.addr()], [get("/")]).await, [None]);
}

#[tokio::test]
async fn each_instance_may_have_a_clock_of_its_own() {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let fleet = Fleet::start(2, &upstream, |nth| (quote("", ""), skewed([-10, 10][nth]))).await;
    let [behind, ahead] = [&fleet[0], &fleet[1]].map(|gate| gate.clock.now());
    assert!(behind < Clock::system().now() && ahead.since(behind) >= Duration::from_secs(20));
    fleet.ask([get(QUOTE), get(QUOTE)]).await;
    fleet[0].advance(100_000);
    assert_eq!(fleet[1].clock.now(), ahead);
}

#[tokio::test]
async fn processes_are_killed_stopped_and_started_again() {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let mut fleet = Processes::start(2, &upstream, |_| quote("", "").store("url = \"sqlite:{dir}/t.db\"")).await;
    let status = |replies: Vec<Option<crate::support::raw::Response>>| -> Vec<u16> {
        replies.into_iter().map(|reply| reply.map_or(0, |reply| reply.status)).collect()
    };
    assert_eq!(status(fleet.ask((0..4).map(|_| get(QUOTE))).await), [200; 4]);
    assert_eq!((upstream.calls(), fleet.spent().await), (2, 10_000));

    fleet.kill(0);
    assert_eq!(status(fleet.ask([get(QUOTE)]).await), [200], "of the one that is left");
    fleet.restart(0).await;
    assert_eq!(fleet.member(0).client.get(QUOTE).await.status, 200);

    fleet.stop(1);
    let stopped: SocketAddr = fleet.member(1).addr;
    let mut asker = tokio::spawn(async move { volley(&[stopped], [get(QUOTE)]).await });
    assert!(tokio::time::timeout(Duration::from_millis(50), &mut asker).await.is_err());
    fleet.go_on(1);
    assert_eq!(status(asker.await.unwrap()), [200]);
    assert_eq!(upstream.calls(), 2, "all from their files");

    fleet.stop(1);
    let ids = [0, 1].map(|nth| fleet.member(nth).id());
    drop(fleet);
    assert!(ids.iter().all(|id| !std::path::Path::new(&format!("/proc/{id}")).exists()));
}
