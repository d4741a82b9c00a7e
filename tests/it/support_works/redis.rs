//! The Redis of the tests: that each trouble is the one it is called.

use std::time::Duration;

use tokio::time::Instant;

use crate::support::redis::RedisServer;
use crate::support::redis::connection::Connection;
use crate::support::redis::trouble::Trouble;
use crate::support::resp::Reply;

const WRITE: [&str; 4] = ["EVAL", "return redis.call('INCR', KEYS[1])", "1", "n"];

#[tokio::test]
async fn it_forgets_all_on_a_restart_unless_it_is_durable() {
    for (mut server, left) in [(RedisServer::start().await, 0), (RedisServer::durable().await, 2)] {
        server.command(&["SET", "a", "1"]).await;
        server.command(&["SET", "b", "1", "PX", "100000"]).await;
        assert_eq!(server.keys().await, ["a", "b"]);
        assert!(server.ttl("a").await.is_none() && server.ttl("b").await > Some(Duration::from_secs(50)));
        let port = server.port();
        server.kill();
        server.kill();
        assert_eq!(Connection::to(server.addr()).await.unwrap_err().kind(), std::io::ErrorKind::ConnectionRefused);
        server.restart().await;
        assert_eq!((server.port(), server.keys().await.len()), (port, left));
        server.flush_all().await;
        assert!(server.keys().await.is_empty());
    }
}

#[tokio::test]
async fn flushed_scripts_are_not_found() {
    let server = RedisServer::start().await;
    let hash = server.command(&["SCRIPT", "LOAD", "return 7"]).await.text();
    assert_eq!(server.command(&["EVALSHA", &hash, "0"]).await, Reply::Int(7));
    server.flush_scripts().await;
    assert_eq!(server.command(&["EVALSHA", &hash, "0"]).await.code(), Some("NOSCRIPT"));
}

#[tokio::test]
async fn a_server_in_trouble_says_no_and_is_well_again() {
    for durable in [false, true] {
        let mut server = if durable { RedisServer::durable().await } else { RedisServer::start().await };
        let mut written = 0;
        for trouble in Trouble::ALL {
            let mut old = server.connect().await;
            server.begin(trouble).await;
            match trouble {
                Trouble::Down => {
                    assert!(old.command(&WRITE).await.is_err() && Connection::to(server.addr()).await.is_err());
                    written *= i64::from(durable);
                }
                Trouble::Hangs => {
                    old.send(&WRITE).await.unwrap();
                    let reply = tokio::time::timeout(Duration::from_millis(50), old.reply()).await;
                    assert!(reply.is_err(), "{reply:?}");
                    written += 1;
                }
                _ => assert_eq!(server.command(&WRITE).await.code(), trouble.code(), "{trouble:?}"),
            }
            server.end(trouble).await;
            if trouble == Trouble::Hangs {
                assert_eq!(old.reply().await.unwrap(), Reply::Int(written), "what was sent meanwhile is done");
            }
            written += 1;
            assert_eq!(server.command(&WRITE).await, Reply::Int(written), "after {trouble:?}, durable: {durable}");
            assert_eq!(server.keys().await, ["n"]);
        }
    }
}

#[tokio::test]
async fn replies_of_the_third_protocol_are_read() {
    let server = RedisServer::start().await;
    let mut client = server.connect().await;
    assert!(matches!(client.command(&["HELLO", "3"]).await.unwrap(), Reply::Map(_)));
    client.command(&["CLIENT", "TRACKING", "ON", "BCAST", "NOLOOP"]).await.unwrap();
    assert_eq!(client.command(&["GET", "k"]).await.unwrap(), Reply::Null);
    server.command(&["SET", "k", "v"]).await;
    let pushed = Reply::Push(vec!["invalidate".into(), Reply::List(vec!["k".into()])]);
    assert_eq!(client.reply().await.unwrap(), pushed);
    assert_eq!(client.command(&["ZADD", "z", "1.5", "m"]).await.unwrap(), Reply::Int(1));
    assert_eq!(client.command(&["ZSCORE", "z", "m"]).await.unwrap(), Reply::Double(1.5));
}

#[tokio::test]
async fn nothing_is_left_when_it_is_dropped() {
    let server = RedisServer::start().await;
    let id = u32::try_from(server.info("process_id").await).unwrap();
    server.stop();
    drop(server);
    assert!(!std::path::Path::new(&format!("/proc/{id}")).exists());
}

#[test]
fn nothing_is_left_when_a_test_ends_without_dropping() {
    let mut sleeper = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let leash = crate::support::signal::Leash::of(sleeper.id());
    leash.let_go();
    let began = Instant::now();
    assert!(!sleeper.wait().unwrap().success() && began.elapsed() < Duration::from_secs(20));
}
