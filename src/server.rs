//! Listeners.

pub mod edge;
