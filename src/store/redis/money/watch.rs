//! What each instance does for the records of money while it lives: it looks whether they are still there and how many copies of
//! them there are, and sweeps up what instances have left open that died.

use std::sync::Arc;
use std::time::Duration;

use super::super::super::StoreError;
use super::super::copies::Copies;
use super::super::keys;
use super::super::link::Link;
use super::super::link::call::Call;
use super::super::reply::Parts;
use super::super::script::ORPHAN;
use super::epoch::Epoch;
use crate::clock::Timestamp;

/// Between two sweeps.
const EVERY: Duration = Duration::from_secs(5);
/// After a new connection: the store may have been away, and others have not yet had the time to say that they live.
const AFTER_CONNECTING: Duration = Duration::from_secs(10);
/// Attempts that one sweep looks at, at most: a script keeps all others waiting.
const AT_ONCE: u64 = 100;

/// One instance's watch.
pub struct Watch {
    epoch: Arc<Epoch>,
    copies: Arc<Copies>,
    /// The connection that is watched over.
    connection: u64,
    sweep_at: Timestamp,
}

impl Watch {
    pub fn new(epoch: Arc<Epoch>, copies: Arc<Copies>) -> Self {
        Self { epoch, copies, connection: 0, sweep_at: Timestamp::default() }
    }

    /// At each beat. What fails is done at the next.
    pub async fn look(&mut self, link: &Link, instance: &str) {
        let now = link.clock.ticks();
        let connection = *link.connections().borrow();
        if std::mem::replace(&mut self.connection, connection) != connection {
            self.sweep_at = now.after(AFTER_CONNECTING);
        }
        let _ = self.copies.look(link).await;
        let Ok(Some(_)) = self.epoch.look(link).await else { return };
        if now < self.sweep_at {
            return;
        }
        if let Ok(looked_at) = sweep(link, &self.epoch, instance).await {
            let next = if looked_at < AT_ONCE { EVERY } else { Duration::ZERO };
            self.sweep_at = now.after(next);
        }
    }
}

/// Makes unknown what the dead have left open. Returns how many attempts were looked at.
pub async fn sweep(link: &Link, epoch: &Epoch, instance: &str) -> Result<u64, StoreError> {
    let Some(known) = epoch.known() else { return Ok(0) };
    let keys = &link.dialer.keys;
    let call = Call::new(&ORPHAN)
        .keys([keys.epoch(), keys.owners()])
        .arg(keys::id(known))
        .bytes(instance.as_bytes())
        .arg(keys.attempts())
        .arg(keys.spents())
        .arg(keys.opens())
        .number(AT_ONCE);
    let looked_at = link.run(call, looked_at).await?;
    if looked_at > 0 {
        tracing::warn!(attempts = looked_at, "attempts of instances that have died are unknown now, and stay spent");
    }
    Ok(looked_at)
}

fn looked_at(parts: &mut Parts) -> Option<u64> {
    match parts.bytes()?.as_ref() {
        b"orphaned" => parts.number(),
        b"lost" => Some(0),
        _ => None,
    }
}
