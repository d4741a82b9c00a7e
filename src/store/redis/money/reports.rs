//! The reports: a hash of sums for each day. An attempt belongs to one day, so days are read one after the other and each is whole.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::super::super::money::{Days, Saved, Spent, ledger};
use super::super::super::{OpId, StoreError};
use super::super::asking::ask_whole;
use super::super::link::call::Call;
use super::super::reply::Parts;
use super::super::routes::{pairs, unreadable};
use super::super::script::{CREDIT, DAYS, SUMS};
use super::super::{RedisStore, frame};

/// Days that are read at once: a script keeps all others waiting.
const AT_ONCE: usize = 16;

/// A day's sums by kind: how many, and what they come to.
type Sums = BTreeMap<Bytes, (u64, u64)>;

pub(super) async fn credit(store: &RedisStore, op: OpId, saved: &[Saved]) -> Result<(), StoreError> {
    saved.iter().try_for_each(|saved| ledger::number(saved.requests).and_then(|()| ledger::number(saved.micros)))?;
    let keys = store.keys();
    let fill = |call: Call| {
        let call = call.keys([keys.credited(op), keys.days()]).keys(saved.iter().map(|saved| keys.saved(&saved.day)));
        saved.iter().fold(call, |call, saved| {
            let kind = [&saved.route, &saved.caller, &saved.cause, &saved.currency].map(String::as_bytes);
            call.bytes(saved.day.as_bytes()).arg(frame::pack(kind)).number(saved.requests).number(saved.micros)
        })
    };
    ask_whole(store, &CREDIT, fill, |_, _| Some(())).await
}

pub(super) async fn spent(store: &RedisStore, days: &Days) -> Result<Vec<Spent>, StoreError> {
    let line = |day: &str, kind, (calls, micros)| {
        let [state, outcome, route, provider, caller, currency] = texts(kind)?;
        Some(Spent { day: day.to_owned(), route, provider, caller, state, outcome, currency, calls, micros })
    };
    lines(store, days, |day| store.keys().spent(day), line).await
}

pub(super) async fn saved(store: &RedisStore, days: &Days) -> Result<Vec<Saved>, StoreError> {
    let line = |day: &str, kind, (requests, micros)| {
        let [route, caller, cause, currency] = texts(kind)?;
        Some(Saved { day: day.to_owned(), route, caller, cause, currency, requests, micros })
    };
    lines(store, days, |day| store.keys().saved(day), line).await
}

async fn lines<T>(
    store: &RedisStore,
    days: &Days,
    key: impl Fn(&str) -> String,
    line: impl Fn(&str, Bytes, (u64, u64)) -> Option<T>,
) -> Result<Vec<T>, StoreError> {
    let fill = |call: Call| call.key(store.keys().days()).bytes(days.from.as_bytes()).bytes(days.to.as_bytes());
    let days = ask_whole(store, &DAYS, fill, |_, parts| read_days(&mut parts.list()?)).await?;
    let mut lines = Vec::new();
    for days in days.chunks(AT_ONCE) {
        let fill = |call: Call| call.keys(days.iter().map(|day| key(day)));
        let sums = ask_whole(store, &SUMS, fill, |_, parts| days.iter().map(|_| read_sums(&mut parts.list()?)).collect());
        let sums: Vec<Sums> = sums.await?;
        for (day, sums) in days.iter().zip(sums) {
            let of_day = sums.into_iter().map(|(kind, sum)| line(day, kind, sum).ok_or_else(unreadable));
            lines.extend(of_day.collect::<Result<Vec<T>, _>>()?);
        }
    }
    Ok(lines)
}

fn read_days(days: &mut Parts) -> Option<Vec<String>> {
    let mut read = Vec::new();
    while !days.is_empty() {
        read.push(days.text()?);
    }
    Some(read)
}

/// `n` before a kind is how many, `m` what they come to.
fn read_sums(fields: &mut Parts) -> Option<Sums> {
    let mut sums = Sums::new();
    for (field, value) in pairs(fields)? {
        let number = frame::number(&value)?;
        if let Some(kind) = field.strip_prefix('n') {
            sums.entry(kind.to_owned().into()).or_default().0 = number;
        } else {
            let kind = field.strip_prefix('m')?;
            sums.entry(kind.to_owned().into()).or_default().1 = number;
        }
    }
    Some(sums)
}

/// So many texts, neither more nor fewer.
fn texts<const N: usize>(kind: Bytes) -> Option<[String; N]> {
    let texts: Vec<String> = frame::unpack(kind)?.map(frame::text).collect::<Option<_>>()?;
    texts.try_into().ok()
}
