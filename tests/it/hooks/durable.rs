//! What outlives a process, and what a store in trouble changes.

use rusqlite::Connection;

use super::*;

async fn again(gate: Gate) -> Gate {
    let clock = gate.clock.clone();
    Gate::from(gate.stop().await, clock).await
}

fn file(gate: &Gate) -> Connection {
    Connection::open(gate.dir.path().join("tollgate.db")).unwrap()
}

#[tokio::test]
async fn a_stop_outlives_a_restart_and_so_does_that_an_admin_ended_it() {
    let (_upstream, gate) = start(hooked("").store(SQLITE)).await;
    assert_eq!(tell(&gate, NOVEMBER, "120", "100").await, 204);
    let mut gate = again(gate).await;
    assert_eq!(state(&gate).await, "cached");
    open(&gate).await;
    // Redelivered at once, after a month, and in a yearly budget's last days.
    for days in [0, 31, 300] {
        gate.advance(days * 86_400);
        gate = again(gate).await;
        assert_eq!(tell(&gate, NOVEMBER, "120", "100").await, 204);
        assert_eq!((state(&gate).await.as_str(), counted(&gate, "stopped_before").await), ("on", 1), "{days} days later");
    }
    assert_eq!((tell(&gate, DECEMBER, "120", "100").await, state(&gate).await), (204, "cached".into()), "another matter");
}

#[tokio::test]
async fn without_the_store_it_is_to_come_again() {
    let (_upstream, gate) = start(hooked("").store(SQLITE)).await;
    let lock = file(&gate);
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let reply = push_by(&gate, &sign(&claims(&gate.clock)), push_of("1", &notice(NOVEMBER, "120", "100"))).await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
    assert_eq!(state(&gate).await, "on", "nobody knows whether it was acted on before");
    // What asks nothing of the store is dealt with.
    assert_eq!(tell(&gate, NOVEMBER, "20", "100").await, 204);
    assert_eq!(push(&gate, json!({})).await, 204);
    drop(lock);
    assert_eq!((tell(&gate, NOVEMBER, "120", "100").await, state(&gate).await), (204, "cached".into()));
    assert_eq!((counted(&gate, "store_unavailable").await, counted(&gate, "stopped").await), (1, 1));
    assert_eq!(state(&again(gate).await).await, "cached");
}

/// Takes marks, and no switches.
const TROUBLE: &str = "CREATE TRIGGER no BEFORE INSERT ON switch BEGIN SELECT RAISE(ABORT, 'trouble'); END";

#[tokio::test]
async fn a_stop_that_was_not_stored_holds_here_and_is_stored_when_it_comes_again() {
    let (_upstream, gate) = start(hooked("").store(SQLITE)).await;
    file(&gate).execute_batch(TROUBLE).unwrap();
    for _ in 0..3 {
        assert_eq!((tell(&gate, NOVEMBER, "120", "100").await, state(&gate).await), (503, "cached".into()));
    }
    file(&gate).execute_batch("DROP TRIGGER no").unwrap();
    assert_eq!(tell(&gate, NOVEMBER, "120", "100").await, 204);
    let gate = again(gate).await;
    assert_eq!(state(&gate).await, "cached");
    open(&gate).await;
    assert_eq!((tell(&gate, NOVEMBER, "120", "100").await, state(&gate).await), (204, "on".into()));
}

/// Between the mark and the switch an instance dies: whoever hears the notice next does what was begun.
#[tokio::test]
async fn a_stop_that_was_begun_is_made_by_the_next_process() {
    let (_upstream, gate) = start(hooked("").store(SQLITE)).await;
    file(&gate).execute_batch(TROUBLE).unwrap();
    assert_eq!(tell(&gate, NOVEMBER, "120", "100").await, 503);
    file(&gate).execute_batch("DROP TRIGGER no").unwrap();
    let gate = again(gate).await;
    assert_eq!(state(&gate).await, "on");
    assert_eq!((tell(&gate, NOVEMBER, "120", "100").await, state(&gate).await), (204, "cached".into()));
    open(&gate).await;
    let gate = again(gate).await;
    assert_eq!((tell(&gate, NOVEMBER, "120", "100").await, state(&gate).await), (204, "on".into()));
}

/// Both marks are there and the switch is not: it was never made, whatever the marks say.
#[tokio::test]
async fn a_stop_of_which_there_are_only_marks_is_made() {
    let (_upstream, gate) = start(hooked("").store(SQLITE)).await;
    assert_eq!((tell(&gate, NOVEMBER, "120", "100").await, state(&gate).await), (204, "cached".into()));
    assert_eq!(file(&gate).execute("DELETE FROM switch", []).unwrap(), 1);
    let gate = again(gate).await;
    assert_eq!(state(&gate).await, "on");
    assert_eq!((tell(&gate, NOVEMBER, "120", "100").await, state(&gate).await), (204, "cached".into()));
}
