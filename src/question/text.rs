//! Free text, in its two forms.
//!
//! *Asked*: invisible marks of direction, zero-width spaces and soft hyphens are dropped, every run of Unicode white space is
//! one U+0020, the ends are trimmed, and the result is in NFC. Spelling, letter case and numbers stay as they were written.
//! Controls other than white space, tag characters and noncharacters are refused.
//!
//! *Key*: a fold of what is asked, see [`key`]. It is never sent.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfc_quick};

use super::{Asked, Invalid, Value};
pub(crate) use chars::{is_dropped, is_refused};
use spaced::Spaced;

mod chars;
mod fold;
mod spaced;

pub use fold::key;

/// Longest typed value (anything but free text and JSON) that is looked at, in bytes.
const TYPED_MAX: usize = 1024;

/// Bytes of one character of asked text in its longest spelling: NFC makes one of four characters at most.
const SPELLING_MAX: usize = 16;

/// Reads free text of `min` to `max` characters. The upper bound holds for the key too, which may be longer.
pub(crate) fn read(raw: &str, min: usize, max: usize) -> Result<Value, Invalid> {
    let length = || Invalid::new(format!("must have {min} to {max} characters"));
    if raw.len() > max.saturating_mul(SPELLING_MAX) {
        return Err(length());
    }
    let asked = asked(raw)?;
    let characters = asked.chars().count();
    if characters < min && characters > 0 || characters > max {
        return Err(length());
    }
    let key = key(&asked);
    if !key.chars().any(char::is_alphanumeric) {
        return Err(Invalid::new("must hold a letter or digit"));
    }
    if key.len() > max && key.chars().count() > max {
        return Err(length());
    }
    Ok(Value { asked: Asked::Text(asked.into_owned()), key })
}

/// The form that is sent.
pub fn asked(raw: &str) -> Result<Cow<'_, str>, Invalid> {
    if !raw.is_ascii() {
        return asked_unicode(raw).map(Cow::Owned);
    }
    if spaced::is_spaced(raw) {
        return Ok(Cow::Borrowed(raw));
    }
    if raw.bytes().any(|b| is_refused(char::from(b))) {
        return Err(control());
    }
    Ok(Cow::Owned(raw.chars().collect::<Spaced>().into()))
}

fn asked_unicode(raw: &str) -> Result<String, Invalid> {
    if raw.chars().any(is_refused) {
        return Err(control());
    }
    let text: String = raw.chars().filter(|c| !is_dropped(*c)).collect::<Spaced>().into();
    match is_nfc_quick(text.chars()) {
        IsNormalized::Yes => Ok(text),
        _ => Ok(text.nfc().collect()),
    }
}

fn control() -> Invalid {
    Invalid::new("must not hold control characters")
}

/// What a typed value is parsed from: asked text with width, digits and dashes folded, letter case kept. Plain ASCII
/// is borrowed.
pub(crate) fn typed(raw: &str) -> Result<Cow<'_, str>, Invalid> {
    if raw.len() > TYPED_MAX {
        return Err(Invalid::new("is too long"));
    }
    let asked = asked(raw)?;
    if asked.is_ascii() { Ok(asked) } else { Ok(Cow::Owned(fold::narrow(&asked))) }
}

#[cfg(test)]
mod tests;
