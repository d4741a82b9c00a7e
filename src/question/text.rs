//! Free text.
