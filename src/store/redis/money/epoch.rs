//! Whether the store's records of money, and of paid writes, are those that were written.
//!
//! An *epoch* is one unbroken run of records: a random id, founded in a store that never had any, and kept in it. Every script of
//! money, and each that lets a write be sent, is given the epoch its instance knows and does nothing where there is another, or
//! none: the store came back empty, was emptied, or is not the one it was. An instance that knows none takes over the one it finds,
//! or founds one.
//!
//! Whoever notices a loss writes it into the record at its next look, a second later at most or as soon as it wants to pay. From
//! then on nobody pays or sends, until a person accepts the loss on any instance. That writes a new epoch, which names those it
//! replaces: instances that know one of these take it over.
//!
//! **A newcomer in an emptied store.** It knows of no loss, so where none is written down it founds an epoch and may pay, from
//! nothing, until the first of the others is there to object: a fraction of a second after a restart, for they are waiting to
//! connect, and a second after a `FLUSHALL`. Then it is refused like the others: its epoch holds less than all records. If no
//! instance has outlived the loss, nobody can know. That is why the settings which lose records are reported.

use std::sync::{Mutex, PoisonError};

use super::super::super::{OpId, StoreError};
use super::super::keys;
use super::super::link::Link;
use super::super::link::call::Call;
use super::super::reply::Parts;
use super::super::script::{ACCEPT_LOSS, EPOCH};

/// Why nothing is paid.
pub const LOST: &str = "records of money were lost, and nobody has accepted that yet";

/// What this instance knows of it.
#[derive(Default)]
pub struct Epoch(Mutex<Known>);

#[derive(Clone, Copy, Default)]
struct Known {
    epoch: Option<OpId>,
    /// Seen at the last look.
    lost: bool,
}

impl Epoch {
    pub fn known(&self) -> Option<OpId> {
        self.get().epoch
    }

    /// For those who operate the gateway.
    pub fn warning(&self) -> Option<String> {
        self.get().lost.then(|| format!("{LOST}: nothing is paid until then"))
    }

    /// Looks into the store. The epoch in force, if this instance may pay in it.
    pub async fn look(&self, link: &Link) -> Result<Option<OpId>, StoreError> {
        let (keys, known) = (&link.dialer.keys, self.known());
        let kept = [keys.epoch(), keys.owners(), keys.days(), keys.unsettled()];
        let call = Call::new(&EPOCH).keys(kept).arg(spelt(known)).arg(candidate());
        let read = |parts: &mut Parts| match parts.bytes()?.as_ref() {
            b"is" => read_id(parts).map(Some),
            b"lost" => Some(None),
            _ => None,
        };
        let found = link.run(call, read).await?;
        self.set(known, found);
        Ok(found)
    }

    /// Says that whatever was lost is known.
    pub async fn accept(&self, link: &Link) -> Result<(), StoreError> {
        let known = self.known();
        let call = Call::new(&ACCEPT_LOSS).key(link.dialer.keys.epoch()).arg(spelt(known)).arg(candidate());
        let epoch = link.run(call, read_id).await?;
        self.set(known, Some(epoch));
        Ok(())
    }

    fn get(&self) -> Known {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what was found by one who knew `before`: if somebody has found more meanwhile, that stays.
    fn set(&self, before: Option<OpId>, found: Option<OpId>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.epoch != before {
            return;
        }
        known.epoch = found.or(before);
        let was_lost = std::mem::replace(&mut known.lost, found.is_none());
        match (was_lost, known.lost) {
            (false, true) => tracing::error!("{LOST}: nothing is paid until then"),
            (true, false) => tracing::warn!("paying goes on: the records of money are there again, or their loss was accepted"),
            _ => {}
        }
    }
}

fn candidate() -> String {
    keys::id(OpId::random())
}

fn spelt(known: Option<OpId>) -> String {
    known.map_or_else(String::new, keys::id)
}

fn read_id(parts: &mut Parts) -> Option<OpId> {
    let text = parts.text()?;
    (text.len() == 32).then_some(())?;
    u128::from_str_radix(&text, 16).ok().map(OpId)
}
