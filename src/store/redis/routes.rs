//! Purge generations and switches.

use bytes::Bytes;

use super::super::{OpId, StoreError, Switch};
use super::link::call::Call;
use super::reply::Parts;
use super::script::{GENERATION, RAISE_GENERATION, SET_SWITCH, SWITCHES};
use super::{RedisStore, frame};

pub(super) async fn generation(store: &RedisStore, route: &str) -> Result<u64, StoreError> {
    let call = Call::new(&GENERATION).key(store.keys().generations()).bytes(route.as_bytes());
    store.link.run(call, Parts::spelt).await
}

pub(super) async fn raise_generation(store: &RedisStore, op: OpId, route: &str) -> Result<u64, StoreError> {
    let keys = store.keys();
    let call = Call::new(&RAISE_GENERATION)
        .keys([keys.generations(), keys.raised(op), keys.seq(), keys.log()])
        .arg(keys.changes())
        .bytes(route.as_bytes());
    store.link.run(call, Parts::spelt).await
}

pub(super) async fn switches(store: &RedisStore) -> Result<Vec<(String, Switch)>, StoreError> {
    let call = Call::new(&SWITCHES).key(store.keys().switches());
    let fields = store.link.run(call, |parts| pairs(&mut parts.list()?)).await?;
    let read = |(name, value)| read_switch(value).map(|(switch, _)| (name, switch)).ok_or_else(unreadable);
    fields.into_iter().map(read).collect()
}

pub(super) async fn set_switch(store: &RedisStore, name: &str, switch: &Switch) -> Result<u64, StoreError> {
    let keys = store.keys();
    let json = serde_json::to_vec(switch).map_err(|_| unreadable())?;
    let call = Call::new(&SET_SWITCH)
        .keys([keys.switches(), keys.seq(), keys.log()])
        .arg(keys.changes())
        .bytes(name.as_bytes())
        .arg(json);
    store.link.run(call, Parts::number).await
}

/// A hash's fields.
pub(super) fn pairs(fields: &mut Parts) -> Option<Vec<(String, Bytes)>> {
    let mut pairs = Vec::new();
    while !fields.is_empty() {
        pairs.push((fields.text()?, fields.bytes()?));
    }
    Some(pairs)
}

/// A switch as it is kept, with its revision.
pub(super) fn read_switch(kept: Bytes) -> Option<(Switch, u64)> {
    let mut parts = frame::unpack(kept)?;
    let revision = frame::number(&parts.next()?)?;
    Some((serde_json::from_slice(&parts.next()?).ok()?, revision))
}

pub(super) fn unreadable() -> StoreError {
    StoreError::Failed("a record in Redis does not read as it was written".to_owned())
}
