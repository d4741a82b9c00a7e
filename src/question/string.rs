//! Text taken as it is written: the body of a message. Its spaces, line breaks, letter case and spelling are what it says, so
//! nothing of it is folded, and what is asked is also what makes it the same.

use super::{Invalid, Value};

/// Reads text of `min` to `max` characters, without controls but for tab and line breaks.
pub(super) fn read(raw: &str, min: usize, max: usize) -> Result<Value, Invalid> {
    let fits = raw.len() <= max.saturating_mul(char::MAX.len_utf8()) && (min..=max).contains(&raw.chars().count());
    if !fits {
        return Err(Invalid::new(format!("must have {min} to {max} characters")));
    }
    clean(raw)?;
    Ok(Value::plain(raw.to_owned()))
}

/// Refuses what no text holds.
pub(super) fn clean(raw: &str) -> Result<(), Invalid> {
    let refused = |byte: u8| byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r');
    if raw.bytes().any(refused) { Err(Invalid::new("must not hold control characters")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_what_was_written() {
        for raw in ["Hi", " hi\n\n\there \r\n", "👋🏽", "STRASSE", "Straße", "e\u{301}", "a  b", "\u{7f}\u{85}\u{200B}", "ﬁ½²"]
        {
            assert_eq!(read(raw, 1, 20), Ok(Value::plain(raw.to_owned())), "{raw:?}");
        }
    }

    #[test]
    fn its_length_is_in_characters() {
        assert!(read(&"👋".repeat(20), 1, 20).is_ok() && read(&"👋".repeat(21), 1, 20).is_err());
        assert!(read("ab", 3, 20).is_err() && read("", 1, 20).is_err() && read("", 0, 20).is_ok());
        assert!(read("a", 0, usize::MAX).is_ok());
    }

    #[test]
    fn controls_are_refused() {
        for raw in ["\0", "a\u{1}", "\u{1b}[2J", "\u{b}", "\u{1f}x"] {
            assert!(read(raw, 1, 20).is_err(), "{raw:?}");
        }
    }
}
