//! The connection that listens. It does nothing else, and is thrown away at the least doubt.

use std::time::Duration;

use bytes::Bytes;
use redis::aio::MultiplexedConnection;
use redis::{PushInfo, PushKind, Value};
use tokio::sync::mpsc;

use super::super::super::Digest;
use super::super::fault::Fault;
use super::super::frame;
use super::super::link::Link;
use super::super::link::dial::within;
use crate::clock::Timestamp;

/// Messages that may wait to be heard. Beyond, they are lost: changes are found in the log, and who waits for a landing asks by
/// itself in time.
const QUEUE: usize = 4096;

/// A subscription to changes and landings.
pub(super) struct Subscription {
    connection: MultiplexedConnection,
    pushes: mpsc::Receiver<PushInfo>,
    changes: String,
    landings: String,
    since: Timestamp,
}

/// One message.
pub(super) enum Heard {
    /// A change with its number.
    Change(u64, Bytes),
    /// A flight has landed for which somebody waits.
    Landed(Digest),
    /// Something else.
    Nonsense,
    /// The connection is gone.
    End,
}

impl Subscription {
    pub(super) async fn open(link: &Link) -> Result<Self, Fault> {
        let (dialer, timeout) = (&link.dialer, link.timeout);
        let (sender, pushes) = mpsc::channel(QUEUE);
        let mut connection = dialer.connect(move |push| sender.try_send(push)).await?;
        let (changes, landings) = (dialer.keys.changes(), dialer.keys.landings());
        let channels = [&changes, &landings];
        within(timeout, async { connection.subscribe(&channels).await.map_err(|error| Fault::of(&error)) }).await?;
        Ok(Self { connection, pushes, changes, landings, since: link.clock.ticks() })
    }

    /// How long it has been there.
    pub(super) fn age(&self, now: Timestamp) -> Duration {
        now.since(self.since)
    }

    pub(super) async fn answers(&mut self, timeout: Duration) -> bool {
        let ping = redis::cmd("PING");
        let answer = tokio::time::timeout(timeout, ping.query_async::<Value>(&mut self.connection)).await;
        matches!(answer, Ok(Ok(_)))
    }

    async fn next(&mut self) -> Heard {
        match self.pushes.recv().await {
            Some(PushInfo { kind: PushKind::Message, data }) => self.read(data).unwrap_or(Heard::Nonsense),
            Some(PushInfo { kind: PushKind::Disconnection, .. }) | None => Heard::End,
            Some(_) => Heard::Nonsense,
        }
    }

    fn read(&self, data: Vec<Value>) -> Option<Heard> {
        let [Value::BulkString(channel), Value::BulkString(payload)] = <[Value; 2]>::try_from(data).ok()? else {
            return None;
        };
        if channel == self.landings.as_bytes() {
            return Some(Heard::Landed(payload.try_into().ok()?));
        }
        let mut parts = frame::unpack(payload.into()).filter(|_| channel == self.changes.as_bytes())?;
        Some(Heard::Change(frame::number(&parts.next()?)?, parts.next()?))
    }
}

/// The next message; never, without a subscription.
pub(super) async fn next(subscription: &mut Option<Subscription>) -> Heard {
    match subscription {
        Some(subscription) => subscription.next().await,
        None => std::future::pending().await,
    }
}
