//! Hashing what is a hash already: keys that are digests need no second one to spread over a table.

use std::hash::{BuildHasherDefault, Hasher};

/// Builds [`Head`]. Only for keys that are digests of ours: nobody outside can choose where they fall.
pub(crate) type Uniform = BuildHasherDefault<Head>;

/// The first eight bytes of a digest.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Head(u64);

impl Hasher for Head {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(head) = bytes.first_chunk() {
            self.0 = u64::from_ne_bytes(*head);
        }
    }

    /// The length of an array says nothing.
    fn write_usize(&mut self, _: usize) {}

    /// The upper half: shards are told apart by the lower.
    fn write_u128(&mut self, number: u128) {
        self.0 = u64::try_from(number >> 64).unwrap_or_default();
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher as _;

    use super::*;

    #[test]
    fn the_head_of_a_digest_is_its_hash() {
        let mut digest = [0u8; 32];
        digest[..8].copy_from_slice(&7u64.to_ne_bytes());
        assert_eq!(Uniform::default().hash_one(digest), 7);
        assert_eq!(Uniform::default().hash_one(9u128 << 64), 9);
    }
}
