//! Paid writes that instances share. The rules are those of `store::write::record`; one script an operation keeps them (`lua/`).
//!
//! **Lost records.** Claiming, sending and settling go by the epoch, as money does: in a store that has lost records nobody knows
//! what was sent, so nothing is, until a person accepts that. Renewing and ending do not. Only its owner does either, by an id that
//! is of one claim alone: a record that bears it is its own, whatever became of others, and what came of a send stays true. Were it
//! refused, a write that was answered would become unknown. If the record itself is gone, its owner is told so. What is unresolved
//! is shown by what is there: who is to accept a loss may want to see it.
//!
//! **A full store.** Claiming and sending need room and are refused before anything is paid; what was answered before is replayed
//! even so. Ending is not refused, though it brings an answer: without it, what was done and paid would become unknown. There is
//! one for each claim that was let in while there was room, so no more comes on top than the answers of what is in the air.
//!
//! **Copies.** Where the store has any, *sending* is written when one of them has it, too ([`super::copies`]).

use std::time::Duration;

use bytes::Bytes;

use super::asking::{ask_whole, lost, try_ask};
use super::fault::Fault;
use super::link::call::Call;
use super::reply::Parts;
use super::routes::unreadable;
use super::script::{FINISH, PROLONG, RESOLVE, SENDING, Script};
use super::{RedisStore, answers, keys};
use crate::clock::{Timestamp, micros};
use crate::store::write::{About, Claim, Claimed, End, Found, Intention, Sending, Settled, Settling, Unresolved, Writes};
use crate::store::{OpId, Reply, StoreError};

mod claim;
mod unresolved;

/// No time is longer, and none is later: a script can add the one to the other and count with the sum.
const AGES: Duration = Duration::from_hours(10 * 365 * 24);
const LAST: Timestamp = Timestamp((1 << 53) - 1);

fn time(long: Duration) -> u64 {
    micros(long.min(AGES))
}

fn id(intention: Intention) -> String {
    keys::id(OpId(intention.0))
}

/// What was written down as it was sent; nothing of what never was.
fn about(text: &Bytes) -> Result<About, StoreError> {
    if text.is_empty() { Ok(About::default()) } else { serde_json::from_slice(text).map_err(|_| unreadable()) }
}

fn yes(word: &[u8]) -> Option<bool> {
    match word {
        b"yes" => Some(true),
        b"no" => Some(false),
        _ => None,
    }
}

// === Sending ===

async fn send(store: &RedisStore, sending: Sending<'_>) -> Result<bool, StoreError> {
    let about = serde_json::to_vec(sending.about).map_err(|_| unreadable())?;
    let copied = store.copies.exist(&store.link).await?;
    let link = if copied { store.copies.link(&store.link, &store.tasks).await? } else { &store.link };
    let keys = store.keys();
    let fill = |call: Call| {
        let call = call
            .keys([keys.write(sending.intention), keys.unsettled()])
            .arg(id(sending.intention))
            .arg(keys::id(sending.owner))
            .number(time(sending.lease))
            .number(time(sending.timeout))
            .arg(about.clone());
        if copied { call.copied() } else { call }
    };
    try_ask(store, link, &SENDING, fill, |word, _| yes(word)).await.map_err(Fault::error)?.ok_or_else(lost)
}

// === Its owner ===

/// A script that goes by the owner alone.
fn owners(store: &RedisStore, script: &'static Script, of: Intention, owner: OpId) -> Call {
    Call::new(script).keys([store.keys().write(of), store.keys().unsettled()]).arg(id(of)).arg(keys::id(owner))
}

async fn run(store: &RedisStore, call: Call) -> Result<bool, StoreError> {
    let read = |parts: &mut Parts| match parts.bytes()?.as_ref() {
        b"broken" => Some(Err(unreadable())),
        word => yes(word).map(Ok),
    };
    store.link.run(call, read).await?
}

async fn prolong(store: &RedisStore, of: Intention, owner: OpId, lease: Duration) -> Result<bool, StoreError> {
    run(store, owners(store, &PROLONG, of, owner).number(time(lease))).await
}

async fn finish(store: &RedisStore, of: Intention, owner: OpId, end: End) -> Result<bool, StoreError> {
    let call = owners(store, &FINISH, of, owner);
    let call = match &end {
        End::Done(answer) => answers::with_answer(call.arg("done"), answer),
        End::Free => call.arg("free"),
        End::Unknown => call.arg("unknown"),
    };
    run(store, call).await
}

// === An admin ===

async fn resolve(store: &RedisStore, settling: &Settling) -> Result<Settled, StoreError> {
    let keys = store.keys();
    let fill = |call: Call| {
        let call = call
            .keys([keys.write(settling.intention), keys.unsettled()])
            .arg(id(settling.intention))
            .arg(keys::id(settling.owner))
            .arg(keys::id(settling.by));
        match &settling.found {
            Found::Sent(answer) => answers::with_answer(call.arg("sent").number(0), answer),
            Found::NotSent(remember) => call.arg("not_sent").number((*remember).min(LAST).0),
        }
    };
    let read = |word: &[u8], parts: &mut Parts| match word {
        b"settled" => Some(about(&parts.bytes()?).map(Settled::Yes)),
        b"not before" => Some(Ok(Settled::NotBefore(parts.time()?))),
        b"none" => Some(Ok(Settled::None)),
        _ => None,
    };
    ask_whole(store, &RESOLVE, fill, read).await?
}

// === impl Writes ===

impl Writes for RedisStore {
    fn claim<'a>(&'a self, claim: Claim<'a>) -> Reply<'a, Claimed> {
        Box::pin(claim::claim(self, claim))
    }

    fn sending<'a>(&'a self, sending: Sending<'a>) -> Reply<'a, bool> {
        Box::pin(send(self, sending))
    }

    fn prolong(&self, of: Intention, owner: OpId, lease: Duration) -> Reply<'_, bool> {
        Box::pin(prolong(self, of, owner, lease))
    }

    fn finish(&self, of: Intention, owner: OpId, end: End) -> Reply<'_, bool> {
        Box::pin(finish(self, of, owner, end))
    }

    fn unresolved(&self, most: usize) -> Reply<'_, Vec<Unresolved>> {
        Box::pin(unresolved::read(self, most))
    }

    fn resolve(&self, settling: Settling) -> Reply<'_, Settled> {
        Box::pin(async move { resolve(self, &settling).await })
    }
}
