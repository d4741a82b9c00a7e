//! The `Idempotency-Key` of a request, read before anything is asked of the store.

use http::HeaderMap;

use crate::config::section::Section;
use crate::refusal::{Code, Refusal};

/// `writes.key`: what a caller must give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyRule {
    /// A key, or nothing is sent.
    Required,
    /// A key, if it wants to be safe: what comes without one is sent each time it comes.
    Optional,
    /// What comes without a key goes by what it says: the same again is the same intention.
    Question,
}

impl KeyRule {
    const WORDS: [(&str, Self); 3] = [("required", Self::Required), ("optional", Self::Optional), ("question", Self::Question)];

    pub(super) fn read(section: &Section<'_>) -> Self {
        let word = section.or("key", "required".to_owned());
        Self::WORDS.iter().find(|(known, _)| *known == word).map_or_else(
            || {
                section.fault("key", format!("{word:?} is not one of its words"), "write required, optional or question");
                Self::Required
            },
            |(_, rule)| *rule,
        )
    }

    pub(crate) fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, rule)| *rule == self).map_or("", |(word, _)| word)
    }
}

/// What an intention is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// As its caller calls it.
    Given(String),
    /// By what it says.
    Question,
}

/// The longest key, in characters.
const LONGEST: usize = 255;

/// Reads the key of a request: 1 to 255 printable ASCII characters in one header line, bare or as a quoted string alike.
pub(crate) fn read(headers: &HeaderMap, rule: KeyRule) -> Result<Option<Key>, Refusal> {
    let mut lines = headers.get_all("idempotency-key").iter();
    let Some(line) = lines.next() else {
        return match rule {
            KeyRule::Required => {
                Err(Refusal::new(Code::IdempotencyKeyMissing, "send an Idempotency-Key: a new one for each thing to be done"))
            }
            KeyRule::Optional => Ok(None),
            KeyRule::Question => Ok(Some(Key::Question)),
        };
    };
    let text = line.to_str().ok().filter(|_| lines.next().is_none()).map(str::trim);
    let key = text.and_then(|text| if text.starts_with('"') { unquoted(text) } else { Some(text.to_owned()) });
    let is_key = |key: &String| (1..=LONGEST).contains(&key.len()) && key.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let invalid =
        || Refusal::new(Code::IdempotencyKeyInvalid, "Idempotency-Key is 1 to 255 printable ASCII characters in one header line");
    key.filter(is_key).map(|key| Some(Key::Given(key))).ok_or_else(invalid)
}

/// A string of RFC 9651, section 3.3.3.
fn unquoted(text: &str) -> Option<String> {
    let inner = text.strip_prefix('"')?.strip_suffix('"').filter(|_| text.len() > 1)?;
    let (mut key, mut chars) = (String::with_capacity(inner.len()), inner.chars());
    while let Some(c) = chars.next() {
        key.push(match c {
            '"' => return None,
            '\\' => chars.next().filter(|c| matches!(c, '"' | '\\'))?,
            other => other,
        });
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(lines: &[&[u8]]) -> Result<Option<Key>, Code> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append("idempotency-key", http::HeaderValue::from_bytes(line).unwrap());
        }
        read(&headers, KeyRule::Required).map_err(|refusal| refusal.code)
    }

    #[test]
    fn bare_and_quoted_are_one_key() {
        let key = Ok(Some(Key::Given("8e03978e-40d5".into())));
        for line in [&b"8e03978e-40d5"[..], b"\"8e03978e-40d5\"", b"  8e03978e-40d5 ", b" \"8e03978e-40d5\"\t"] {
            assert_eq!(given(&[line]), key);
        }
        assert_eq!(given(&[br#""a\"b\\c d""#]), Ok(Some(Key::Given("a\"b\\c d".into()))));
        assert_eq!(given(&[&[b'k'; 255]]), Ok(Some(Key::Given("k".repeat(255)))));
    }

    #[test]
    fn anything_else_is_no_key() {
        let long = [b'k'; 256];
        let lines: [&[&[u8]]; 12] = [
            &[b""],
            &[b"  "],
            &[b"\"\""],
            &[b"\""],
            &[b"\"open"],
            &[b"\"a\"b\""],
            &[b"\"a\\b\""],
            &[b"\"a\\\""],
            &[b"\"a\";p=1"],
            &[&long],
            &["schlüssel".as_bytes()],
            &[b"a", b"a"],
        ];
        for line in lines {
            assert_eq!(given(line), Err(Code::IdempotencyKeyInvalid), "{:?}", String::from_utf8_lossy(line[0]));
        }
    }

    #[test]
    fn without_one_the_rule_decides() {
        let none = |rule| read(&HeaderMap::new(), rule).map_err(|refusal| refusal.code);
        assert_eq!(none(KeyRule::Required), Err(Code::IdempotencyKeyMissing));
        assert_eq!(none(KeyRule::Optional), Ok(None));
        assert_eq!(none(KeyRule::Question), Ok(Some(Key::Question)));
    }
}
