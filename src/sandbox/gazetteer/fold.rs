//! Case, accents and punctuation taken off, so that spellings of one name meet.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// The words of a text, folded. An apostrophe joins (`Xi'an` is `xian`), every other sign parts.
pub fn words(text: &str) -> Vec<String> {
    let mut folded = String::with_capacity(text.len());
    for c in text.nfkd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase).nfkd() {
        match c {
            '\'' | '’' | 'ʻ' | 'ʼ' | '`' => {}
            c if is_combining_mark(c) => {}
            c if c.is_alphanumeric() => push(&mut folded, c),
            _ => folded.push(' '),
        }
    }
    folded.split_whitespace().map(str::to_owned).collect()
}

/// A name as it is looked up: its folded words with one space between.
pub fn name(text: &str) -> String {
    words(text).join(" ")
}

fn push(folded: &mut String, c: char) {
    match c {
        'ß' => folded.push_str("ss"),
        'æ' => folded.push_str("ae"),
        'œ' => folded.push_str("oe"),
        'þ' => folded.push_str("th"),
        'ø' => folded.push('o'),
        'đ' | 'ð' => folded.push('d'),
        'ł' => folded.push('l'),
        'ı' => folded.push('i'),
        other => folded.push(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_name_meet() {
        assert_eq!(name("  ŁÓDŹ "), name("lodz"));
        assert_eq!(name("Xi’an"), name("XIAN"));
        assert_eq!(name("İstanbul"), name("istanbul"));
        assert_eq!(name("Chambe\u{301}ry"), name("Chambéry"));
        assert_eq!(words("Straße 1,Zürich"), ["strasse", "1", "zurich"]);
    }
}
