//! Black-box tests: one binary, one file a subject.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "in a test, what should not happen fails the test")]

mod admin;
mod alerts;
mod asked;
mod bill;
mod bodies;
mod breaker;
mod budget;
mod cache;
mod callers;
mod config_faults;
mod drain;
mod flights;
mod hooks;
mod http;
mod instances;
mod limits;
mod lockout;
mod process;
mod questions;
mod refusals;
mod secrets;
mod smoke;
mod stale;
mod stops;
mod store;
mod support;
mod support_works;
mod switches;
mod writes;
