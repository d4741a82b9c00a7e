//! The fault proxy: that each fault is the one it is called, in front of a real Redis.

use std::io::ErrorKind;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;

use crate::support::fault_proxy::{FaultProxy, Lose};
use crate::support::redis::RedisServer;
use crate::support::redis::connection::Connection;
use crate::support::resp::Reply;
use crate::support::soon;

const INCR: [&str; 2] = ["INCR", "n"];

async fn before_redis() -> (RedisServer, FaultProxy, Connection) {
    let redis = RedisServer::start().await;
    let proxy = FaultProxy::before(redis.addr()).await;
    let client = Connection::to(proxy.addr()).await.unwrap();
    (redis, proxy, client)
}

/// The number of INCRs that were carried out.
async fn carried_out(redis: &RedisServer) -> i64 {
    match redis.command(&["GET", "n"]).await {
        Reply::Null => 0,
        reply => reply.text().parse().unwrap(),
    }
}

/// Nothing comes for a while: as long as one cares to wait.
async fn silent(client: &mut Connection) {
    let reply = tokio::time::timeout(Duration::from_millis(50), client.reply()).await;
    assert!(reply.is_err(), "{reply:?}");
}

#[tokio::test]
async fn without_a_fault_all_goes_through_and_is_counted() {
    let (redis, proxy, mut client) = before_redis().await;
    let long = "x".repeat(2_000_000);
    assert_eq!(client.command(&["SET", "long", &long]).await.unwrap(), Reply::ok());
    assert_eq!(client.command(&["get", "long"]).await.unwrap().text(), long);
    for _ in 0..500 {
        client.send(&INCR).await.unwrap();
    }
    for n in 1..=500 {
        assert_eq!(client.reply().await.unwrap(), Reply::Int(n));
    }
    let mut second = Connection::to(proxy.addr()).await.unwrap();
    second.command(&["EVALSHA", "none", "0"]).await.unwrap();
    assert_eq!((proxy.connections(), proxy.open(), carried_out(&redis).await), (2, 2, 500));
    let counts = ["SET", "GET", "INCR", "EVALSHA", "PING"].map(|name| proxy.commands(name));
    assert_eq!((counts, proxy.lost()), ([1, 1, 500, 1, 0], 0));
    drop((client, second));
    soon("their end", async {
        while proxy.open() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_link_that_hangs_goes_on_or_is_cut() {
    let (redis, proxy, mut client) = before_redis().await;
    proxy.hang().await;
    let mut newcomer = Connection::to(proxy.addr()).await.unwrap();
    client.send(&INCR).await.unwrap();
    newcomer.send(&INCR).await.unwrap();
    proxy.wait_for_commands("INCR", 2).await;
    silent(&mut client).await;
    silent(&mut newcomer).await;
    assert_eq!(carried_out(&redis).await, 0);
    proxy.pass().await;
    let mut replies = [client.reply().await.unwrap().int(), newcomer.reply().await.unwrap().int()];
    replies.sort_unstable();
    assert_eq!(replies, [1, 2], "late, and carried out");

    proxy.hang().await;
    client.send(&INCR).await.unwrap();
    proxy.wait_for_commands("INCR", 3).await;
    proxy.cut().await;
    proxy.pass().await;
    assert!(soon("the end", client.reply()).await.is_err());
    assert_eq!((carried_out(&redis).await, proxy.open()), (2, 0));
}

#[tokio::test]
async fn delays_are_of_each_direction_and_do_not_add_up() {
    let (redis, proxy, mut client) = before_redis().await;
    let (there, back) = (Duration::from_millis(40), Duration::from_millis(60));
    proxy.delay(there, back);
    let began = Instant::now();
    for _ in 0..100 {
        client.send(&INCR).await.unwrap();
    }
    for _ in 0..100 {
        client.reply().await.unwrap();
    }
    let took = began.elapsed();
    assert!(took >= there + back && took < (there + back) * 20, "{took:?}, and one after the other 10 s");
    assert_eq!(carried_out(&redis).await, 100);
    proxy.pass().await;
    client.command(&INCR).await.unwrap();
}

#[tokio::test]
async fn a_black_hole_swallows_newcomers_for_good() {
    let (redis, proxy, mut client) = before_redis().await;
    client.command(&INCR).await.unwrap();
    proxy.black_hole().await;
    let mut newcomer = Connection::to(proxy.addr()).await.unwrap();
    newcomer.send(&INCR).await.unwrap();
    proxy.wait_for_commands("INCR", 2).await;
    assert_eq!(client.command(&INCR).await.unwrap(), Reply::Int(2), "old connections go on");
    proxy.pass().await;
    silent(&mut newcomer).await;
    assert_eq!(carried_out(&redis).await, 2);
    proxy.cut().await;
    assert!(soon("the end", newcomer.reply()).await.is_err());
}

#[tokio::test]
async fn refused_is_refused_and_down_cuts_too() {
    let (redis, proxy, mut client) = before_redis().await;
    client.command(&INCR).await.unwrap();
    for round in 0..20 {
        proxy.refuse().await;
        assert_eq!(Connection::to(proxy.addr()).await.unwrap_err().kind(), ErrorKind::ConnectionRefused, "{round}");
        client.command(&INCR).await.unwrap();
        proxy.pass().await;
        Connection::to(proxy.addr()).await.unwrap().command(&INCR).await.unwrap();
    }
    proxy.down().await;
    assert!(client.command(&INCR).await.is_err() && Connection::to(proxy.addr()).await.is_err());
    proxy.hang().await;
    let mut client = Connection::to(proxy.addr()).await.unwrap();
    client.send(&INCR).await.unwrap();
    proxy.pass().await;
    assert_eq!((client.reply().await.unwrap(), carried_out(&redis).await), (Reply::Int(42), 42));
}

#[tokio::test]
async fn a_lost_reply_is_of_a_command_that_was_carried_out() {
    let (redis, proxy, mut client) = before_redis().await;
    proxy.lose(Lose::next(1).of("incr"));
    assert!(client.command(&["INCR", "n", "wrong"]).await.unwrap().code() == Some("ERR"), "an error is no loss");
    client.send(&["PING"]).await.unwrap();
    client.send(&INCR).await.unwrap();
    assert_eq!(client.reply().await.unwrap(), Reply::from("PONG"), "what came before is passed on");
    assert!(soon("the end", client.reply()).await.is_err());
    let mut client = Connection::to(proxy.addr()).await.unwrap();
    client.command(&INCR).await.unwrap();
    assert_eq!((carried_out(&redis).await, proxy.lost(), proxy.counts().lost["INCR"]), (2, 1, 1));
}

#[tokio::test]
async fn a_swallowed_reply_leaves_the_client_out_of_step() {
    let (redis, proxy, mut client) = before_redis().await;
    client.command(&["HELLO", "3"]).await.unwrap();
    client.command(&["CLIENT", "TRACKING", "ON", "BCAST"]).await.unwrap();
    client.command(&["SUBSCRIBE", "news"]).await.unwrap();
    proxy.lose(Lose::next(2).of("INCR").silently());
    for word in ["first", "second"] {
        client.send(&INCR).await.unwrap();
        client.send(&["ECHO", word]).await.unwrap();
    }
    redis.command(&["PUBLISH", "news", "paper"]).await;
    let mut answers = Vec::new();
    while answers.len() < 2 {
        match soon("a reply", client.reply()).await.unwrap() {
            Reply::Push(_) => {}
            reply => answers.push(reply),
        }
    }
    assert_eq!(answers, ["first".into(), "second".into()]);
    assert_eq!((carried_out(&redis).await, proxy.lost(), proxy.open()), (2, 2, 1));
}

#[tokio::test]
async fn messages_of_the_second_protocol_answer_nothing() {
    let (redis, proxy, mut client) = before_redis().await;
    proxy.lose(Lose::next(1).of("PING").silently());
    assert_eq!(client.command(&["SUBSCRIBE", "news"]).await.unwrap().list()[0].text(), "subscribe");
    redis.command(&["PUBLISH", "news", "paper"]).await;
    assert_eq!(client.reply().await.unwrap().list()[2].text(), "paper");
    client.send(&["PING"]).await.unwrap();
    proxy.wait_for_lost(1).await;
    assert_eq!(proxy.counts().lost.keys().collect::<Vec<_>>(), ["PING"]);
}

#[tokio::test]
async fn some_replies_are_lost_by_chance() {
    let (redis, proxy, _) = before_redis().await;
    proxy.lose(Lose::chance(0.2));
    let ask = async || Connection::to(proxy.addr()).await.unwrap().command(&INCR).await.is_ok();
    let answered = join_all((0..200).map(|_| ask())).await.into_iter().filter(|answered| *answered).count();
    assert!((120..200).contains(&answered), "{answered}");
    assert_eq!((carried_out(&redis).await, proxy.lost()), (200, 200 - answered));
}

#[tokio::test]
async fn a_redis_that_ends_ends_its_connections() {
    let (mut redis, proxy, mut client) = before_redis().await;
    client.command(&INCR).await.unwrap();
    redis.kill();
    assert!(soon("the end", client.reply()).await.is_err());
    let mut client = Connection::to(proxy.addr()).await.unwrap();
    assert!(client.command(&INCR).await.is_err());
    redis.restart().await;
    let mut client = Connection::to(proxy.addr()).await.unwrap();
    client.command(&INCR).await.unwrap();
    drop(proxy);
    assert!(soon("the end", client.reply()).await.is_err(), "and so does a proxy");
}
