//! Codes of registers: company numbers, plates, postcodes, place ids.

use regex::bytes::{Regex, RegexBuilder};

use super::{Invalid, Value, text};

/// Which letter case is canonical. Only ASCII letters are changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Case {
    /// `SC123456`.
    Upper,
    /// `sc123456`.
    Lower,
    /// Case has a meaning.
    #[default]
    Keep,
}

/// A regular expression that a code must match as a whole. Its classes (`\d`, `\w`, `(?i)`) are those of ASCII.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

/// Why a pattern cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadPattern(#[from] regex::Error);

impl Pattern {
    /// Compiles a pattern.
    pub fn new(source: &str) -> Result<Self, BadPattern> {
        build(source)?;
        Ok(Self(build(&format!(r"\A(?:{source})\z"))?))
    }
}

/// On its own first: what is not balanced alone must not be completed by the anchors.
fn build(source: &str) -> Result<Regex, BadPattern> {
    Ok(RegexBuilder::new(source).unicode(false).size_limit(1 << 20).build()?)
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

/// Reads a code: width and case folded, the characters of `drop` dropped, filled up to `pad` digits, then matched.
pub fn read(raw: &str, pattern: Option<&Pattern>, case: Case, drop: &str, pad: usize) -> Result<Value, Invalid> {
    let typed = text::typed(raw)?;
    let kept: String = typed.chars().filter(|c| !drop.contains(*c)).collect();
    let mut code = text::typed(&kept)?.into_owned();
    match case {
        Case::Upper => code.make_ascii_uppercase(),
        Case::Lower => code.make_ascii_lowercase(),
        Case::Keep => {}
    }
    if code.is_empty() {
        return Err(Invalid::new("must not be empty"));
    }
    if code.len() < pad && code.bytes().all(|byte| byte.is_ascii_digit()) {
        code.insert_str(0, &"0".repeat(pad.saturating_sub(code.len())));
    }
    if pattern.is_some_and(|p| !p.0.is_match(code.as_bytes())) {
        return Err(Invalid::new("has not the form of such a code"));
    }
    Ok(Value::plain(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn company(raw: &str) -> Result<String, Invalid> {
        let pattern = Pattern::new(r"[A-Z]{2}\d{6}|\d{8}").unwrap();
        read(raw, Some(&pattern), Case::Upper, " -.", 0).map(|v| v.key)
    }

    #[test]
    fn spellings_of_a_code_are_one() {
        for raw in [
            "SC123456",
            "sc123456",
            " sc 123-456 ",
            "ＳＣ１２３４５６",
            "sc\u{2212}123\u{A0}456",
            "SC١٢٣٤٥٦",
            "\u{202A}SC123456\u{202C}",
        ] {
            assert_eq!(company(raw).as_deref(), Ok("SC123456"), "{raw}");
        }
        assert_eq!(company("00445790").as_deref(), Ok("00445790"), "leading zeros stay");
    }

    #[test]
    fn the_pattern_must_match_as_a_whole() {
        for raw in
            ["445790", "SC1234567", "xSC123456", "SC123456\nx", "SC12345²", "", " - ", "SC\u{0}123456", "00445790 or 00445791"]
        {
            assert!(company(raw).is_err(), "{raw:?}");
        }
    }

    #[test]
    fn case_that_has_a_meaning_is_kept() {
        let id = |raw| read(raw, None, Case::Keep, "", 0).map(|v| v.key).unwrap();
        assert_ne!(id("ChIJd8BlQ2"), id("chijd8blq2"));
        assert_eq!(read("ChIJ", None, Case::Lower, "", 0).unwrap().key, "chij");
    }

    #[test]
    fn digits_alone_are_filled_up() {
        let padded = |raw| read(raw, Some(&Pattern::new("[A-Z0-9]{8}").unwrap()), Case::Upper, " ", 8).map(|v| v.key);
        for raw in ["445790", "0445790", "00445790", " 44 57 90", "٤٤٥٧٩٠"] {
            assert_eq!(padded(raw).as_deref(), Ok("00445790"), "{raw}");
        }
        assert_eq!(padded("sc123456").as_deref(), Ok("SC123456"));
        for raw in ["SC1234", "123456789", "", " "] {
            assert!(padded(raw).is_err(), "{raw:?}");
        }
    }

    #[test]
    fn a_bad_pattern_is_an_error() {
        for source in ["(", "a)(b", "[", "x{99999}", "(?x)a # b"] {
            assert!(Pattern::new(source).is_err(), "{source}");
        }
    }
}
