//! What the store's keys are called: the one table.
//!
//! `P` is the configured prefix. User text is in no name: callers, questions and subjects come as digests. What stands in
//! braces decides the slot in a cluster; the keys of one script share theirs.
//!
//! | key | type | what | lives |
//! |---|---|---|---|
//! | `P:bucket:{bucket}:ID` | string | a token bucket | until it is full, and a minute |
//! | `P:answer:{KEY}` | hash | an answer: `stored`, `fresh`, `meta`, `body` | until its last use, and a minute |
//! | `P:lease:{KEY}` | hash | who flies for it: `flight`, `until`, `waited` | its time, and a minute |
//! | `P:landed:{KEY}` | hash | what the last flight left: `at`, `left`, `word`, `until` | 10 s; as long as *alone* lasts |
//! | `P:purged:{KEY}` | string | when the answer was purged: an older flight leaves nothing | an hour |
//! | `P:lockout:{lockout}:SUBJECT` | hash | misses, guesses in flight, lock | as long as any of it counts, and a minute |
//! | `P:settled:{lockout}:OP` | string | a guess that was settled | 10 min |
//! | `P:raised:{P}:OP` | string | a raising of a generation: its result | 10 min |
//! | `P:generations:{P}` | hash | purge generations by route | **for good** |
//! | `P:switches:{P}` | hash | switches by name, each with its revision | **for good** |
//! | `P:seq:{P}` | string | the number of the latest change | **for good** |
//! | `P:log:{P}` | stream | the latest changes, a thousand or so | a day |
//! | `P:pauses:{P}` | hash | until when each provider is paused | until the last ends, and a minute |
//! | `P:instances:{P}` | sorted set | instances by their last sign of life | a minute |
//! | `P:probe:{P}` | string | written to see whether the store works | a minute |
//! | `P:epoch:{P}` | hash | whether the records of money are whole: `id`, `made`, `lost`, `past` | **for good** |
//! | `P:cap:{P}:CAP` | hash | what a cap has used: `used`, `ends`, `born` | 41 days after its window, and a minute |
//! | `P:attempt:{P}:ID` | hash | an attempt that is open or unknown: the ledger's row | 400 days |
//! | the same | string | `settled`, or `given up` before it came | 2 days |
//! | `P:open:{P}:INSTANCE` | set | the attempts an instance has open | 400 days after the last |
//! | `P:owners:{P}` | sorted set | instances that have some open, by their last sign of life | **for good** |
//! | `P:days:{P}` | sorted set | days of which there are sums | 400 days after the last |
//! | `P:spent:{P}:DAY` | hash | a day's attempts, summed by kind: `n` and `m` before each | 400 days after the last |
//! | `P:saved:{P}:DAY` | hash | a day's savings, likewise | 400 days after the last |
//! | `P:credited:{P}:OP` | string | savings that were credited | 2 days |
//! | `P:mark:{P}:MARK` | string | until when something was done once | so long, and a minute |
//! | `P:write:{P}:ID` | hash | a paid write that is being sent, or of which nobody knows what came of it | **until it is settled** |
//! | the same | | one that is claimed; done, with `meta` and `body` of its answer; free, of which a turn is remembered | its lease; until its answer expires; as long as that; and a minute |
//! | `P:unsettled:{P}` | sorted set | the writes of the first kind, by when they were sent | **as long as there are any** |
//!
//! Channels: `P:DB:changes` and `P:DB:landed`; `DB` because channels, unlike keys, are those of all databases.
//!
//! One `take` names buckets of several kinds and one guess several subjects, and neither says what they have in common. So all
//! buckets share a slot, and so do all lockouts: in a cluster each are on one node. One core does some 40,000 takes a second.
//! So does all of money: one step changes the caps of provider, route and caller. And all of paid writes, with it: both go by the
//! same epoch. What a row names, scripts find without being given its key; they read all they are going to write before they write
//! any of it.

use sha2::{Digest as _, Sha256};

use super::super::write::Intention;
use super::super::{Digest, OpId};

/// Names keys.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    prefix: String,
    database: i64,
}

impl Keys {
    pub(super) fn new(prefix: String, database: i64) -> Self {
        Self { prefix, database }
    }

    pub(super) fn bucket(&self, id: u128) -> String {
        format!("{}:bucket:{{bucket}}:{id:032x}", self.prefix)
    }

    pub(super) fn answer(&self, key: &Digest) -> String {
        self.by_digest("answer", key)
    }

    pub(super) fn lease(&self, key: &Digest) -> String {
        self.by_digest("lease", key)
    }

    pub(super) fn landed(&self, key: &Digest) -> String {
        self.by_digest("landed", key)
    }

