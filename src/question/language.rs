//! Language tags, BCP 47 (RFC 5646): form and letter case, without a registry.

use super::{Invalid, Value, text};

/// Longest tag that is read.
const MAX_LENGTH: usize = 100;

/// Reads a tag such as `en`, `pt-br`, `zh_hant_tw`. Grandfathered and wholly private tags are refused.
pub fn read(raw: &str) -> Result<Value, Invalid> {
    let typed = text::typed(raw)?;
    tag(&typed).map(Value::plain).ok_or_else(|| Invalid::new("must be a language tag such as en or pt-BR (BCP 47)"))
}

fn tag(typed: &str) -> Option<String> {
    if typed.len() > MAX_LENGTH {
        return None;
    }
    // `en`, as nearly everyone writes it, is its own canonical form.
    if (2..=3).contains(&typed.len()) && typed.bytes().all(|b| b.is_ascii_lowercase()) {
        return Some(typed.to_owned());
    }
    let lower = typed.replace('_', "-").to_ascii_lowercase();
    let parts: Vec<&str> = lower.split('-').collect();
    if !parts.iter().all(|p| (1..=8).contains(&p.len()) && p.bytes().all(|b| b.is_ascii_alphanumeric())) {
        return None;
    }
    let mut rest = parts.as_slice();
    let mut out = vec![next(&mut rest, is_language)?.to_owned()];
    for _ in 0..3 {
        out.extend(next(&mut rest, |p| is_alphabetic(p, 3)).map(str::to_owned));
    }
    out.extend(next(&mut rest, |p| is_alphabetic(p, 4)).map(titled));
    out.extend(next(&mut rest, is_region).map(str::to_ascii_uppercase));
    while let Some(variant) = next(&mut rest, is_variant) {
        if out.iter().any(|p| p == variant) {
            return None;
        }
        out.push(variant.to_owned());
    }
    out.extend(extensions(rest)?);
    Some(out.join("-"))
}

/// Extensions in the order of their singletons (RFC 5646, 4.5), the private one last.
fn extensions(mut rest: &[&str]) -> Option<Vec<String>> {
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    while let Some(singleton) = next(&mut rest, |p| p.len() == 1) {
        let private = singleton == "x";
        let mut parts = Vec::new();
        while let Some(part) = next(&mut rest, |p| private || p.len() > 1) {
            parts.push(part);
        }
        if parts.is_empty() || found.iter().any(|(s, _)| *s == singleton) {
            return None;
        }
        found.push((singleton, parts));
    }
    found.sort_by_key(|(singleton, _)| (*singleton == "x", *singleton));
    let parts = found.into_iter().flat_map(|(singleton, parts)| std::iter::once(singleton).chain(parts));
    rest.is_empty().then(|| parts.map(str::to_owned).collect())
}

/// Takes the first part, if it is of this sort.
fn next<'a>(rest: &mut &[&'a str], is: impl Fn(&str) -> bool) -> Option<&'a str> {
    let (first, tail) = rest.split_first().filter(|(first, _)| is(first))?;
    *rest = tail;
    Some(first)
}

fn is_alphabetic(part: &str, length: usize) -> bool {
    part.len() == length && part.bytes().all(|b| b.is_ascii_alphabetic())
}

fn is_language(part: &str) -> bool {
    is_alphabetic(part, 2) || is_alphabetic(part, 3)
}

fn is_region(part: &str) -> bool {
    is_alphabetic(part, 2) || part.len() == 3 && part.bytes().all(|b| b.is_ascii_digit())
}

fn is_variant(part: &str) -> bool {
    part.len() >= 5 || part.len() == 4 && part.starts_with(|c: char| c.is_ascii_digit())
}

fn titled(part: &str) -> String {
    let mut chars = part.chars();
    chars.next().map(|c| c.to_ascii_uppercase()).into_iter().chain(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_has_one_letter_case() {
        let table = [
            ("EN", "en"),
            ("en-us", "en-US"),
            ("en_US", "en-US"),
            (" ｐｔ－ＢＲ ", "pt-BR"),
            ("zh-hant-tw", "zh-Hant-TW"),
            ("ZH-YUE-HK", "zh-yue-HK"),
            ("es-419", "es-419"),
            ("DE-CH-1996", "de-CH-1996"),
            ("sl-ROZAJ-Biske", "sl-rozaj-biske"),
            ("en-X-Ab-C", "en-x-ab-c"),
            ("en-u-ca-buddhist-a-Myext-x-z", "en-a-myext-u-ca-buddhist-x-z"),
        ];
        for (raw, right) in table {
            assert_eq!(read(raw).unwrap(), Value::plain(right.into()), "{raw}");
        }
    }

    #[test]
    fn what_is_no_tag_is_refused() {
        let long = "a".repeat(2000);
        for raw in [
            "",
            "e",
            "english",
            "en-",
            "-en",
            "en--us",
            "en us",
            "en-us-us",
            "i-klingon",
            "x-private",
            "en-u",
            "en-a-bb-a-cc",
            "de-1996-1996",
            "en;q=1",
            "en,de",
            "en_US.UTF-8",
            "日本",
            &long,
        ] {
            assert!(read(raw).is_err(), "{raw}");
        }
    }
}
