//! Leases: who flies for a question, over all instances.

use std::time::Duration;

use bytes::Bytes;

use super::super::lease::{Entered, Entry, Landing, Leave};
use super::super::{Digest, OpId, StoreError, StoredAnswer};
use super::fault::Fault;
use super::link::call::Call;
use super::reply::Parts;
use super::script::{ENTER, LAND, RELEASE, RENEW};
use super::{RedisStore, answers, keys};
use crate::clock::micros;

/// No lease is longer: it is renewed while its holder lives. The script takes a longer one for nonsense.
const LONGEST: Duration = Duration::from_mins(5);

/// What entering met, before an answer has been read.
enum Met {
    Found(Option<StoredAnswer>),
    Other(Entered),
}

pub(super) async fn enter(store: &RedisStore, entry: Entry<'_>) -> Result<Entered, StoreError> {
    match enter_once(store, entry).await? {
        Met::Found(Some(answer)) => Ok(Entered::Found(answer)),
        Met::Other(entered) => Ok(entered),
        // There is one of another version's making. It is as if there were none.
        Met::Found(None) => match enter_once(store, Entry { look: false, waiting: None, ..entry }).await? {
            Met::Other(entered) => Ok(entered),
            Met::Found(_) => Err(super::fault::out_of_step()),
        },
    }
}

async fn enter_once(store: &RedisStore, entry: Entry<'_>) -> Result<Met, StoreError> {
    let Entry { flight, key, ttl, look, waiting } = entry;
    let keys = store.keys();
    let call = Call::new(&ENTER)
        .keys([keys.answer(key), keys.lease(key), keys.landed(key)])
        .arg(keys::id(flight))
        .number(micros(ttl.min(LONGEST)))
        .flag(look)
        .arg(waiting.map_or_else(String::new, |since| since.0.to_string()))
        .arg(keys.landings())
        .bytes(key);
    store.link.run(call, met).await
}

fn met(parts: &mut Parts) -> Option<Met> {
    Some(Met::Other(match parts.bytes()?.as_ref() {
        b"found" => {
            parts.time()?;
            return Some(Met::Found(answers::Kept::next(parts)?.read()));
        }
        b"taken" => Entered::Taken(parts.time()?),
        b"held" => Entered::Held { since: parts.time()?, left: Duration::from_micros(parts.number()?) },
        b"ended" => Entered::Ended(parts.bytes()?),
        b"alone" => Entered::Alone,
        _ => return None,
    }))
}

pub(super) async fn renew(store: &RedisStore, flight: OpId, key: &Digest, ttl: Duration) -> Result<bool, StoreError> {
    let call = Call::new(&RENEW).key(store.keys().lease(key)).arg(keys::id(flight)).number(micros(ttl.min(LONGEST)));
    store.link.run(call, Parts::flag).await
}

/// Where there is no room to keep the answer, the lease is given back all the same, and those who wait are handed the answer
/// beside it; that it was not kept is the error.
pub(super) async fn land(store: &RedisStore, landing: &Landing<'_>) -> Result<bool, StoreError> {
    let Some(answer) = &landing.keep else {
        return store.link.run(landed(store, landing, None), Parts::flag).await;
    };
    match store.link.try_run(&landed(store, landing, Some((answer, true))), Parts::flag).await {
        Err(Fault::Full) => {
            store.link.run(landed(store, landing, Some((answer, false))), Parts::flag).await?;
            Err(Fault::Full.error())
        }
        result => result.map_err(Fault::error),
    }
}

/// The call that lands: with an answer to keep, with one to hand over only, or with none.
fn landed(store: &RedisStore, landing: &Landing<'_>, answer: Option<(&StoredAnswer, bool)>) -> Call {
    let (keys, key) = (store.keys(), landing.key);
    let (leaves, word) = match &landing.leave {
        Leave::Nothing => ("nothing", Bytes::new()),
        Leave::Kept => ("kept", Bytes::new()),
        Leave::Word(word) => ("word", word.clone()),
        Leave::Alone(long) => ("alone", micros(*long).to_string().into()),
    };
    let (script, answers) = match answer {
        Some((_, true)) => (&LAND, "keep"),
        Some((_, false)) => (&RELEASE, "carry"),
        None => (&RELEASE, "none"),
    };
    let call = Call::new(script)
        .keys([keys.answer(key), keys.lease(key), keys.landed(key), keys.purged(key)])
        .arg(keys::id(landing.flight))
        .number(landing.began.0)
        .arg(leaves)
        .arg(word)
        .arg(keys.landings())
        .bytes(key)
        .arg(answers);
    match answer {
        Some((answer, _)) => answers::with_answer(call, answer),
        None => call,
    }
}
