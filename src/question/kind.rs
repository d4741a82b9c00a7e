//! Field types.
