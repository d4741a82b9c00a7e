//! tollgate: a gateway in front of APIs that charge per call.

pub mod clock;
pub mod question;
pub mod sandbox;
pub mod server;
pub mod store;
