//! `tollgate switch`, as a process, in front of a running gateway.

use crate::support::command::{Ran, at, beside};
use crate::support::gate::{Gate, fare, quote};
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

async fn switch(gate: &Gate, arguments: &[&str]) -> Ran {
    at(gate, &[&["switch"], arguments].concat()).await
}

#[tokio::test]
async fn it_sets_and_shows_a_switch() {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let gate = quote("", "").start(&upstream).await;
    let ran = switch(&gate, &["quote", "off", "--reason", "bill alarm"]).await;
    let off = "quote is off\n  off by admin since 2026-11-30T12:00:00Z: bill alarm\n";
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(0), off, ""));
    assert_eq!(super::ask(&gate, "Agra").await, (503, "switched_off".into()));
    assert_eq!(switch(&gate, &["quote"]).await.out, off);
    let all = switch(&gate, &["all", "cached"]).await;
    assert_eq!(all.out, "all is cached\n  cached by admin since 2026-11-30T12:00:00Z\n");
    let on = switch(&gate, &["quote", "on"]).await;
    assert_eq!((on.code, on.out.as_str()), (Some(0), "quote is cached\n  cached (all) by admin since 2026-11-30T12:00:00Z\n"));
    assert_eq!(switch(&gate, &["all", "on"]).await.out, "all is on\n");
    assert_eq!(super::ask(&gate, "Agra").await, super::ok());
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn what_goes_wrong_is_said_in_words() {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let gate = quote("", "").start(&upstream).await;
    let dir = gate.dir.path();
    switch(&gate, &["nowhere", "off"]).await.failed(1, "refuses (404): there is no route \"nowhere\"");
    switch(&gate, &["../routes", "off"]).await.failed(1, "refuses (404): there is no route");
    switch(&gate, &["quote", "on", "--maker", "budget"]).await.failed(1, "no stop made by \"budget\" stands on \"quote\"");
    switch(&gate, &["quote", "paused"]).await.failed(2, "possible values: on, cached, off");
    switch(&gate, &[]).await.failed(2, "Usage");
    beside(dir, &["switch", "quote", "off"]).await.failed(1, "say --admin URL");
    beside(dir, &["switch", "quote", "off", "-c", "none.toml"]).await.failed(78, "none.toml:1:1: cannot be read");
    beside(dir, &["switch", "quote", "off", "--admin", "http://127.0.0.1:9"])
        .await
        .failed(1, "no gateway answers at http://127.0.0.1:9");
    let stranger = FakeUpstream::start(Step::ok(fare())).await;
    beside(dir, &["switch", "quote", "off", "--admin", &stranger.url()]).await.failed(1, "is no tollgate gateway");
    std::fs::write(dir.join("other"), "another-token").unwrap();
    std::fs::write(dir.join("other.toml"), "[admin]\ntoken = \"file:other\"\n[providers.p]\nkey = \"env:NOT_SET\"\n").unwrap();
    let wrong = switch(&gate, &["quote", "off", "-c", "other.toml"]).await;
    assert!(wrong.err.contains("refuses the admin token") && !wrong.err.contains("another-token"), "{}", wrong.err);
    std::fs::write(dir.join("none.toml"), "[admin]\nlisten = \"127.0.0.1:9099\"\n").unwrap();
    beside(dir, &["switch", "quote", "off", "-c", "none.toml"]).await.failed(1, "there is no admin token");
    assert_eq!(super::ask(&gate, "Agra").await, super::ok(), "nothing was set");
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}
