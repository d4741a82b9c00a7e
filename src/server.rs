//! Listeners: the HTTP edge, the gateway behind it, and how both end.

pub mod edge;
pub(crate) mod gateway;
pub(crate) mod listener;
pub(crate) mod respond;
pub(crate) mod router;
mod run;

pub use run::{Emergency, Running, Source, start};
pub(crate) use run::{ReloadError, reload};
