//! The writes that are being sent or unknown, read in pieces.

use bytes::Bytes;

use super::super::RedisStore;
use super::super::link::call::Call;
use super::super::reply::Parts;
use super::super::routes::unreadable;
use super::super::script::UNRESOLVED;
use crate::clock::Timestamp;
use crate::store::write::{About, Intention, Unresolved};
use crate::store::{OpId, StoreError};

/// So many at once: a script keeps all others waiting. What changes place between two pieces may be missed, or shown twice.
const AT_ONCE: usize = 500;

/// A piece: at how many places it has looked, and what it found.
type Piece = (usize, Vec<(Unresolved, Bytes)>);

pub(super) async fn read(store: &RedisStore, most: usize) -> Result<Vec<Unresolved>, StoreError> {
    let (mut shown, mut place) = (Vec::new(), 0);
    while shown.len() < most {
        let wanted = AT_ONCE.min(most - shown.len());
        let (looked_at, found) = piece(store, place, wanted).await?;
        for (unresolved, text) in found {
            shown.push(Unresolved { about: super::about(&text)?, ..unresolved });
        }
        if looked_at < wanted {
            break;
        }
        place += looked_at;
    }
    Ok(shown)
}

async fn piece(store: &RedisStore, place: usize, wanted: usize) -> Result<Piece, StoreError> {
    let keys = store.keys();
    let call = Call::new(&UNRESOLVED).key(keys.unsettled()).arg(keys.writes()).arg(place.to_string()).arg(wanted.to_string());
    let read = |parts: &mut Parts| match parts.bytes()?.as_ref() {
        b"broken" => Some(Err(unreadable())),
        b"unsettled" => Some(Ok((usize::try_from(parts.number()?).ok()?, all(&mut parts.list()?)?))),
        _ => None,
    };
    store.link.run(call, read).await?
}

fn all(parts: &mut Parts) -> Option<Vec<(Unresolved, Bytes)>> {
    let mut found = Vec::new();
    while !parts.is_empty() {
        found.push(one(&mut parts.list()?)?);
    }
    Some(found)
}

fn one(parts: &mut Parts) -> Option<(Unresolved, Bytes)> {
    let id = |parts: &mut Parts| u128::from_str_radix(&parts.text()?, 16).ok();
    let (intention, owner): (u128, u128) = (id(parts)?, id(parts)?);
    let (since, unknown, settle_from): (Timestamp, bool, Timestamp) = (parts.time()?, parts.flag()?, parts.time()?);
    let (intention, owner, about) = (Intention(intention), OpId(owner), About::default());
    Some((Unresolved { intention, owner, since, unknown, settle_from, about }, parts.bytes()?))
}
