//! Asking the scripts that go by the epoch: those of money and of paid writes. Where records were lost they do nothing.

use super::super::StoreError;
use super::super::money::ledger;
use super::fault::{Fault, failed};
use super::link::Link;
use super::link::call::Call;
use super::money::epoch;
use super::reply::Parts;
use super::routes::unreadable;
use super::script::Script;
use super::{RedisStore, keys};

/// Asks a script whose first key and argument are the epoch; once more, if the epoch was replaced meanwhile by one that this
/// instance may take over. Nothing, if records were lost.
pub(super) async fn ask<T>(
    store: &RedisStore,
    script: &'static Script,
    fill: impl Fn(Call) -> Call,
    read: impl Fn(&[u8], &mut Parts) -> Option<T>,
) -> Result<Option<T>, StoreError> {
    try_ask(store, &store.link, script, fill, read).await.map_err(Fault::error)
}

/// The same, for those to whom lost records are one more failure.
pub(super) async fn ask_whole<T>(
    store: &RedisStore,
    script: &'static Script,
    fill: impl Fn(Call) -> Call,
    read: impl Fn(&[u8], &mut Parts) -> Option<T>,
) -> Result<T, StoreError> {
    ask(store, script, fill, read).await?.ok_or_else(lost)
}

/// The same as [`ask`], over a link of choice, for callers who mind what kind of fault it is.
pub(super) async fn try_ask<T>(
    store: &RedisStore,
    link: &Link,
    script: &'static Script,
    fill: impl Fn(Call) -> Call,
    read: impl Fn(&[u8], &mut Parts) -> Option<T>,
) -> Result<Option<T>, Fault> {
    let look = async || store.epoch.look(&store.link).await.map_err(Fault::Call);
    let mut epoch = match store.epoch.known() {
        None => look().await?,
        known => known,
    };
    for _ in 0..2 {
        let Some(known) = epoch else { break };
        let call = fill(Call::new(script).key(store.keys().epoch()).arg(keys::id(known)));
        if let Some(answer) = link.try_run(&call, |parts| answer(parts, &read)).await?? {
            return Ok(Some(answer));
        }
        epoch = look().await?.filter(|now| *now != known);
    }
    Ok(None)
}

pub(super) fn lost() -> StoreError {
    failed(epoch::LOST)
}

/// What such a script says: a word, and what belongs to it.
fn answer<T>(parts: &mut Parts, read: impl Fn(&[u8], &mut Parts) -> Option<T>) -> Option<Result<Option<T>, Fault>> {
    Some(match parts.bytes()?.as_ref() {
        b"lost" => Ok(None),
        b"broken" => Err(Fault::Call(unreadable())),
        b"much" => Err(Fault::Call(ledger::too_much())),
        b"over" => Err(Fault::Call(ledger::long_over())),
        b"full" => Err(Fault::Full),
        word => Ok(Some(read(word, parts)?)),
    })
}
