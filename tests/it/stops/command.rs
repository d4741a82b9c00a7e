//! `tollgate switch`, as a process, in front of a running gateway.

use std::path::Path;
use std::process::Command;

use crate::support::gate::{ADMIN_TOKEN, Gate, fare, quote};
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

async fn switch(dir: &Path, arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.current_dir(dir).env_clear().arg("switch").args(arguments);
    let ran = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: ran.status.code(), out: text(ran.stdout), err: text(ran.stderr) }
}

/// As `tollgate.toml` has port 0, it is said where the gateway is.
async fn at(gate: &Gate, arguments: &[&str]) -> Ran {
    let admin = format!("http://{}/", gate.admin_addr);
    let all: Vec<&str> = arguments.iter().copied().chain(["--admin", &admin]).collect();
    switch(gate.dir.path(), &all).await
}

#[tokio::test]
async fn it_sets_and_shows_a_switch() {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let gate = quote("", "").start(&upstream).await;
    let ran = at(&gate, &["quote", "off", "--reason", "bill alarm"]).await;
    let off = "quote is off\n  off by admin since 2026-11-30T12:00:00Z: bill alarm\n";
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(0), off, ""));
    assert_eq!(super::ask(&gate, "Agra").await, (503, "switched_off".into()));
    assert_eq!(at(&gate, &["quote"]).await.out, off);
    let all = at(&gate, &["all", "cached"]).await;
    assert_eq!(all.out, "all is cached\n  cached by admin since 2026-11-30T12:00:00Z\n");
    let on = at(&gate, &["quote", "on"]).await;
    assert_eq!((on.code, on.out.as_str()), (Some(0), "quote is cached\n  cached (all) by admin since 2026-11-30T12:00:00Z\n"));
    assert_eq!(at(&gate, &["all", "on"]).await.out, "all is on\n");
    assert_eq!(super::ask(&gate, "Agra").await, super::ok());
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

#[tokio::test]
async fn what_goes_wrong_is_said_in_words() {
    let upstream = FakeUpstream::start(Step::ok(fare())).await;
    let gate = quote("", "").start(&upstream).await;
    let dir = gate.dir.path();
    let says = |ran: Ran, code: i32, words: &str| {
        assert!(!ran.err.contains(ADMIN_TOKEN), "{}", ran.err);
        assert_eq!((ran.code, ran.out.as_str()), (Some(code), ""), "{}", ran.err);
        assert!(ran.err.contains(words), "{words}: {}", ran.err);
    };
    says(at(&gate, &["nowhere", "off"]).await, 1, "refuses (404): there is no route \"nowhere\"");
    says(at(&gate, &["../routes", "off"]).await, 1, "refuses (404): there is no route");
    says(at(&gate, &["quote", "on", "--maker", "budget"]).await, 1, "no stop made by \"budget\" stands on \"quote\"");
    says(at(&gate, &["quote", "paused"]).await, 2, "possible values: on, cached, off");
    says(at(&gate, &[]).await, 2, "Usage");
    says(switch(dir, &["quote", "off"]).await, 1, "say --admin URL");
    says(switch(dir, &["quote", "off", "-c", "none.toml"]).await, 78, "none.toml:1:1: cannot be read");
    says(switch(dir, &["quote", "off", "--admin", "http://127.0.0.1:9"]).await, 1, "no gateway answers at http://127.0.0.1:9");
    says(switch(dir, &["quote", "off", "--admin", &upstream.url()]).await, 1, "is no tollgate gateway");
    std::fs::write(dir.join("other"), "another-token").unwrap();
    std::fs::write(dir.join("other.toml"), "[admin]\ntoken = \"file:other\"\n[providers.p]\nkey = \"env:NOT_SET\"\n").unwrap();
    let wrong = at(&gate, &["quote", "off", "-c", "other.toml"]).await;
    assert!(wrong.err.contains("refuses the admin token") && !wrong.err.contains("another-token"), "{}", wrong.err);
    std::fs::write(dir.join("none.toml"), "[admin]\nlisten = \"127.0.0.1:9099\"\n").unwrap();
    says(switch(dir, &["quote", "off", "-c", "none.toml"]).await, 1, "there is no admin token");
    assert_eq!(super::ask(&gate, "Agra").await, super::ok(), "nothing was set");
}
