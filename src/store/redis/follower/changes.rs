//! Changes as the scripts write them down.

use bytes::Bytes;

use super::super::super::event::Event;
use super::super::frame;
use crate::clock::Timestamp;

/// What a change says.
pub(super) enum Change {
    /// Something to pass on.
    News(Event),
    /// This very instance's own purge, or a kind that only newer versions know.
    Known,
}

/// Reads a change; nothing, if it is no change at all. `number` is also the revision of a switch.
pub(super) fn read(number: u64, change: Bytes, instance: &str) -> Option<Change> {
    let mut parts = frame::unpack(change)?;
    let kind = parts.next()?;
    let mut part = || parts.next();
    let event = match kind.as_ref() {
        b"switch" => {
            let (name, json) = (frame::text(part()?)?, part()?);
            Event::Switch { name, switch: serde_json::from_slice(&json).ok()?, revision: number }
        }
        b"generation" => Event::Generation { route: frame::text(part()?)?, generation: frame::number(&part()?)? },
        b"paused" => Event::Paused { provider: frame::text(part()?)?, until: Timestamp(frame::number(&part()?)?) },
        b"purged" => {
            let (route, key) = (frame::text(part()?)?, part()?.as_ref().try_into().ok()?);
            if part()? == instance.as_bytes() {
                return Some(Change::Known);
            }
            Event::Purged { route, key }
        }
        _ => return Some(Change::Known),
    };
    Some(Change::News(event))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ones_own_purge_is_no_news_and_rubbish_is_no_change() {
        let purged = frame::pack([&b"purged"[..], b"geo", &[7; 32], b"me"]);
        assert!(matches!(read(1, purged.clone(), "me"), Some(Change::Known)));
        assert!(matches!(read(1, purged.clone(), "other"), Some(Change::News(Event::Purged { key, .. })) if key == [7; 32]));
        assert!(matches!(read(1, frame::pack([&b"invented later"[..]]), "me"), Some(Change::Known)));
        for rubbish in [&b""[..], b"x", &purged[..20]] {
            assert!(read(1, Bytes::copy_from_slice(rubbish), "me").is_none());
        }
        assert!(read(1, frame::pack([&b"generation"[..], b"geo", b"many"]), "me").is_none());
    }
}
