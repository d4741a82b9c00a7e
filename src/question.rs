//! The question: what is asked, in one canonical form.
//!
//! Every field of a question has a [`Kind`]. Reading a [`Raw`] value gives a [`Value`] with two forms: *asked* is what the
//! provider is sent, *key* is what the answer is kept under. For free text the key is a fold of what is asked
//! ([`text`]: width, case, spacing); every typed value has one rendering for both.
//!
//! Laws, each a property test here: reading what was read changes nothing; a client's spelling, order or encoding never
//! splits a key; values that are not interchangeable never share one; no input panics.
//!
//! Nothing here knows configuration, providers or HTTP. [`wire`] undoes and applies percent-encoding, [`key`] hashes.

mod code;
mod collection;
mod country;
mod decimal;
pub(crate) mod field;
pub(crate) mod json;
pub mod key;
pub mod kind;
mod language;
mod latlng;
mod mask;
mod phone;
mod place;
mod rest;
mod scalar;
mod string;
pub mod text;
mod timestamp;
mod value;
pub mod wire;

#[cfg(test)]
mod laws;

pub use code::{BadPattern, Case, Pattern};
pub use decimal::Decimal;
pub use key::{KEY_VERSION, KeyHasher};
pub use kind::Kind;
pub use value::{Asked, Invalid, Raw, Value};
