//! The limiter's script, as tollgate loads it, and the arguments it is called with.

/// Of each bucket: capacity, refill, period and cost, in micro-tokens and microseconds. Those of the limits in the config: a million
/// tokens, and as many a second, so that nothing is refused.
pub const NUMBERS: [u64; 4] = [1_000_000_000_000, 1_000_000, 1, 1_000_000];

pub fn text() -> String {
    macro_rules! part {
        ($name:literal) => {
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/store/redis/lua/", $name, ".lua"))
        };
    }
    ["#!lua\n", part!("time"), part!("prelude"), part!("take")].concat()
}
