//! From a question to the digest its answer is kept under.

use sha2::{Digest as _, Sha256};
use unicode_normalization::UNICODE_VERSION;

/// Version of everything that makes a key. The first number is ours: raise it when a key form or the encoding changes. The
/// others are the Unicode versions of the tables used, which change keys when a dependency or the compiler is updated.
pub const KEY_VERSION: [u8; 3] = [1, UNICODE_VERSION.0, char::UNICODE_VERSION.0];

/// SHA-256 over typed, length-prefixed parts: no two lists of parts share an encoding.
///
/// Cloning keeps the midstate, so that what all questions of a route have in common is hashed once.
#[derive(Clone, Debug)]
pub struct KeyHasher(Sha256);

impl KeyHasher {
    /// A hasher that has taken in [`KEY_VERSION`].
    #[must_use]
    pub fn new() -> Self {
        Self(Sha256::new_with_prefix(KEY_VERSION))
    }

    /// Takes in one part. The tag says what it is (route, provider, field, ..).
    pub fn put(&mut self, tag: u8, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        let mut head = [tag; 9];
        for (to, from) in head.iter_mut().skip(1).zip((bytes.len() as u64).to_be_bytes()) {
            *to = from;
        }
        self.0.update(head);
        self.0.update(bytes);
    }

    /// The digest of all parts.
    #[must_use]
    pub fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

impl Default for KeyHasher {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(parts: &[(u8, &str)]) -> [u8; 32] {
        let mut hasher = KeyHasher::new();
        for (tag, bytes) in parts {
            hasher.put(*tag, bytes);
        }
        hasher.finish()
    }

    #[test]
    fn what_is_split_otherwise_or_tagged_otherwise_is_another_key() {
        let lists: [&[(u8, &str)]; 7] =
            [&[], &[(1, "")], &[(1, "ab")], &[(1, "a"), (1, "b")], &[(2, "ab")], &[(1, "a"), (2, "b")], &[(1, ""), (1, "ab")]];
        let digests: std::collections::HashSet<_> = lists.into_iter().map(digest).collect();
        assert_eq!(digests.len(), lists.len());
    }

    #[test]
    fn a_midstate_goes_on_as_if_it_were_the_first() {
        let mut route = KeyHasher::new();
        route.put(1, "geocode");
        let mut question = route.clone();
        question.put(2, "x");
        assert_eq!(question.finish(), digest(&[(1, "geocode"), (2, "x")]));
        assert_eq!(route.finish(), digest(&[(1, "geocode")]));
    }
}