    pub(super) fn purged(&self, key: &Digest) -> String {
        self.by_digest("purged", key)
    }

    pub(super) fn lockout(&self, subject: &Digest) -> String {
        format!("{}:lockout:{{lockout}}:{}", self.prefix, hex(subject))
    }

    pub(super) fn settled(&self, op: OpId) -> String {
        format!("{}:settled:{{lockout}}:{}", self.prefix, id(op))
    }

    pub(super) fn raised(&self, op: OpId) -> String {
        format!("{}:{}", self.one("raised"), id(op))
    }

    pub(super) fn generations(&self) -> String {
        self.one("generations")
    }

    pub(super) fn switches(&self) -> String {
        self.one("switches")
    }

    pub(super) fn seq(&self) -> String {
        self.one("seq")
    }

    pub(super) fn log(&self) -> String {
        self.one("log")
    }

    pub(super) fn pauses(&self) -> String {
        self.one("pauses")
    }

    pub(super) fn instances(&self) -> String {
        self.one("instances")
    }

    pub(super) fn probe(&self) -> String {
        self.one("probe")
    }

    pub(super) fn epoch(&self) -> String {
        self.one("epoch")
    }

    pub(super) fn cap(&self, name: &str) -> String {
        format!("{}{}", self.caps(), hex(&Sha256::digest(name).into()))
    }

    /// What the names of all caps' counters begin with.
    pub(super) fn caps(&self) -> String {
        self.many("cap")
    }

    pub(super) fn attempt(&self, attempt: OpId) -> String {
        format!("{}{}", self.attempts(), id(attempt))
    }

    /// What the names of all attempts begin with.
    pub(super) fn attempts(&self) -> String {
        self.many("attempt")
    }

    pub(super) fn open(&self, instance: &str) -> String {
        format!("{}{instance}", self.opens())
    }

    /// What the names of all instances' open attempts begin with.
    pub(super) fn opens(&self) -> String {
        self.many("open")
    }

    pub(super) fn owners(&self) -> String {
        self.one("owners")
    }

    pub(super) fn days(&self) -> String {
        self.one("days")
    }

    pub(super) fn spent(&self, day: &str) -> String {
        format!("{}{day}", self.spents())
    }

    /// What the names of all sums of attempts begin with.
    pub(super) fn spents(&self) -> String {
        self.many("spent")
    }

    pub(super) fn saved(&self, day: &str) -> String {
        format!("{}{day}", self.many("saved"))
    }

    pub(super) fn credited(&self, op: OpId) -> String {
        format!("{}{}", self.many("credited"), id(op))
    }

    pub(super) fn mark(&self, mark: &str) -> String {
        format!("{}{}", self.many("mark"), hex(&Sha256::digest(mark).into()))
    }

    pub(super) fn write(&self, intention: Intention) -> String {
        format!("{}{}", self.writes(), id(OpId(intention.0)))
    }

    /// What the names of all paid writes begin with.
    pub(super) fn writes(&self) -> String {
        self.many("write")
    }

    pub(super) fn unsettled(&self) -> String {
        self.one("unsettled")
    }

    /// Where changes are told.
    pub(super) fn changes(&self) -> String {
        format!("{}:{}:changes", self.prefix, self.database)
    }

    /// Where landings are told.
    pub(super) fn landings(&self) -> String {
        format!("{}:{}:landed", self.prefix, self.database)
    }

    fn by_digest(&self, kind: &str, key: &Digest) -> String {
        format!("{}:{kind}:{{{}}}", self.prefix, hex(key))
    }

    fn many(&self, kind: &str) -> String {
        format!("{}:", self.one(kind))
    }

    fn one(&self, kind: &str) -> String {
        format!("{prefix}:{kind}:{{{prefix}}}", prefix = self.prefix)
    }
}

/// An id as scripts and keys spell it.
pub(super) fn id(op: OpId) -> String {
    format!("{:032x}", op.0)
}

/// A digest, likewise.
pub(super) fn hex(digest: &Digest) -> String {
    let (high, low) = digest.split_at(16);
    let half = |bytes: &[u8]| u128::from_be_bytes(bytes.try_into().unwrap_or_default());
    format!("{:032x}{:032x}", half(high), half(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_spelt_whole() {
        let mut digest = [0; 32];
        (digest[0], digest[31]) = (0xab, 0x01);
        let keys = Keys::new("t".to_owned(), 3);
        assert_eq!(keys.answer(&digest), format!("t:answer:{{ab{}01}}", "0".repeat(60)));
        assert_eq!(keys.seq(), "t:seq:{t}");
        assert_eq!(keys.changes(), "t:3:changes");
    }
}
