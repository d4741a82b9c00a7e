//! The metered stand-in for the providers.
