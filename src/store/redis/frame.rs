//! Parts in one text, each with its length before it (`3:abc`): the form of whatever holds more than one thing. Scripts write
//! it, too.

use bytes::{BufMut, Bytes, BytesMut};

pub(super) fn pack<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Bytes {
    let mut text = BytesMut::new();
    for part in parts {
        text.put_slice(part.len().to_string().as_bytes());
        text.put_u8(b':');
        text.put_slice(part);
    }
    text.freeze()
}

/// The parts, or nothing if it was cut or is something else.
pub(super) fn unpack(mut text: Bytes) -> Option<std::vec::IntoIter<Bytes>> {
    let mut parts = Vec::new();
    while !text.is_empty() {
        let digits = text.iter().take(20).position(|byte| *byte == b':')?;
        let length: usize = std::str::from_utf8(&text.split_to(digits)).ok()?.parse().ok()?;
        let end = length.checked_add(1).filter(|end| *end <= text.len())?;
        parts.push(text.split_to(end).split_off(1));
    }
    Some(parts.into_iter())
}

/// A part as text.
pub(super) fn text(part: Bytes) -> Option<String> {
    String::from_utf8(part.into()).ok()
}

/// A part as a number.
pub(super) fn number(part: &Bytes) -> Option<u64> {
    std::str::from_utf8(part).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_cut_or_foreign_is_refused() {
        let whole = pack([&b"a:b"[..], b"", b"\0\xff"]);
        assert_eq!(whole, &b"3:a:b0:2:\0\xff"[..]);
        let ends = [0, 5, 7];
        for end in (0..whole.len()).filter(|end| !ends.contains(end)) {
            assert!(unpack(whole.slice(..end)).is_none(), "cut at {end}");
        }
        for foreign in ["x", ":", "-1:", "99999999999999999999999:x", "3"] {
            assert!(unpack(Bytes::from_static(foreign.as_bytes())).is_none(), "{foreign}");
        }
    }

    proptest! {
        #[test]
        fn parts_come_back(parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..6)) {
            let text = pack(parts.iter().map(Vec::as_slice));
            prop_assert_eq!(unpack(text).unwrap().collect::<Vec<_>>(), parts);
        }
    }
}
