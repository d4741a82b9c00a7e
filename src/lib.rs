//! tollgate: a gateway in front of APIs that charge per call.
//!
//! A request's way is one function, in `stack.rs`, each layer refusing or absorbing one class of waste before the next, in the
//! order of what it costs to ask; the paid call is the last thing that happens:
//!
//! ```text
//! respond        every outcome becomes HTTP, one log line, counters
//! kill_switch    one atomic read
//! authenticate   one hash                                   Request -> Ask
//! validate       the question in one canonical form, its key    Ask -> Call
//! limits         token buckets, all or none
//! lockout        enumeration, look-up routes only
//! curated        answers kept by hand
//! cache          process memory, then the store
//! single_flight  joins or starts a flight, a task of its own
//! keep           looks once more, stores what comes back
//! breaker        is the provider well?
//! retry          attempts, each with a permit               Call -> Attempt
//! budget         switch and quota again for each attempt
//! upstream       the only file that spends money
//! ```

mod admin;
mod alerts;
mod answer;
mod breaker;
mod call;
pub mod cli;
pub mod clock;
pub mod config;
mod flight;
mod hooks;
mod jwks;
pub mod money;
mod provider;
pub mod question;
mod refusal;
mod route;
pub mod sandbox;
pub mod server;
mod shared;
mod stack;
mod stage;
pub mod store;
mod telemetry;
mod uniform;
mod upstream;

pub use telemetry::log::start as start_log;
