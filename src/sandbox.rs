//! The metered stand-in for the providers.

mod answer;
mod asked;
pub mod fault;
pub mod gazetteer;
pub mod meter;
pub mod provider;
