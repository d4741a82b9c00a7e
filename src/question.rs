//! The question: what is asked, in one canonical form.

pub mod kind;
pub mod text;
pub mod wire;
