//! The scripts: one file an operation, called by the hash of its text.
//!
//! In front of each stands a line of flags, so that the store knows which may run when it is full or a copy, then the time and a
//! shared prelude. Redis 7 or Valkey is needed: older ones know no flags.

use std::sync::OnceLock;

/// Where a script takes the time from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    /// From the store: one time for all instances.
    Store,
    /// From the caller, as the last argument: tests step it.
    #[cfg(test)]
    Caller,
}

impl Time {
    fn lua(self) -> &'static str {
        match self {
            Self::Store => include_str!("lua/time.lua"),
            #[cfg(test)]
            Self::Caller => "local now = tonumber(table.remove(ARGV))\n",
        }
    }
}

/// What a script may do, as the store is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum May {
    /// Read only: on a full store, too.
    Read,
    /// Write, where there is room.
    Write,
    /// Write even on a full store: it gives back, takes away, or is small and must not fail.
    Always,
}

/// One script.
pub(super) struct Script {
    pub(super) name: &'static str,
    may: May,
    parts: &'static [&'static str],
    prepared: [OnceLock<redis::Script>; 2],
}

impl Script {
    const fn new(name: &'static str, may: May, parts: &'static [&'static str]) -> Self {
        Self { name, may, parts, prepared: [const { OnceLock::new() }; 2] }
    }

    /// What it is called by.
    pub(super) fn hash(&self, time: Time) -> &str {
        let [store, caller] = &self.prepared;
        let slot = if time == Time::Store { store } else { caller };
        slot.get_or_init(|| redis::Script::new(&self.text(time))).get_hash()
    }

    /// The whole text, as it is loaded.
    pub(super) fn text(&self, time: Time) -> String {
        let flags = match self.may {
            May::Read => "#!lua flags=no-writes\n",
            May::Write => "#!lua\n",
            May::Always => "#!lua flags=allow-oom\n",
        };
        [flags, time.lua(), include_str!("lua/prelude.lua")].into_iter().chain(self.parts.iter().copied()).collect()
    }
}

/// Declares the scripts: name in Rust, what it may do, what stands before it, its file.
macro_rules! scripts {
    ($($name:ident: $may:ident [$($part:literal),*];)*) => {
        $(pub(super) static $name: Script =
            Script::new(stringify!($name), May::$may, &[$(include_str!(concat!("lua/", $part, ".lua"))),*]);)*
        /// Every script, as they are loaded.
        pub(super) static ALL: &[&Script] = &[$(&$name),*];
    };
}

scripts! {
    PROBE: Always ["probe"];
    TAKE: Write ["take"];
    PAUSE: Always ["changes", "pause"];
    PAUSED: Read ["paused"];
    ANSWER: Read ["answer"];
    KEEP: Write ["keeping", "keep"];
    FORGET: Always ["forget"];
    PURGED: Always ["changes", "purged"];
    ENTER: Always ["enter"];
    RENEW: Always ["renew"];
    LAND: Write ["keeping", "land"];
    RELEASE: Always ["keeping", "land"];
    GENERATION: Read ["generation"];
    RAISE_GENERATION: Always ["changes", "raise_generation"];
    SWITCHES: Read ["switches"];
    SET_SWITCH: Always ["changes", "set_switch"];
    GUESS: Write ["lockouts", "guess"];
    SETTLE_GUESS: Always ["lockouts", "settle_guess"];
    LOCKOUT: Read ["lockouts", "lockout"];
    CLEAR_LOCKOUT: Always ["clear_lockout"];
    HEARTBEAT: Always ["changes", "heartbeat"];
    LOG: Read ["log"];
    STATE: Read ["state"];
    EPOCH: Always ["epochs", "epoch"];
    ACCEPT_LOSS: Always ["epochs", "accept_loss"];
    RESERVE: Write ["money", "reserve"];
    SETTLE: Always ["money", "attempts", "settle"];
    ORPHAN: Always ["money", "attempts", "orphan"];
    USED: Read ["money", "used"];
    CREDIT: Write ["money", "credit"];
    DAYS: Read ["money", "days"];
    SUMS: Read ["money", "sums"];
    FIRST: Always ["first"];
    CLAIM: Write ["money", "writes", "claim"];
    LOOK: Read ["money", "writes", "claim"];
    SENDING: Write ["money", "writes", "sending"];
    PROLONG: Always ["money", "writes", "prolong"];
    FINISH: Always ["money", "writes", "finish"];
    UNRESOLVED: Read ["money", "writes", "unresolved"];
    RESOLVE: Always ["money", "writes", "resolve"];
    COPIES: Read ["copies"];
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn what_must_work_on_a_full_store_says_so_and_what_takes_does_not() {
        let may = |may| ALL.iter().filter(|s| s.may == may).map(|s| s.name).collect::<HashSet<_>>();
        let takes = ["TAKE", "KEEP", "LAND", "GUESS", "RESERVE", "CREDIT", "CLAIM", "SENDING"];
        assert_eq!(may(May::Write), HashSet::from(takes));
        assert!(ALL.iter().all(|script| script.text(Time::Store).starts_with("#!lua")));
    }

    #[test]
    fn no_two_scripts_are_the_same() {
        let hashes: HashSet<_> = ALL.iter().map(|script| script.hash(Time::Store).to_owned()).collect();
        assert_eq!(hashes.len(), ALL.len());
    }
}
