use std::time::Duration;

use bytes::Bytes;

use super::super::StoredAnswer;
use super::{START, World};
use crate::clock::Timestamp;

const KEY: [u8; 32] = [7; 32];
const SECOND: Duration = Duration::from_secs(1);

/// Stored `at` seconds after the start, fresh for ten, stale for ten more.
pub(in super::super) fn answer(at: u64, body: &'static [u8]) -> StoredAnswer {
    let stored = Timestamp(START).after(SECOND * u32::try_from(at).unwrap());
    StoredAnswer {
        status: 200,
        outcome: "not_found".to_owned(),
        headers: vec![
            ("content-type".to_owned(), Bytes::from_static(b"application/json")),
            ("x-odd".to_owned(), Bytes::from_static(b"\x00\xff caf\xe9")),
            ("x-odd".to_owned(), Bytes::new()),
        ],
        body: Bytes::from_static(body),
        stored,
        age: Duration::from_micros(1_500_001),
        fresh_until: stored.after(SECOND * 10),
        revalidate_until: stored.after(SECOND * 15),
        error_until: stored.after(SECOND * 20),
    }
}

pub async fn an_answer_comes_back_byte_for_byte(world: World) {
    let big: Vec<u8> = (0..=255_u8).cycle().take(3_000_000).collect();
    let mut kept = answer(0, b"");
    assert_eq!(world.store.answer(&KEY).await, Ok(None));
    for body in [Bytes::from_static(b"\x00\xff\xfe\r\n\x1f\x8b"), Bytes::new(), Bytes::from(big)] {
        kept.body = body;
        world.store.keep("route", &KEY, kept.clone()).await.unwrap();
        assert_eq!(world.store.answer(&KEY).await, Ok(Some(kept.clone())));
    }
    (kept.headers, kept.error_until) = (Vec::new(), Timestamp(u64::MAX));
    world.store.keep("route", &KEY, kept.clone()).await.unwrap();
    assert_eq!(world.store.answer(&KEY).await, Ok(Some(kept)));
}

pub async fn an_answer_is_gone_the_moment_it_expires(world: World) {
    let kept = answer(0, b"x");
    world.store.keep("route", &KEY, kept.clone()).await.unwrap();
    world.clock.advance(Duration::from_micros(19_999_999));
    assert_eq!(world.store.answer(&KEY).await, Ok(Some(kept)));
    world.clock.advance(Duration::from_micros(1));
    assert_eq!(world.store.answer(&KEY).await, Ok(None));
    world.store.keep("route", &KEY, answer(20, b"y")).await.unwrap();
    assert_eq!(body(&world).await.as_deref(), Some(&b"y"[..]));
}

pub async fn a_later_answer_is_never_replaced_by_an_earlier_one(world: World) {
    world.clock.advance(SECOND * 5);
    world.store.keep("route", &KEY, answer(3, b"later")).await.unwrap();
    world.store.keep("route", &KEY, answer(2, b"earlier")).await.unwrap();
    assert_eq!(body(&world).await.as_deref(), Some(&b"later"[..]));
    world.store.keep("route", &KEY, answer(3, b"same time")).await.unwrap();
    assert_eq!(body(&world).await.as_deref(), Some(&b"same time"[..]));
    world.store.keep("route", &KEY, answer(4, b"latest")).await.unwrap();
    assert_eq!(body(&world).await.as_deref(), Some(&b"latest"[..]));
}

pub async fn an_answer_from_the_future_does_not_stay(world: World) {
    world.store.keep("route", &KEY, answer(3_600, b"from before the clock was set back")).await.unwrap();
    world.store.keep("route", &KEY, answer(0, b"now")).await.unwrap();
    assert_eq!(body(&world).await.as_deref(), Some(&b"now"[..]));
}

pub async fn a_forgotten_answer_is_gone_alone(world: World) {
    let other = [8; 32];
    world.store.keep("route", &KEY, answer(0, b"x")).await.unwrap();
    world.store.keep("route", &other, answer(0, b"y")).await.unwrap();
    world.store.forget("geo", &KEY).await.unwrap();
    world.store.forget("geo", &KEY).await.unwrap();
    assert_eq!(world.store.answer(&KEY).await, Ok(None));
    assert!(world.store.answer(&other).await.unwrap().is_some());
}

async fn body(world: &World) -> Option<Bytes> {
    world.store.answer(&KEY).await.unwrap().map(|answer| answer.body)
}
