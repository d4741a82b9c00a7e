//! Black-box tests: one binary, one file a subject.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "in a test, what should not happen fails the test")]

mod config_faults;
mod questions;
mod refusals;
mod smoke;
mod support;
mod support_works;
