//! Finds a secret in a text however it is spelt there: as it is, percent-encoded (twice, too, and in part: everyone has their own
//! idea of what needs it), escaped in JSON, or in base64, alone or in the middle of something.

use std::ops::Range;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

/// What to look for. Shorter things would be found where they are not.
const SHORTEST: usize = 4;
const SHORTEST_BASE64: usize = 8;

/// The secret, and what base64 makes of it.
pub(super) fn forms(value: &str) -> Arc<[String]> {
    let mut encoded = String::new();
    crate::question::wire::encode(value, &mut encoded);
    let mut forms: Vec<String> = [value, &encoded].into_iter().flat_map(base64).collect();
    forms.retain(|form| form.len() >= SHORTEST_BASE64);
    forms.extend((value.len() >= SHORTEST).then(|| value.to_owned()));
    forms.sort_unstable();
    forms.dedup();
    forms.into()
}

/// What is left of a text in base64 whatever stands before and behind it.
fn base64(text: &str) -> Vec<String> {
    let mut cores = Vec::new();
    for before in 0..3 {
        let bytes = [vec![0; before].as_slice(), text.as_bytes()].concat();
        // A character stands for six bits; only those that hold nothing else are sure.
        let sure = (before * 8).div_ceil(6)..bytes.len() * 8 / 6;
        for engine in [&STANDARD, &URL_SAFE] {
            cores.extend(engine.encode(&bytes).get(sure.clone()).map(ToOwned::to_owned));
        }
    }
    cores
}

/// Where `form` stands first in `text`, in whatever mixture of escapes.
pub(super) fn find(text: &[u8], form: &str) -> Option<Range<usize>> {
    let form = form.as_bytes();
    let starts = memchr::memchr3_iter(*form.first()?, b'%', b'\\', text);
    starts.into_iter().find_map(|start| Some(start..start + length(text.get(start..)?, form)?))
}

/// How many bytes of `text`'s beginning spell `form`.
fn length(text: &[u8], form: &[u8]) -> Option<usize> {
    let Some((first, rest)) = form.split_first() else { return Some(0) };
    let ways = [escaped(text, *first), (text.first() == Some(first)).then_some(1)];
    ways.into_iter().flatten().find_map(|taken| Some(taken + length(text.get(taken..)?, rest)?))
}

/// How many bytes of `text`'s beginning are an escape for `byte`.
fn escaped(text: &[u8], byte: u8) -> Option<usize> {
    let is_hex = |digits: &[u8]| std::str::from_utf8(digits).is_ok_and(|digits| u8::from_str_radix(digits, 16) == Ok(byte));
    match text {
        [b'%', b'2', b'5', high, low, ..] if is_hex(&[*high, *low]) => Some(5),
        [b'%', high, low, ..] if is_hex(&[*high, *low]) => Some(3),
        [b'\\', b'u', b'0', b'0', high, low, ..] if is_hex(&[*high, *low]) => Some(6),
        [b'\\', plain, ..] if *plain == byte => Some(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "s3cr+t/%41key";

    fn is_found(text: &str) -> bool {
        forms(SECRET).iter().any(|form| find(text.as_bytes(), form).is_some())
    }

    #[test]
    fn every_spelling_is_found() {
        for spelling in [
            "s3cr+t/%41key",
            "s3cr%2Bt%2F%2541key",
            "s3cr%2bt%2f%2541key",
            "s3cr%2Bt/%2541key",
            "s3cr%252Bt%252F%252541key",
            "s3cr+t\\/%41key",
            "s3cr\\u002bt\\u002F%41\\u006bey",
        ] {
            assert!(is_found(spelling) && is_found(&format!("a={spelling}&b")), "{spelling}");
            for before in ["", "k", "k=", "key="] {
                let inside = format!("{before}{spelling}&x");
                if spelling == SECRET || spelling == "s3cr%2Bt%2F%2541key" {
                    assert!(is_found(&STANDARD.encode(&inside)) && is_found(&URL_SAFE.encode(&inside)), "{inside}");
                }
            }
        }
    }

    #[test]
    fn nothing_else_is_found() {
        for text in ["", "%", "\\", "%2", "\\u00", "s3cr+t/%41ke", "S3CR+T/%41KEY", "s3cr t/%41key", "%25%25%25%25%25%25%25%25"] {
            assert!(!is_found(text), "{text}");
        }
        assert!(forms("abc").is_empty());
    }
}
