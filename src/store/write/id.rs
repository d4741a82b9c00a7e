//! What an admin calls a write that was sent: intention and owner in one word, so that what was found out about one sending settles
//! no other under the same key.

use std::fmt;
use std::str::FromStr;

use super::{Intention, Unresolved};
use crate::store::OpId;

/// 32 hexadecimal digits of the intention, a hyphen, the first 8 of its owner's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriteId {
    intention: Intention,
    owner: u32,
}

impl WriteId {
    pub(crate) fn new(intention: Intention, owner: OpId) -> Self {
        let [a, b, c, d, ..] = owner.0.to_be_bytes();
        Self { intention, owner: u32::from_be_bytes([a, b, c, d]) }
    }

    pub(crate) fn of(write: &Unresolved) -> Self {
        Self::new(write.intention, write.owner)
    }
}

impl fmt::Display for WriteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}-{:08x}", self.intention.0, self.owner)
    }
}

/// It is no such word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoId;

impl FromStr for WriteId {
    type Err = NoId;

    fn from_str(text: &str) -> Result<Self, NoId> {
        let (intention, owner) = text.split_once('-').ok_or(NoId)?;
        let is_hex = |part: &str, digits| part.len() == digits && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hex(intention, 32) || !is_hex(owner, 8) {
            return Err(NoId);
        }
        let intention = u128::from_str_radix(intention, 16).map_err(|_| NoId)?;
        let owner = u32::from_str_radix(owner, 16).map_err(|_| NoId)?;
        Ok(Self { intention: Intention(intention), owner })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_intention_and_owner_and_reads_back() {
        let id = WriteId::new(Intention(7), OpId(0x00ab_cdef << 96 | 9));
        assert_eq!(id.to_string(), "00000000000000000000000000000007-00abcdef");
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_ne!(id, WriteId::new(Intention(7), OpId(1 << 96)));
    }

    #[test]
    fn anything_else_is_none() {
        let id = "0123456789abcdef0123456789abcdef-01234567";
        assert!(id.parse::<WriteId>().is_ok());
        let wrong = ["", "-", &id[1..], &id[..40], &id.replace('-', "_"), &id.replace("-0", "-+"), &format!("{id}0"), "é"];
        for text in wrong {
            assert_eq!(text.parse::<WriteId>(), Err(NoId), "{text}");
        }
    }
}
