//! What black-box tests stand on: an upstream that counts, and clients that hide nothing.

#![allow(dead_code, reason = "a toolbox: each subject takes what it needs")]

use std::future::Future;
use std::time::Duration;

pub mod client;
pub mod command;
pub mod fault_proxy;
pub mod fleet;
pub mod gate;
pub mod port;
pub mod process;
pub mod raw;
pub mod redis;
pub mod resp;
pub mod routes;
pub mod serve;
pub mod signal;
pub mod step;
pub mod upstream;
pub mod wire;

/// Longer than anything that works takes, even on a busy machine.
pub const HANG: Duration = Duration::from_secs(20);

/// Waits, but not for ever: a test that hangs fails.
pub async fn soon<F: Future>(what: &str, future: F) -> F::Output {
    let output = tokio::time::timeout(HANG, future).await;
    output.unwrap_or_else(|_| panic!("{what}: not within {HANG:?}"))
}
