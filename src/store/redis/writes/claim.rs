//! Claiming an intention, or hearing what stands in the way.

use std::time::Duration;

use bytes::Bytes;

use super::super::asking::try_ask;
use super::super::fault::Fault;
use super::super::link::call::Call;
use super::super::reply::Parts;
use super::super::script::{CLAIM, LOOK};
use super::super::{RedisStore, answers, keys};
use super::{LAST, about, id, time};
use crate::store::write::{Claim, Claimed};
use crate::store::{OpId, StoreError};

/// What a claim met, before what was written down at its sending has been read.
enum Met {
    Again(u32, Bytes),
    Other(Claimed),
}

pub(super) async fn claim(store: &RedisStore, claim: Claim<'_>) -> Result<Claimed, StoreError> {
    let met = match claim_once(store, claim, true).await {
        // What has been claimed before can be told all the same.
        Err(Fault::Full) => claim_once(store, claim, false).await,
        met => met,
    };
    match met.map_err(Fault::error)? {
        None => Ok(Claimed::Lost),
        Some(Met::Other(claimed)) => Ok(claimed),
        Some(Met::Again(turn, text)) => Ok(Claimed::Again { turn, about: about(&text)? }),
    }
}

async fn claim_once(store: &RedisStore, claim: Claim<'_>, may_write: bool) -> Result<Option<Met>, Fault> {
    let keys = store.keys();
    let fill = |call: Call| {
        call.keys([keys.write(claim.intention), keys.unsettled()])
            .arg(id(claim.intention))
            .arg(keys::id(claim.owner))
            .arg(keys::hex(claim.fingerprint))
            .number(time(claim.lease))
            .arg(claim.again.map_or_else(String::new, |again| again.after.min(LAST).0.to_string()))
            .arg(claim.again.map_or_else(String::new, |again| keys::id(OpId(again.to))))
            .flag(claim.look)
            .flag(may_write)
    };
    let script = if may_write { &CLAIM } else { &LOOK };
    try_ask(store, &store.link, script, fill, met).await
}

fn met(word: &[u8], parts: &mut Parts) -> Option<Met> {
    let turn = |parts: &mut Parts| u32::try_from(parts.number()?).ok();
    Some(Met::Other(match word {
        b"owned" => Claimed::Owned { turn: turn(parts)? },
        b"again" => return Some(Met::Again(turn(parts)?, parts.bytes()?)),
        b"free" => Claimed::Free,
        b"held" => Claimed::Held { left: Duration::from_micros(parts.number()?) },
        // An answer that this version cannot read was given all the same.
        b"done" => answers::Kept::next(parts)?.read().map_or(Claimed::Unknown, Claimed::Done),
        b"reused" => Claimed::Reused,
        b"unknown" => Claimed::Unknown,
        _ => return None,
    }))
}
