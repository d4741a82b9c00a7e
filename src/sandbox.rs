//! The metered stand-in for the providers.

pub mod gazetteer;
