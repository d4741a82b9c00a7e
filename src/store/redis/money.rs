//! Money that instances share. The rules are those of `store::money::ledger`; one script an operation keeps them (`lua/`).
//!
//! A row of the ledger is a key while it is open or unknown. All attempts are summed by day as they come and go, so that what is
//! settled needs no row: a word stays of its id, for two days, and memory does not grow with traffic. Counters are keys, whose
//! names hold the window, and end by themselves.
//!
//! **What may be lost.** With `appendonly yes` the log is written before anything is answered, so a Redis whose process dies loses
//! nothing that was said; but `appendfsync everysec` waits with writing while the disk is busy with the last second, for two
//! seconds at most. When its *machine* dies, `everysec` loses as much at any time, and a copy that takes over lacks whatever had
//! not reached it. Then what was reserved in that time is free again, and as much may be spent above the caps; what was settled in
//! it is open again and stays spent at its reserved price; ids that were settled or given up in it are unknown again. Nobody
//! notices: the epoch is the same. `appendfsync always` loses nothing, save by a failover. With snapshots only, the same is true of
//! all since the last one. With neither, all is lost, and that is noticed ([`epoch`]) unless no instance outlives it.

use std::time::Duration;

use super::super::money::ledger::{self, State};
use super::super::money::{Cap, Days, Money, Reservation, Reserved, Saved, Settlement, Spent};
use super::super::{OpId, Reply, StoreError};
use super::asking::{ask, ask_whole};
use super::link::call::Call;
use super::reply::Parts;
use super::script::{FIRST, RESERVE, SETTLE, USED};
use super::{RedisStore, frame, keys};
use crate::clock::micros;

pub(super) mod epoch;
mod reports;
pub(super) mod watch;

/// A mark is kept for no longer: a script can add this to the time.
const AGES: Duration = Duration::from_hours(10 * 365 * 24);

// === Reserve and settle ===

async fn reserve(store: &RedisStore, reservation: Reservation<'_>) -> Result<Reserved, StoreError> {
    ledger::check(&reservation, store.link.clock.now())?;
    let Reservation { id, caps, amount, row } = reservation;
    let keys = store.keys();
    let kind = frame::pack([&row.route, &row.provider, &ledger::shown(&row), &row.currency].map(String::as_bytes));
    let fill = |call: Call| {
        let call = call
            .keys([keys.attempt(id), keys.owners(), keys.open(&store.instance), keys.days(), keys.spent(&row.day)])
            .keys(caps.iter().map(|cap| keys.cap(&cap.name)))
            .arg(keys::id(id))
            .bytes(store.instance.as_bytes())
            .number(amount)
            .bytes(row.day.as_bytes())
            .arg(kind.clone());
        caps.iter().fold(call, |call, cap| call.number(cap.most).number(cap.ends.0))
    };
    let reserved = ask(store, &RESERVE, fill, |word, parts| reserved(word, parts, caps.len())).await?;
    Ok(reserved.unwrap_or(Reserved::Lost))
}

fn reserved(word: &[u8], parts: &mut Parts, caps: usize) -> Option<Reserved> {
    Some(match word {
        b"yes" => Reserved::Yes(numbers(parts, caps)?),
        b"no" => {
            let cap = usize::try_from(parts.number()?).ok().filter(|cap| *cap < caps)?;
            Reserved::No { cap, used: parts.number()? }
        }
        b"late" => Reserved::TooLate,
        _ => return None,
    })
}

fn numbers(parts: &mut Parts, count: usize) -> Option<Vec<u64>> {
    (0..count).map(|_| parts.number()).collect()
}

async fn settle(store: &RedisStore, id: OpId, settlement: Settlement, outcome: &str) -> Result<bool, StoreError> {
    ledger::check_settlement(settlement)?;
    let (state, cost) = match settlement {
        Settlement::Billed(cost) => (State::Billed, cost),
        Settlement::NotBilled => (State::NotBilled, 0),
        Settlement::Unknown => (State::Unknown, 0),
    };
    let keys = store.keys();
    let fill = |call: Call| {
        call.key(keys.attempt(id))
            .arg(keys::id(id))
            .arg(keys.caps())
            .arg(keys.spents())
            .arg(keys.opens())
            .arg(state.word())
            .number(cost)
            .bytes(outcome.as_bytes())
    };
    let read = |word: &[u8], _: &mut Parts| match word {
        b"changed" => Some(true),
        b"same" => Some(false),
        _ => None,
    };
    ask_whole(store, &SETTLE, fill, read).await
}

async fn used(store: &RedisStore, caps: &[Cap]) -> Result<Vec<u64>, StoreError> {
    let fill = |call: Call| call.keys(caps.iter().map(|cap| store.keys().cap(&cap.name)));
    ask_whole(store, &USED, fill, |_, parts| numbers(parts, caps.len())).await
}

/// Marks are no money: they are asked for, and kept, whatever was lost.
async fn first(store: &RedisStore, mark: &str, keep: Duration) -> Result<bool, StoreError> {
    let call = Call::new(&FIRST).key(store.keys().mark(mark)).number(micros(keep.min(AGES)));
    store.link.run(call, Parts::flag).await
}

// === impl Money ===

impl Money for RedisStore {
    fn reserve<'a>(&'a self, reservation: Reservation<'a>) -> Reply<'a, Reserved> {
        Box::pin(reserve(self, reservation))
    }

    /// On a full store, too: it is small, and an attempt that cannot be settled would stay spent.
    fn settle<'a>(&'a self, id: OpId, settlement: Settlement, outcome: &'a str) -> Reply<'a, bool> {
        Box::pin(settle(self, id, settlement, outcome))
    }

    fn used<'a>(&'a self, caps: &'a [Cap]) -> Reply<'a, Vec<u64>> {
        Box::pin(used(self, caps))
    }

    fn credit<'a>(&'a self, op: OpId, saved: &'a [Saved]) -> Reply<'a, ()> {
        Box::pin(reports::credit(self, op, saved))
    }

    fn spent<'a>(&'a self, days: &'a Days) -> Reply<'a, Vec<Spent>> {
        Box::pin(reports::spent(self, days))
    }

    fn saved<'a>(&'a self, days: &'a Days) -> Reply<'a, Vec<Saved>> {
        Box::pin(reports::saved(self, days))
    }

    fn first<'a>(&'a self, mark: &'a str, keep: Duration) -> Reply<'a, bool> {
        Box::pin(first(self, mark, keep))
    }

    fn accept_loss(&self) -> Reply<'_, ()> {
        Box::pin(self.epoch.accept(&self.link))
    }
}
